/*
 * bundle_command.c - zipccl bundle: results and what they were measured on, as one file to send back
 *
 * Names of hosts are replaced in all that goes in, names of files too; no environment is read or
 * packed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/bundle/bundle_command.h"

#include "experiments/bundle/bundle_files.h"
#include "experiments/bundle/bundle_hosts.h"
#include "experiments/bundle/bundle_text.h"
#include "experiments/codec/filter_process.h"
#include "experiments/program/machine.h"
#include "experiments/program/output.h"
#include "experiments/program/program.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

enum { MOST_FILES = 1024, MOST_HOSTS = 256, KEY_HOST = 256, OUTPUT = 1 << 20 };

static const char program[] = "zipccl";

struct options {
    const char *files[MOST_FILES], *hosts[MOST_HOSTS], *out;
    size_t nfiles, nhosts;
};

/* A member of the bundle. */
struct member {
    char *name, *text; /* owned */
    size_t nbytes, nhidden;
    enum zipccl_text_kind kind;
    bool packed; /* with gzip, again once names are replaced */
};

struct bundle {
    struct member members[MOST_FILES + 8];
    size_t n;
    struct zipccl_hosts hosts;
};

static const struct argp_option option_table[] = {
    {NULL, 'o', "FILE", 0, "the bundle, .tar.gz", 0},
    {"host", KEY_HOST, "NAME", 0,
     "a name to be replaced besides this machine's and those of the preflight; may repeat", 0},
    {0}};

static const char doc[] =
    "Pack results, versions, topology and clocks into one file to send back."
    "\vResults are JSON with a schema of zipccl, .jsonl, .csv, .yaml, .svg, .html and plain text "
    "(.txt, "
    ".log), each also as .gz. Names of hosts become host0, host1, ...; nothing of the environment "
    "is in it. What is in it "
    "is listed, and stands in its file CONTENTS. Topology and clocks are nvidia-smi's, where it is "
    "installed.";

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;

    switch (key) {
    case 'o':
        if (o->out != NULL) {
            zipccl_usage_error(program, "bundle: -o is given twice");
            return ECANCELED;
        }
        o->out = arg;
        return 0;
    case KEY_HOST:
        if (o->nhosts == MOST_HOSTS) {
            zipccl_usage_error(program, "bundle: more than %d --host", MOST_HOSTS);
            return ECANCELED;
        }
        if (!zipccl_hosts_valid(arg)) {
            zipccl_usage_error(program,
                               "bundle: --host '%s': expected a name with a letter, or an "
                               "address",
                               arg);
            return ECANCELED;
        }
        o->hosts[o->nhosts++] = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (o->nfiles == MOST_FILES) {
            zipccl_usage_error(program, "bundle: more than %d files", MOST_FILES);
            return ECANCELED;
        }
        o->files[o->nfiles++] = arg;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* Takes 'text' over. */
static zipccl_status add(struct bundle *b, const char *name, char *text, size_t nbytes,
                         struct zipccl_error *error)
{
    char *copy = strdup(name);

    if (copy == NULL) {
        free(text);
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    }
    b->members[b->n++] = (struct member){copy, text, nbytes, 0, ZIPCCL_TEXT_PLAIN, false};
    return ZIPCCL_OK;
}

static zipccl_status add_results(struct bundle *b, const struct options *o,
                                 struct zipccl_error *error)
{
    for (size_t i = 0; i < o->nfiles; i++) {
        const char *name = base_name(o->files[i]);
        struct member *m;
        size_t nbytes = 0;
        char *text = NULL;
        bool packed;

        for (size_t k = 0; k < b->n; k++)
            if (strcmp(b->members[k].name, name) == 0)
                return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                                   "%s: another file is named %s too, expected names of their own",
                                   o->files[i], name);
        if (strcmp(name, "CONTENTS") == 0 || strcmp(name, "versions.txt") == 0 ||
            strcmp(name, "topology.txt") == 0 || strcmp(name, "clocks.txt") == 0)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: the bundle has a %s of its own",
                               o->files[i], name);
        ZIPCCL_TRY(zipccl_bundle_read(o->files[i], &text, &nbytes, &packed, error));
        ZIPCCL_TRY(add(b, name, text, nbytes, error));
        m = &b->members[b->n - 1];
        m->packed = packed;
        ZIPCCL_TRY(zipccl_text_check(o->files[i], text, nbytes, &m->kind, error));
        if (zipccl_hosts_find(&b->hosts, text, nbytes) != ZIPCCL_OK)
            return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    }
    return ZIPCCL_OK;
}

static zipccl_status add_versions(struct bundle *b, struct zipccl_error *error)
{
    struct zipccl_machine machine;
    struct utsname system;
    size_t nbytes = 0;
    char *text = NULL;
    FILE *out = open_memstream(&text, &nbytes);

    if (out == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    zipccl_print_version(program, true, out);
    zipccl_machine_read(&machine);
    fprintf(out, "cpu         %s, %ld cores\n", machine.cpu, machine.cores);
    if (uname(&system) == 0)
        fprintf(out, "system      %s %s %s\n", system.sysname, system.release, system.machine);
    fclose(out);
    if (text == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    return add(b, "versions.txt", text, nbytes, error);
}

/* What a program says, if it is installed and ends well. */
static zipccl_status add_said(struct bundle *b, const char *name, char *const *argv,
                              struct zipccl_error *error)
{
    struct zipccl_filter_result result;
    struct zipccl_error why;
    char *text = malloc(OUTPUT);

    if (text == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    if (zipccl_filter_run(argv, NULL, 0, 30, (uint8_t *)text, OUTPUT, &result, &why) != ZIPCCL_OK ||
        result.exit_code != 0 || result.nbytes == 0) {
        free(text);
        return ZIPCCL_OK;
    }
    return add(b, name, text, result.nbytes, error);
}

static zipccl_status add_gpus(struct bundle *b, struct zipccl_error *error)
{
    static char smi[] = "nvidia-smi", topo[] = "topo", matrix[] = "-m", csv[] = "--format=csv";
    static char query[] =
        "--query-gpu=index,name,driver_version,pci.bus_id,clocks.sm,clocks.mem,clocks.max.sm,"
        "clocks.max.mem,clocks_throttle_reasons.active,power.draw,power.limit,temperature.gpu,"
        "memory.used,compute_mode,persistence_mode";
    char *topology[] = {smi, topo, matrix, NULL}, *clocks[] = {smi, query, csv, NULL};

    signal(SIGPIPE, SIG_IGN);
    ZIPCCL_TRY(add_said(b, "topology.txt", topology, error));
    return add_said(b, "clocks.txt", clocks, error);
}

/* Replace names of hosts in the name and the text of a member. */
static zipccl_status hide_member(const struct zipccl_hosts *hosts, struct member *m)
{
    size_t nbytes = 0, nhidden;
    char *name, *text;

    ZIPCCL_TRY(zipccl_hosts_hide_name(hosts, m->name, &name, &nhidden));
    free(m->name);
    m->name = name;
    ZIPCCL_TRY(zipccl_text_hide(hosts, m->kind, m->text, m->nbytes, &text, &nbytes, &m->nhidden));
    free(m->text);
    m->text = text;
    m->nbytes = nbytes;
    m->nhidden += nhidden;
    return m->packed ? zipccl_bundle_pack(&m->text, &m->nbytes) : ZIPCCL_OK;
}

static zipccl_status hide_hosts(struct bundle *b, const struct options *o,
                                struct zipccl_error *error)
{
    zipccl_status status = ZIPCCL_OK;
    struct utsname system;

    if (uname(&system) == 0)
        status = zipccl_hosts_add(&b->hosts, system.nodename, strlen(system.nodename));
    for (size_t i = 0; i < o->nhosts && status == ZIPCCL_OK; i++)
        status = zipccl_hosts_add(&b->hosts, o->hosts[i], strlen(o->hosts[i]));
    for (size_t i = 0; i < b->n && status == ZIPCCL_OK; i++)
        status = hide_member(&b->hosts, &b->members[i]);
    if (status != ZIPCCL_OK)
        return zipccl_fail(error, status, "out of memory");
    for (size_t i = 0; i < b->n; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(b->members[i].name, b->members[k].name) == 0)
                return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                                   "two files are named %s once names of hosts are replaced, "
                                   "expected names of their own",
                                   b->members[i].name);
    return ZIPCCL_OK;
}

/* The list, also for people: the first member. */
static zipccl_status add_contents(struct bundle *b, struct zipccl_error *error)
{
    size_t nbytes = 0;
    char *text = NULL;
    FILE *out = open_memstream(&text, &nbytes);

    if (out == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < b->n; i++)
        fprintf(out, "%-32s %10zu bytes, %zu names of hosts replaced\n", b->members[i].name,
                b->members[i].nbytes, b->members[i].nhidden);
    fclose(out);
    if (text == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    return add(b, "CONTENTS", text, nbytes, error);
}

static int write_member(struct archive *archive, const struct member *m)
{
    struct archive_entry *entry = archive_entry_new();
    int code = ARCHIVE_FATAL;

    if (entry == NULL)
        return code;
    archive_entry_set_pathname(entry, m->name);
    archive_entry_set_size(entry, (la_int64_t)m->nbytes);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    code = archive_write_header(archive, entry);
    if (code == ARCHIVE_OK && archive_write_data(archive, m->text, m->nbytes) < 0)
        code = ARCHIVE_FATAL;
    archive_entry_free(entry);
    return code;
}

static zipccl_status write_archive(const struct bundle *b, FILE *out, struct zipccl_error *error)
{
    struct archive *archive = archive_write_new();
    zipccl_status status = ZIPCCL_OK;
    int code;

    if (archive == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    archive_write_add_filter_gzip(archive);
    archive_write_set_format_pax_restricted(archive);
    code = archive_write_open_FILE(archive, out);
    for (size_t i = 0; code == ARCHIVE_OK && i < b->n; i++)
        code = write_member(archive, &b->members[(i + b->n - 1) % b->n]);
    if (code == ARCHIVE_OK)
        code = archive_write_close(archive);
    if (code != ARCHIVE_OK)
        status = zipccl_fail(error, ZIPCCL_ERR_IO, "%s",
                             archive_error_string(archive) != NULL ? archive_error_string(archive)
                                                                   : "cannot write the archive");
    archive_write_free(archive);
    return status;
}

static zipccl_status make(const struct options *o, struct bundle *b, struct zipccl_output *output,
                          struct zipccl_error *error)
{
    ZIPCCL_TRY(zipccl_output_check(output, o->out, error));
    if (output->standard)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "bundle: -o names a file, not '-'");
    for (size_t i = 0; i < o->nfiles; i++)
        ZIPCCL_TRY(zipccl_output_spare(output, o->files[i], error));
    ZIPCCL_TRY(add_results(b, o, error));
    ZIPCCL_TRY(add_versions(b, error));
    ZIPCCL_TRY(add_gpus(b, error));
    ZIPCCL_TRY(hide_hosts(b, o, error));
    ZIPCCL_TRY(add_contents(b, error));
    ZIPCCL_TRY(zipccl_output_open(output, error));
    ZIPCCL_TRY(zipccl_output_told(output, write_archive(b, output->file, error), error));
    ZIPCCL_TRY(zipccl_output_close(output, error));
    return zipccl_output_commit(output, error);
}

int zipccl_bundle_command(int argc, char **argv)
{
    static const struct argp argp = {
        option_table, parse_option, "RESULT... -o BUNDLE.tar.gz", doc, NULL, NULL, NULL};
    static struct options options;
    static struct bundle bundle;
    struct zipccl_output output = {.path = NULL};
    struct zipccl_error error = {""};
    bool helped;
    int code = zipccl_parse_options(&argp, argc, argv, program, "zipccl bundle", &options, &helped);

    if (code != ZIPCCL_EXIT_OK || helped)
        return code;
    if (options.nfiles == 0 || options.out == NULL)
        return zipccl_usage_error(program, "bundle: expected RESULT... -o BUNDLE.tar.gz");
    zipccl_status status = make(&options, &bundle, &output, &error);

    zipccl_output_discard(&output);
    if (status == ZIPCCL_OK)
        printf("%s:\n%.*s", options.out, (int)bundle.members[bundle.n - 1].nbytes,
               bundle.members[bundle.n - 1].text);
    for (size_t i = 0; i < bundle.n; i++) {
        free(bundle.members[i].name);
        free(bundle.members[i].text);
    }
    zipccl_hosts_release(&bundle.hosts);
    return status == ZIPCCL_OK ? ZIPCCL_EXIT_OK : zipccl_print_error(program, status, &error);
}
