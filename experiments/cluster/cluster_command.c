/*
 * cluster_command.c - zipccl cluster list|show|plain|check|fit
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/cluster/cluster_command.h"

#include "experiments/cluster/cluster_fit.h"
#include "experiments/program/open_cluster.h"
#include "experiments/program/program.h"

#include <errno.h>
#include <string.h>

static const char program[] = "zipccl";

enum { MAX_SETS = 64, KEY_CLUSTER_DIR = 256 };

struct options {
    const char *action, *name, *sets[MAX_SETS], *cluster_dir;
    size_t nsets;
};

static const struct argp_option option_table[] = {
    {"set", 's', "KEY=VALUE", 0, "override a key, as in 'zipccl replay'; may repeat", 0},
    {"cluster-dir", KEY_CLUSTER_DIR, "DIR", 0, "where named clusters are looked for", 0},
    {0}};

static const char doc[] =
    "Look at cluster descriptions."
    "\v  list           the bundled clusters\n"
    "  show NAME      every key with value, unit and source\n"
    "  plain NAME     the same as plain text, which builds without YAML read\n"
    "  check FILE     read a description and tell what is wrong with it\n"
    "  fit ROWS...    fit links and codec to measured collectives; see "
    "'zipccl cluster fit --help'";

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;

    switch (key) {
    case 's':
        if (options->nsets == MAX_SETS) {
            zipccl_usage_error(program, "more than %d --set options", MAX_SETS);
            return ECANCELED;
        }
        options->sets[options->nsets++] = arg;
        return 0;
    case KEY_CLUSTER_DIR:
        if (options->cluster_dir != NULL) {
            zipccl_usage_error(program, "--cluster-dir is given twice");
            return ECANCELED;
        }
        options->cluster_dir = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (options->name != NULL) {
            zipccl_usage_error(program, "cluster: unexpected argument '%s'", arg);
            return ECANCELED;
        }
        if (options->action == NULL)
            options->action = arg;
        else
            options->name = arg;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static zipccl_status open_cluster(const char *name, const char *folder,
                                  const struct options *options, struct zipccl_cluster_file **file,
                                  struct zipccl_cluster *cluster, struct zipccl_error *error)
{
    ZIPCCL_TRY(zipccl_cluster_open_with(name, folder, options->sets, options->nsets, file, error));
    return zipccl_cluster_get(*file, cluster, error);
}

static void show_setting(const struct zipccl_cluster_setting *setting)
{
    printf("%-26s %-14s %-7s %s\n", setting->key, setting->text, setting->unit, setting->source);
}

static zipccl_status show(const char *folder, const struct options *options,
                          struct zipccl_error *error)
{
    struct zipccl_cluster_file *file;
    struct zipccl_cluster cluster;
    size_t n;

    ZIPCCL_TRY(open_cluster(options->name, folder, options, &file, &cluster, error));
    const struct zipccl_cluster_setting *settings = zipccl_cluster_settings(file, &n);

    printf("%s: %s\n%u nodes of %u GPUs\n\n", cluster.name, cluster.description, cluster.nodes,
           cluster.gpus_per_node);
    printf("%-26s %-14s %-7s %s\n", "key", "value", "base", "source");
    for (size_t i = 0; i < n; i++)
        show_setting(&settings[i]);
    zipccl_cluster_close(file);
    return ZIPCCL_OK;
}

/* Key, value and source a line, with tabs between: models/cluster_plain.c reads it. */
static zipccl_status plain(const char *folder, const struct options *options,
                           struct zipccl_error *error)
{
    struct zipccl_cluster_file *file;
    struct zipccl_cluster cluster;
    size_t n;

    ZIPCCL_TRY(open_cluster(options->name, folder, options, &file, &cluster, error));
    const struct zipccl_cluster_setting *settings = zipccl_cluster_settings(file, &n);

    printf("# a cluster of zipccl as plain text: key, value and source, with tabs between\n");
    printf("name\t%s\ndescription\t%s\n", cluster.name, cluster.description);
    for (size_t i = 0; i < n; i++)
        printf("%s\t%s\t%s\n", settings[i].key, settings[i].text, settings[i].source);
    zipccl_cluster_close(file);
    return ZIPCCL_OK;
}

static zipccl_status check(const char *folder, const struct options *options,
                           struct zipccl_error *error)
{
    struct zipccl_cluster_file *file;
    struct zipccl_cluster cluster;

    ZIPCCL_TRY(open_cluster(options->name, folder, options, &file, &cluster, error));
    printf("%s: ok: %s, %u nodes of %u GPUs\n", options->name, cluster.name, cluster.nodes,
           cluster.gpus_per_node);
    zipccl_cluster_close(file);
    return ZIPCCL_OK;
}

static zipccl_status list(const char *folder, const struct options *options,
                          struct zipccl_error *error)
{
    zipccl_status status = ZIPCCL_OK;
    char **names;
    size_t n;

    ZIPCCL_TRY(zipccl_cluster_names(folder, &names, &n, error));
    for (size_t i = 0; status == ZIPCCL_OK && i < n; i++) {
        struct zipccl_cluster_file *file;
        struct zipccl_cluster cluster;

        status = open_cluster(names[i], folder, options, &file, &cluster, error);
        if (status != ZIPCCL_OK)
            break;
        printf("%-20s %3u x %-3u %s\n", names[i], cluster.nodes, cluster.gpus_per_node,
               cluster.description);
        zipccl_cluster_close(file);
    }
    zipccl_cluster_names_free(names, n);
    return status;
}

static int run(const struct options *options)
{
    static const char *const actions[] = {"list", "show", "plain", "check", "fit", NULL};
    struct zipccl_error error = {""};
    char folder[4096];
    zipccl_status status;

    if (options->action == NULL)
        return zipccl_usage_error(program, "cluster: say list, show, plain, check or fit");
    const char *nearest = zipccl_nearest_name(options->action, actions);
    bool is_list = strcmp(options->action, "list") == 0;
    bool is_show = strcmp(options->action, "show") == 0;
    bool is_plain = strcmp(options->action, "plain") == 0;

    if (!is_list && !is_show && !is_plain && strcmp(options->action, "check") != 0)
        return zipccl_usage_error(program, "cluster: unknown action '%s'; %s%s%s", options->action,
                                  nearest != NULL ? "did you mean '"
                                                  : "say list, show, plain, check or fit",
                                  nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
    if (is_list && options->name != NULL)
        return zipccl_usage_error(program, "cluster list: unexpected argument '%s'", options->name);
    if (!is_list && options->name == NULL)
        return zipccl_usage_error(program, "cluster %s: name a cluster or a file", options->action);
    status = zipccl_cluster_folder(options->cluster_dir, folder, sizeof folder, &error);
    if (status == ZIPCCL_OK)
        status = is_list    ? list(folder, options, &error)
                 : is_show  ? show(folder, options, &error)
                 : is_plain ? plain(folder, options, &error)
                            : check(folder, options, &error);
    return status == ZIPCCL_OK ? ZIPCCL_EXIT_OK : zipccl_print_error(program, status, &error);
}

int zipccl_cluster_command(int argc, char **argv)
{
    static const struct argp argp = {
        option_table, parse_option, "list|show NAME|plain NAME|check FILE|fit ROWS...", doc, NULL,
        NULL,         NULL};
    struct options options = {0};
    bool helped;

    if (argc > 1 && strcmp(argv[1], "fit") == 0) {
#ifdef ZIPCCL_HAVE_CLUSTER_FIT
        return zipccl_cluster_fit_command(argc - 1, argv + 1);
#else
        return zipccl_usage_error(program, "cluster fit: this build has no GSL, which fits");
#endif
    }
    int code =
        zipccl_parse_options(&argp, argc, argv, program, "zipccl cluster", &options, &helped);

    return code != ZIPCCL_EXIT_OK || helped ? code : run(&options);
}
