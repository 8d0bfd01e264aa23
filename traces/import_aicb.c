/*
 * import_aicb.c - imports AICB's lists of calls (.csv), also measured ones
 *
 * Ranks are numbered as in import_simai.c: tensor parallel, then data parallel (expert groups are
 * neighbours in that dimension), then pipeline stages.  traces/IMPORT.md has the format.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_aicb.h"

#include "traces/json.h"
#include "traces/trace_internal.h"

#include <inttypes.h>
#include <string.h>

static bool detect(const char *head, size_t nbytes)
{
    static const char columns[] = "comm_type,comm_group,comm_group_size,msg_size";
    const char *newline;

    if (nbytes >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0)
        head += 3, nbytes -= 3;
    newline = memchr(head, '\n', nbytes);
    if (newline != NULL && nbytes > 5 && memcmp(head, "[rank", 5) == 0) {
        nbytes -= (size_t)(newline + 1 - head);
        head = newline + 1;
    }
    return nbytes >= sizeof columns - 1 && memcmp(head, columns, sizeof columns - 1) == 0;
}

uint64_t aicb_stride(const struct aicb_file *f, unsigned group)
{
    uint64_t tp = f->sizes[AICB_TP];

    switch (group) {
    case AICB_DP:
    case AICB_EP: return tp;
    case AICB_EP_DP: return tp * f->sizes[AICB_EP];
    case AICB_PP: return f->world / f->sizes[AICB_PP];
    default: return 1;
    }
}

/* The least world that all groups but the pipeline's fit into. */
static uint64_t least_world(const struct aicb_file *f)
{
    uint64_t tp = f->sizes[AICB_TP], least = f->sizes[AICB_ALL], n;

    n = tp * f->sizes[AICB_DP] * f->sizes[AICB_PP];
    least = n > least ? n : least;
    n = tp * f->sizes[AICB_EP] * f->sizes[AICB_EP_DP];
    return n > least ? n : least;
}

static zipccl_status find_world(struct aicb_file *f)
{
    const struct zipccl_import_options *o = f->importer->options;
    struct zipccl_place at = {f->importer->paths[0], 1, f->importer->error};
    uint64_t least = least_world(f);
    bool told = f->world > 0;

    if (told && o->nranks > 0 && o->nranks != f->world)
        return zipccl_place_fail(&at,
                                 "ranks 0 to %" PRIu64 ", expected a world of %" PRIu32 " as given",
                                 f->world - 1, o->nranks);
    if (!told)
        f->world = o->nranks > 0 ? o->nranks : least;
    if (!told && o->nranks == 0 && o->likely_nranks > least && o->likely_nranks % least == 0)
        f->world = o->likely_nranks;
    if (f->world > ZIPCCL_TRACE_MAX_RANKS)
        return zipccl_place_fail(&at, "a world of %" PRIu64 " ranks, expected at most %" PRIu32,
                                 f->world, ZIPCCL_TRACE_MAX_RANKS);
    if (o->ranks_per_node > 0 && f->world % o->ranks_per_node != 0)
        return zipccl_place_fail(&at,
                                 "a world of %" PRIu64 " ranks, expected a multiple of the "
                                 "%" PRIu32 " ranks per node",
                                 f->world, o->ranks_per_node);
    return zipccl_import_count(f->importer, true, "world", 0, !told && o->nranks == 0,
                               "the file does not tell the number of ranks: taken to be %" PRIu64
                               "; option nranks sets another",
                               f->world);
}

/* Older files have 1 for the size of the pipeline. */
static void find_stages(struct aicb_file *f)
{
    uint64_t stage = (uint64_t)f->sizes[AICB_TP] * f->sizes[AICB_DP];

    if (f->size_lines[AICB_PP] > 0 && f->sizes[AICB_PP] == 1 && f->world % stage == 0)
        f->sizes[AICB_PP] = (uint32_t)(f->world / stage);
}

static zipccl_status complete(struct aicb_file *f)
{
    struct zipccl_place at = {f->importer->paths[0], 0, f->importer->error};

    for (unsigned g = 0; g < AICB_GROUPS; g++)
        f->sizes[g] = f->sizes[g] == 0 ? 1 : f->sizes[g];
    ZIPCCL_TRY(find_world(f));
    find_stages(f);
    for (unsigned g = 0; g < AICB_GROUPS; g++) {
        uint64_t stride = aicb_stride(f, g);

        at.line = f->size_lines[g];
        if (at.line > 0 && (stride == 0 || f->world % (stride * f->sizes[g]) != 0))
            return zipccl_place_fail(&at,
                                     "%s of %" PRIu32 " ranks, every %" PRIu64
                                     "th one, expected groups that divide the world of %" PRIu64,
                                     aicb_group_name(g), f->sizes[g], stride, f->world);
    }
    return ZIPCCL_OK;
}

static zipccl_status count_types(const struct aicb_file *f)
{
    uint64_t n[AICB_TYPES] = {0}, init = 0, guessed = 0, rounded = f->rounded, untimed = 0;
    uint64_t timed = 0;

    for (size_t i = 0; i < f->nrows; i++) {
        const struct aicb_row *r = &f->rows[i];
        struct aicb_call call;

        init += r->init;
        if (r->init)
            continue;
        n[r->type]++;
        untimed += r->type == AICB_COMPUTATION && r->seconds < 0 && r->flops < 0;
        timed += r->type == AICB_COMPUTATION;
        if (!aicb_call_of(f, r, &call))
            continue;
        guessed += call.guessed;
        rounded += call.rounded;
    }
    ZIPCCL_TRY(
        zipccl_import_count(f->importer, true, "dtype", 0, guessed,
                            "the file has no types: parameters and activations are bf16, "
                            "gradients %s, losses and counters fp32, tokens int64; options "
                            "dtype and grad_dtype set others",
                            f->wide_gradients ? "fp32 (they take twice the bytes)" : "bf16"));
    ZIPCCL_TRY(zipccl_import_count(f->importer, true, "redop", 0,
                                   n[AICB_ALL_REDUCE] + n[AICB_REDUCE_SCATTER],
                                   "the file does not tell the operator of reductions: taken to "
                                   "be sums"));
    ZIPCCL_TRY(zipccl_import_count(f->importer, true, "rounded", 0, rounded,
                                   "sizes that are no whole number of elements for each rank: "
                                   "rounded up"));
    ZIPCCL_TRY(zipccl_import_count(f->importer, true, "other op", 0, n[AICB_REDUCE],
                                   "reduce, which a trace lacks, is left out"));
    ZIPCCL_TRY(zipccl_import_count(f->importer, true, "untimed compute", 0, untimed,
                                   "computation with neither time nor shapes is left out"));
    ZIPCCL_TRY(zipccl_import_count(f->importer, true, "pipeline", 0, n[AICB_ISEND] + n[AICB_IRECV],
                                   "sends of one stage stand for those of all, which then exchange "
                                   "at once; receives are their other ends"));
    ZIPCCL_TRY(zipccl_import_count(f->importer, false, "initialization", 0, init,
                                   "rows of the initialization are left out: they are no part of a "
                                   "step"));
    return zipccl_import_count(f->importer, false, "no times", 0, timed == untimed,
                               "the file has no computation: the trace is communication alone, "
                               "with nothing to hide it; speedups are those of communication");
}

static zipccl_status run(const struct zipccl_importer *importer)
{
    struct aicb_file f = {.importer = importer};
    zipccl_status status;

    importer->report->layers = "rows";
    if (importer->npaths != 1)
        return zipccl_fail(importer->error, ZIPCCL_ERR_INPUT,
                           "%zu files, expected one: a list of AICB stands for all ranks",
                           importer->npaths);
    status = aicb_read(&f);
    importer->report->nlayers = f.nrows;
    if (status == ZIPCCL_OK)
        status = complete(&f);
    if (status == ZIPCCL_OK)
        status = count_types(&f);
    if (status == ZIPCCL_OK)
        status = aicb_write(&f, &importer->report->ncollectives);
    aicb_free(&f);
    return status;
}

const struct zipccl_import_format zipccl_import_aicb = {
    .name = "aicb",
    .about = "list of calls of AICB (.csv), also a measured one",
    .detect = detect,
    .run = run,
};
