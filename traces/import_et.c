/*
 * import_et.c - imports execution traces of PyTorch, one a rank, all or some of them
 *
 * They have every call with its sizes and no times: the trace is communication alone.  Beside
 * profiler files of the same step they fill what those cut; import_kineto.c asks for that.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_et.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The number before the ending: "dlrm_eg_2.json". */
static int64_t number_of_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    size_t n = strcspn(name, "."), first = n;

    while (first > 0 && name[first - 1] >= '0' && name[first - 1] <= '9')
        first--;
    return first < n && n - first < 8 ? strtoll(name + first, NULL, 10) : -1;
}

int64_t et_rank(const struct kineto_file *f, size_t nfiles)
{
    int64_t named = number_of_name(f->path);

    /* A group's own numbers are the world's only where the group is known to be all. */
    return f->rank < 0 || (f->world < 0 && nfiles > 1 && named >= 0) ? named : f->rank;
}

static zipccl_status check_file(const struct kineto_import *k, const struct kineto_file *f)
{
    struct zipccl_place at = {f->path, 0, k->importer->error};

    for (size_t i = 0; i < f->nmetas; i++)
        if (f->metas[i].coll != KINETO_WAIT && f->metas[i].coll != KINETO_INIT)
            return ZIPCCL_OK;
    return zipccl_place_fail(
        &at,
        "%" PRIu64 " nodes, none of them a call of communication, expected \"record_param_comms\": "
        "record a step of more than one rank with torch.profiler.ExecutionTraceObserver, over "
        "NCCL; "
        "a job on CPUs (gloo, MPI) is recorded by traces/capture, see docs/capture.md",
        f->nevents);
}

static zipccl_status read_rank(struct kineto_import *k, const char *path, struct kineto_rank *r)
{
    struct kineto_file file;
    zipccl_status status = et_read(path, &file, k->importer->error);

    k->importer->report->nlayers += file.nevents;
    if (status == ZIPCCL_OK)
        status = check_file(k, &file);
    file.rank = et_rank(&file, k->importer->npaths);
    if (status == ZIPCCL_OK)
        status = kineto_set_rank(k, &file, r);
    if (status == ZIPCCL_OK)
        status = kineto_make_listed(k, &file, r);
    kineto_file_free(&file);
    return status;
}

static zipccl_status import(struct kineto_import *k)
{
    struct zipccl_place at = {k->importer->paths[0], 0, k->importer->error};
    size_t ncalls = 0;

    for (; k->nranks < k->importer->npaths; k->nranks++) {
        ZIPCCL_TRY(read_rank(k, k->importer->paths[k->nranks], &k->ranks[k->nranks]));
        ncalls += k->ranks[k->nranks].ncalls;
    }
    if (ncalls == 0)
        return zipccl_place_fail(&at, "no call with op, type and size, expected one or more: "
                                      "record with PyTorch 2.4 or newer");
    ZIPCCL_TRY(zipccl_import_count(
        k->importer, false, "no times", 0, 1,
        "an execution trace has no times: the trace is communication alone, with no compute to "
        "hide it; give it together with profiler files of the same step to have both"));
    return kineto_finish(k);
}

static zipccl_status run(const struct zipccl_importer *importer)
{
    struct kineto_import k = {.importer = importer,
                              .what = "PyTorch execution trace",
                              .provenance = "imported from execution traces of PyTorch: no times",
                              .generator = "traces/import_et 1",
                              .rank_of_name = number_of_name,
                              .nstreams = 1};
    zipccl_status status = ZIPCCL_ERR_NOMEM;

    importer->report->layers = "nodes";
    k.ranks = calloc(importer->npaths + 1, sizeof *k.ranks);
    if (k.ranks != NULL)
        status = import(&k);
    else
        zipccl_fail(importer->error, status, "out of memory");
    k.nranks = importer->npaths; /* also one that failed half-way */
    kineto_import_free(&k);
    return status;
}

const struct zipccl_import_format zipccl_import_et = {
    .name = "pytorch-et",
    .about = "execution trace of PyTorch: JSON or .json.gz, one file a rank",
    .detect = et_detect,
    .run = run,
};
