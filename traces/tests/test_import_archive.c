/*
 * test_import_archive.c - tar archives as folders of files, and files that are no trace
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_archive.h"
#include "traces/import_et.h"
#include "traces/tests/expected.h"
#include "traces/tests/scratch.h"

#include <archive.h>
#include <archive_entry.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

TestSuite(import_archive, .fini = scratch_remove);

static struct zipccl_import_report report;
static struct zipccl_error error;
static struct archive *out;

#define CALLS(rank)                                                                                \
    "h:1" rank ":7 [" rank "] NCCL INFO AllGather: opCount a sendbuff 0x1 recvbuff 0x2 count 8 "   \
    "datatype 9 op 0 root 0 comm 0x1 [nranks=2] stream 0x5 task 0 globalrank " rank "\n"

static void begin(const char *path)
{
    out = archive_write_new();
    archive_write_add_filter_gzip(out);
    archive_write_set_format_ustar(out);
    cr_assert_eq(archive_write_open_filename(out, path), ARCHIVE_OK);
}

static void put(const char *name, unsigned type, const char *bytes, size_t n)
{
    struct archive_entry *e = archive_entry_new();

    archive_entry_set_pathname(e, name);
    archive_entry_set_filetype(e, type);
    archive_entry_set_perm(e, 0644);
    archive_entry_set_size(e, type == AE_IFREG ? (la_int64_t)n : 0);
    if (type == AE_IFLNK)
        archive_entry_set_symlink(e, bytes);
    cr_assert_eq(archive_write_header(out, e), ARCHIVE_OK);
    if (type == AE_IFREG)
        archive_write_data(out, bytes, n);
    archive_entry_free(e);
}

static void put_text(const char *name, const char *text)
{
    put(name, AE_IFREG, text, strlen(text));
}

static void end(void)
{
    archive_write_close(out);
    archive_write_free(out);
}

static zipccl_status try_import(const char *path, struct zipccl_trace **trace)
{
    const char *paths[] = {path};

    *trace = NULL;
    zipccl_import_report_free(&report);
    error.text[0] = '\0';
    return zipccl_import_to_memory(NULL, paths, 1, NULL, &report, trace, &error);
}

Test(import_archive, stands_for_the_files_that_are_known)
{
    char path[SCRATCH_PATH];
    unsigned char packed[1000];
    struct zipccl_trace *t;
    z_stream z = {.next_in = (unsigned char *)CALLS("1"),
                  .avail_in = sizeof CALLS("1") - 1,
                  .next_out = packed,
                  .avail_out = sizeof packed};

    deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    deflate(&z, Z_FINISH);
    deflateEnd(&z);
    begin(scratch_path(path, "job.tar.gz"));
    put("logs/", AE_IFDIR, "", 0);
    put_text("logs/README", "no log\n");
    put_text("logs/._log.0", CALLS("0"));
    put("logs/link", AE_IFLNK, "/etc/passwd", 0);
    put("logs/log.1.gz", AE_IFREG, (char *)packed, sizeof packed - z.avail_out);
    put_text("logs/log.0", CALLS("0"));
    end();
    cr_assert_eq(try_import(path, &t), ZIPCCL_OK, "%s", error.text);
    cr_expect_str_eq(report.format, "nccl");
    cr_expect(t->nevents == 1 && t->header.nranks == 2);
    cr_expect_str_eq(t->header.name, "logs");
    cr_expect_str_eq(t->path, path);
    cr_expect_eq(expected_counted(&report, "other members"), 1, "the README");
    zipccl_trace_destroy(t);
}

Test(import_archive, errors_name_archive_and_member)
{
    static const char *const names[] = {"a/log", "../../log", "/tmp/log", "log"};

    for (size_t i = 0; i < 4; i++) {
        char path[SCRATCH_PATH], want[SCRATCH_PATH + 40];
        struct zipccl_trace *t;

        begin(scratch_path(path, "bad.tgz"));
        put_text(names[i], "x NCCL INFO nothing\n");
        end();
        cr_expect_eq(try_import(path, &t), ZIPCCL_ERR_INPUT);
        /* Wherever a member wants to lie, it does not. */
        snprintf(want, sizeof want, "%s:%s: no line with a call", path,
                 i == 0   ? "a/log"
                 : i == 2 ? "tmp/log"
                          : "bad/log");
        cr_expect_not_null(strstr(error.text, want), "%s, not %s", error.text, want);
    }
}

static bool any(const char *head, size_t nbytes)
{
    (void)head;
    return nbytes > 0;
}

Test(import_archive, what_was_unpacked_is_removed)
{
    char path[SCRATCH_PATH], folder[40], file[200];
    const char *paths[] = {path};
    struct zipccl_unpacked u;

    begin(scratch_path(path, "two.tar.gz"));
    put_text("b", "2");
    put_text("a", "1");
    end();
    cr_assert_eq(zipccl_archive_unpack(paths, 1, any, &u, &error), ZIPCCL_OK, "%s", error.text);
    cr_assert_eq(u.n, 2);
    cr_expect_not_null(strstr(u.files[0], "/two/a"), "by name: %s", u.files[0]);
    strcpy(folder, u.folder);
    strcpy(file, u.files[0]);
    cr_expect_eq(access(file, R_OK), 0);
    zipccl_archive_remove(&u);
    cr_expect_neq(access(file, F_OK), 0);
    cr_expect_neq(access(folder, F_OK), 0);
}

Test(import_archive, broken_and_useless_ones_are_refused)
{
    char path[SCRATCH_PATH], *bytes;
    struct zipccl_trace *t;
    char format[ZIPCCL_IMPORT_NAME_SIZE];
    size_t n;

    begin(scratch_path(path, "none.tar.gz"));
    put_text("a/readme", "hello\n");
    end();
    cr_expect_eq(try_import(path, &t), ZIPCCL_ERR_INPUT);
    cr_expect_not_null(strstr(error.text, "a tar archive without a file of a known format"), "%s",
                       error.text);
    cr_expect_eq(zipccl_import_detect(path, format, sizeof format, &error), ZIPCCL_ERR_INPUT);
    begin(path);
    put_text("a/log.0", CALLS("0"));
    for (int i = 0; i < 2000; i++) {
        char name[24];

        snprintf(name, sizeof name, "a/%d", i * 7919);
        put_text(name, "other\n");
    }
    end();
    cr_expect_eq(zipccl_import_detect(path, format, sizeof format, &error), ZIPCCL_OK);
    cr_expect_str_eq(format, "nccl");
    bytes = scratch_read(path, &n);
    scratch_write(path, "none.tar.gz", bytes, n / 2);
    free(bytes);
    cr_expect_eq(try_import(path, &t), ZIPCCL_ERR_INPUT);
    cr_expect_not_null(strstr(error.text, "a broken tar archive"), "%s", error.text);
}

Test(import_archive, measurements_of_nccl_tests_are_no_trace)
{
    static const char *const texts[] = {
        "# nThread 1 nGpus 8 minBytes 8 maxBytes 8 step: 2\n",
        "#       size  count  type  redop  time   algbw   busbw\n#  out-of-place  in-place\n",
        "{\"version\": 1, \"start_time\": \"x\", \"args\": [], \"env\": []"};

    for (size_t i = 0; i < 3; i++) {
        char path[SCRATCH_PATH];
        struct zipccl_trace *t;

        scratch_write(path, "all_reduce.log", texts[i], strlen(texts[i]));
        cr_expect_eq(try_import(path, &t), ZIPCCL_ERR_INPUT);
        cr_expect_not_null(strstr(error.text, "zipccl cluster fit"), "%s", error.text);
    }
}

static void compare_et(const char *member)
{
    yajl_val expected = expected_of(member), rows = expected_get(expected, "comms", yajl_t_array);
    struct kineto_file f;
    char path[SCRATCH_PATH];
    const char *slash = strrchr(member, '/');

    snprintf(path, sizeof path, "%s%s", scratch_folder(), slash);
    cr_assert_eq(et_read(path, &f, &error), ZIPCCL_OK, "%s", error.text);
    cr_expect_eq(f.nevents, expected_uint(expected, "nodes"));
    cr_expect_eq(f.nmetas, expected_uint(expected, "record_param_comms"));
    cr_expect_eq(f.rank, slash[strlen(slash) - 6] - '0', "%s", slash);
    for (size_t i = 0; i < rows->u.array.len; i++) {
        yajl_val *row = rows->u.array.values[i]->u.array.values;
        size_t n = 0;

        for (size_t k = 0; k < f.nmetas; k++)
            n += strcmp(f.metas[k].name, row[0]->u.string) == 0;
        cr_expect_eq(n, YAJL_GET_DOUBLE(row[1]), "%s", row[0]->u.string);
    }
    kineto_file_free(&f);
}

static void unpack(const char *name)
{
    struct archive *a = archive_read_new();
    struct archive_entry *e;
    char path[SCRATCH_PATH];

    snprintf(path, sizeof path, "%s/%s", expected_folder(), name);
    archive_read_support_filter_gzip(a);
    archive_read_support_format_tar(a);
    cr_assert_eq(archive_read_open_filename(a, path, 65536), ARCHIVE_OK);
    while (archive_read_next_header(a, &e) == ARCHIVE_OK) {
        const char *slash = strrchr(archive_entry_pathname(e), '/');
        size_t n = (size_t)archive_entry_size(e);
        char *bytes = malloc(n + 1);

        cr_assert_eq(archive_read_data(a, bytes, n), (la_ssize_t)n);
        if (slash != NULL && slash[1] != '\0')
            scratch_write(path, slash + 1, bytes, n);
        free(bytes);
    }
    archive_read_free(a);
}

/* Eight ranks, of which the profiles have times and no sizes, the execution traces the sizes. */
Test(import_archive, public_archives_are_as_expected)
{
    static const char et[] = "pytorch_et/dlrm_et_1.0.1_8ranks.tar.gz";
    static const char kineto[] = "kineto/param_dlrm_kineto_8ranks.tar.gz";
    struct zipccl_trace *t = expected_import(et, "pytorch-et", &report);
    char a[SCRATCH_PATH], b[SCRATCH_PATH];
    const char *both[] = {a, b};

    cr_expect_eq(t->header.nranks, 8);
    cr_expect_str_eq(t->header.name, "dlrm_pytorch_et");
    cr_expect_eq(report.ncollectives, 8);
    cr_expect_eq(t->header.nsplits, 3);
    zipccl_trace_destroy(t);
    unpack(et);
    for (int r = 0; r < 8; r++) {
        char member[SCRATCH_PATH];

        snprintf(member, sizeof member, "%s#dlrm_pytorch_et/dlrm_eg_%d.json", et, r);
        compare_et(member);
    }
    snprintf(a, sizeof a, "%s/%s", expected_folder(), kineto);
    snprintf(b, sizeof b, "%s/%s", expected_folder(), et);
    zipccl_import_report_free(&report);
    cr_assert_eq(zipccl_import_to_memory(NULL, both, 2, NULL, &report, &t, &error), ZIPCCL_OK, "%s",
                 error.text);
    cr_expect_str_eq(report.format, "kineto");
    cr_expect_eq(report.ncollectives, 8);
    cr_expect_eq(expected_counted(&report, "size from order"), 64);
    cr_expect_eq(expected_counted(&report, "cut splits"), 0);
    cr_expect_eq(t->header.nsplits, 3);
    cr_expect_gt(t->header.recorded_step_s, 0.01);
    zipccl_trace_destroy(t);
    zipccl_import_report_free(&report);
}
