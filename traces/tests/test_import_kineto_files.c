/*
 * test_import_kineto_files.c - profiler files against numbers that were computed apart
 *
 * The files are other people's and no part of the project: without them the tests skip.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_kineto.h"
#include "traces/tests/scratch.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yajl/yajl_tree.h>

TestSuite(kineto_files, .fini = scratch_remove);

/* Beside the project, or beside the folder of a second working tree. */
static const char *const folders[] = {"../shared/data/traces", "../../shared/data/traces"};

static const char *folder(void)
{
    char path[SCRATCH_PATH];

    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/EXPECTED.json", folders[i]);
        if (access(path, R_OK) == 0)
            return folders[i];
    }
    cr_skip_test("no %s", folders[0]);
    return NULL;
}

static yajl_val get(yajl_val node, const char *key, yajl_type type)
{
    const char *path[] = {key, NULL};
    yajl_val value = yajl_tree_get(node, path, type);

    cr_assert_not_null(value, "EXPECTED.json lacks %s", key);
    return value;
}

static const char *text_of(yajl_val value)
{
    const char *text = YAJL_GET_STRING(value);

    cr_assert_not_null(text);
    return text != NULL ? text : "";
}

static uint64_t get_uint(yajl_val node, const char *key)
{
    return (uint64_t)YAJL_GET_INTEGER(get(node, key, yajl_t_number));
}

/* "A.tar.gz#B" is file B in A: it is unpacked beside the test. */
static void place_file(const char *name, char path[SCRATCH_PATH])
{
    const char *mark = strchr(name, '#');
    char command[3 * SCRATCH_PATH];

    snprintf(path, SCRATCH_PATH, "%s/%s", folder(), name);
    if (mark == NULL)
        return;
    snprintf(command, sizeof command, "tar -xzOf '%s/%.*s' '%s' >'%s/member.json'", folder(),
             (int)(mark - name), name, mark + 1, scratch_folder());
    cr_assert_eq(system(command), 0, "%s", command);
    scratch_path(path, "member.json");
}

static uint64_t bytes_of(const struct kineto_meta *m)
{
    enum zipccl_dtype dtype;
    uint32_t factor;

    cr_assert(kineto_dtype_of(m->dtype, &dtype, &factor), "%s", m->dtype);
    return (m->in > m->out ? m->in : m->out) * factor * zipccl_dtype_size(dtype);
}

/* One row: source, name, type, elements in and out, group size, how often. */
static void compare_call(const struct kineto_file *f, yajl_val row)
{
    yajl_val *v = row->u.array.values;
    bool kernel = strcmp(text_of(v[0]), "kernel") == 0;
    int64_t n = 0;

    for (size_t i = 0; i < f->nmetas; i++) {
        const struct kineto_meta *m = &f->metas[i];

        n += m->source == (kernel ? KINETO_FROM_KERNEL : KINETO_FROM_CPU) && m->sized &&
             m->coll == kineto_coll_of(text_of(v[1])) && strcmp(m->dtype, text_of(v[2])) == 0 &&
             m->in == (uint64_t)YAJL_GET_INTEGER(v[3]) &&
             m->out == (uint64_t)YAJL_GET_INTEGER(v[4]) &&
             m->size == (uint64_t)YAJL_GET_INTEGER(v[5]);
    }
    cr_expect_eq(n, YAJL_GET_INTEGER(v[6]), "%s %s", text_of(v[0]), text_of(v[1]));
}

static void compare_streams(const struct kineto_file *f, yajl_val streams)
{
    size_t n = 0;

    for (size_t i = 0; i < f->nstreams; i++)
        n += f->streams[i].comm_ns > 0;
    cr_expect_eq(n, streams->u.array.len);
    for (size_t k = 0; k < streams->u.array.len; k++) {
        long long number = atoll(text_of(streams->u.array.values[k]));
        bool found = false;

        for (size_t i = 0; i < f->nstreams; i++)
            found |= f->streams[i].number == number && f->streams[i].comm_ns > 0;
        cr_expect(found, "stream %lld", number);
    }
}

static void compare_file(const char *name, yajl_val expected)
{
    const char *span[] = {"gpu_span_us", NULL};
    struct zipccl_error error = {""};
    struct kineto_file f;
    uint64_t with_metadata = 0, nbytes = 0;
    yajl_val rows = get(expected, "colls", yajl_t_array), v;
    char path[SCRATCH_PATH];

    place_file(name, path);
    cr_assert_eq(kineto_read(path, &f, &error), ZIPCCL_OK, "%s", error.text);
    for (size_t i = 0; i < f.nmetas; i++) {
        with_metadata += f.metas[i].sized && f.metas[i].source != KINETO_FROM_ANNOTATION;
        if (f.metas[i].sized && f.metas[i].source == KINETO_FROM_KERNEL)
            nbytes += bytes_of(&f.metas[i]);
    }
    cr_expect_eq(f.nevents, get_uint(expected, "events"), "%s", name);
    cr_expect_eq(f.rank, (int64_t)get_uint(expected, "rank"), "%s", name);
    cr_expect_eq(f.world, (int64_t)get_uint(expected, "world_size"), "%s", name);
    cr_expect_eq(f.nkernels, get_uint(expected, "kernels"), "%s", name);
    cr_expect_eq(f.nnccl, get_uint(expected, "nccl_kernels"), "%s", name);
    cr_expect(fabs(1e-3 * (double)f.nccl_ns -
                   YAJL_GET_DOUBLE(get(expected, "nccl_kernel_us", yajl_t_number))) < 1e-3 ||
                  f.nccl_ns == 0,
              "%s: %ld ns", name, (long)f.nccl_ns);
    cr_expect_eq(f.nsteps, get_uint(expected, "profiler_steps"), "%s", name);
    cr_expect_eq(with_metadata, get_uint(expected, "with_metadata"), "%s", name);
    cr_expect_eq(nbytes, get_uint(expected, "kernel_bytes_max_in_out"), "%s", name);
    compare_streams(&f, get(expected, "nccl_streams", yajl_t_array));
    for (size_t i = 0; i < rows->u.array.len; i++)
        compare_call(&f, rows->u.array.values[i]);
    v = yajl_tree_get(expected, span, yajl_t_number);
    if (v != NULL) /* computed in doubles, so to a few nanoseconds */
        cr_expect(fabs(1e-3 * (double)(f.kernel_last_ns - f.kernel_first_ns) - YAJL_GET_DOUBLE(v)) <
                      5e-3,
                  "%s", name);
    kineto_file_free(&f);
}

static yajl_val read_expected(char **text)
{
    char message[200], path[SCRATCH_PATH];
    yajl_val tree;

    snprintf(path, sizeof path, "%s/EXPECTED.json", folder());
    *text = scratch_read(path, &(size_t){0});
    cr_assert_not_null(*text, "%s", path);
    tree = yajl_tree_parse(*text, message, sizeof message);
    cr_assert_not_null(tree, "%s", message);
    return tree;
}

Test(kineto_files, what_is_read_is_as_expected)
{
    char *text;
    yajl_val tree = read_expected(&text);
    size_t n = 0;

    for (size_t i = 0; i < tree->u.object.len; i++)
        if (strncmp(tree->u.object.keys[i], "kineto/", 7) == 0) {
            compare_file(tree->u.object.keys[i], tree->u.object.values[i]);
            n++;
        }
    cr_expect_eq(n, 12);
    yajl_tree_free(tree);
    free(text);
}

/* 15 all-reduces and 6 broadcasts of one rank of two, in three steps. */
Test(kineto_files, a_ddp_step_is_imported_whole)
{
    struct zipccl_import_report report;
    struct zipccl_error error = {""};
    struct zipccl_trace *trace;
    char path[SCRATCH_PATH];
    const char *paths[] = {path};
    double recorded = 0, compute = 0;
    uint64_t nbytes = 0, calls = 0;

    snprintf(path, sizeof path, "%s/kineto/hta_nccl_data_ddp2_rank0.json.gz", folder());
    cr_assert_eq(zipccl_import_to_memory(NULL, paths, 1, NULL, &report, &trace, &error), ZIPCCL_OK,
                 "%s", error.text);
    cr_expect_str_eq(report.format, "kineto");
    for (size_t i = 0; i < trace->nevents; i++) {
        const struct zipccl_event *e = &trace->events[i];

        if (e->kind == ZIPCCL_EVENT_COMPUTE) {
            compute += e->duration_s;
            continue;
        }
        calls++;
        recorded += e->recorded_s;
        nbytes += e->count * zipccl_dtype_size(e->dtype);
    }
    cr_expect_eq(calls, 21);
    cr_expect_eq(nbytes, 307323096u);
    cr_expect(fabs(recorded - 46876.493e-6) < 1e-9, "%.9f", recorded);
    /* The host holds this rank up, so that little of its communication is exposed. */
    cr_expect(compute > 0.6 && compute < trace->header.recorded_step_s, "%g", compute);
    zipccl_trace_destroy(trace);
    zipccl_import_report_free(&report);
}

/* Eight ranks: the time in kernels is mostly waiting, the shortest of each call is not. */
Test(kineto_files, eight_dlrm_ranks_share_their_calls)
{
    struct zipccl_import_report report;
    struct zipccl_error error = {""};
    struct zipccl_trace *trace;
    char command[3 * SCRATCH_PATH], **files;
    double recorded = 0;
    uint64_t calls = 0;
    size_t n;

    snprintf(command, sizeof command,
             "tar -xzf '%s/kineto/param_dlrm_kineto_8ranks.tar.gz' -C '%s'"
             " --strip-components=1",
             folder(), scratch_folder());
    cr_assert_eq(system(command), 0, "%s", command);
    cr_assert_eq(zipccl_import_files(scratch_folder(), &files, &n, &error), ZIPCCL_OK, "%s",
                 error.text);
    cr_assert_eq(n, 8);
    cr_assert_eq(
        zipccl_import_to_memory(NULL, (const char *const *)files, n, NULL, &report, &trace, &error),
        ZIPCCL_OK, "%s", error.text);
    cr_expect_eq(trace->header.nranks, 8);
    for (size_t i = 0; i < trace->nevents; i++)
        if (trace->events[i].kind == ZIPCCL_EVENT_COLLECTIVE) {
            calls++;
            recorded += trace->events[i].recorded_s;
        }
    cr_expect_eq(calls, 8);
    /* 48,542 us of kernels on 8 ranks, of which the shortest of each call make 217 us. */
    cr_expect(recorded > 100e-6 && recorded < 400e-6, "%g", recorded);
    zipccl_trace_destroy(trace);
    zipccl_import_report_free(&report);
    zipccl_import_files_free(files, n);
}

Test(kineto_files, a_gloo_file_says_what_it_lacks)
{
    struct zipccl_error error = {""};
    struct zipccl_trace *trace;
    char path[SCRATCH_PATH];
    const char *paths[] = {path};

    snprintf(path, sizeof path, "%s/kineto/hta_gloo300_rank34.json.gz", folder());
    cr_assert_eq(zipccl_import_to_memory(NULL, paths, 1, NULL, NULL, &trace, &error),
                 ZIPCCL_ERR_INPUT);
    cr_expect_not_null(strstr(error.text, "backend gloo"), "%s", error.text);
    cr_expect_not_null(strstr(error.text, "ProfilerActivity.CUDA"), "%s", error.text);
}
