/*
 * import_simai.c - imports text workloads of SimAI, AICB and ASTRA-sim 1
 *
 * Ranks are numbered tensor-parallel first, then data-parallel (expert groups are neighbours in
 * that dimension), then pipeline stages, as Megatron does.  traces/IMPORT.md has the format.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_simai.h"
#include "traces/import_simai_fold.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define GENERATOR "traces/import_simai 1"

static const char *const set_names[SIMAI_SETS] = {
    [SIMAI_TP] = "tp",       [SIMAI_DP] = "dp",           [SIMAI_EP] = "ep",
    [SIMAI_DP_EP] = "dp_ep", [SIMAI_PP_EVEN] = "pp.even", [SIMAI_PP_ODD] = "pp.odd"};

static char *const stream_names[SIMAI_SETS] = {
    [SIMAI_TP] = (char *)"nccl:tp",           [SIMAI_DP] = (char *)"nccl:dp",
    [SIMAI_EP] = (char *)"nccl:ep",           [SIMAI_DP_EP] = (char *)"nccl:dp_ep",
    [SIMAI_PP_EVEN] = (char *)"nccl:pp.even", [SIMAI_PP_ODD] = (char *)"nccl:pp.odd"};

static bool detect(const char *head, size_t nbytes)
{
    struct simai_token line = {head, nbytes}, token;
    const char *newline = memchr(head, '\n', nbytes);

    if (nbytes >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0)
        line = (struct simai_token){head + 3, nbytes - 3};
    if (newline != NULL)
        line.n = (size_t)(newline - line.p);
    return simai_next_token(&line, &token) && simai_mode_known(token);
}

/* Blocks of 'size' times 'stride' ranks from 'base' on, cut as TRACE.md says of regular sets. */
static zipccl_status make_group(struct simai_workload *w, struct zipccl_trace_group *g,
                                const char *name, uint32_t base, uint32_t nblocks, uint32_t size,
                                uint32_t stride)
{
    struct zipccl_place at = simai_place(w);
    size_t k = 0;

    g->name = name;
    g->size = size;
    g->nparts = nblocks * stride;
    g->ranks = zipccl_arena_alloc(&w->arena, (size_t)g->nparts * size, sizeof *g->ranks);
    if (g->ranks == NULL)
        return zipccl_place_nomem(&at);
    for (uint32_t block = 0; block < nblocks; block++)
        for (uint32_t first = 0; first < stride; first++)
            for (uint32_t i = 0; i < size; i++)
                g->ranks[k++] = base + block * size * stride + first + i * stride;
    return ZIPCCL_OK;
}

static zipccl_status make_set(struct simai_workload *w, enum simai_set set,
                              struct zipccl_trace_group *g)
{
    uint32_t world = (uint32_t)w->all_gpus, tp = (uint32_t)w->tp, pp = (uint32_t)w->pp;
    uint32_t stage = world / pp, size = simai_set_size(w, set), stride = 1;

    if (set == SIMAI_PP_EVEN)
        return make_group(w, g, set_names[set], 0, pp / 2, 2, stage);
    if (set == SIMAI_PP_ODD)
        return make_group(w, g, set_names[set], stage, (pp - 1) / 2, 2, stage);
    if (set == SIMAI_DP || set == SIMAI_EP)
        stride = tp;
    else if (set == SIMAI_DP_EP)
        stride = tp * (uint32_t)w->ep;
    return make_group(w, g, set_names[set], 0, world / size / stride, size, stride);
}

static void used_sets(const struct simai_workload *w, bool used[SIMAI_SETS])
{
    for (size_t i = 0; i < w->nrows; i++)
        for (int phase = 0; phase < SIMAI_PHASES; phase++)
            if (w->rows[i].part[phase].call != SIMAI_NONE)
                used[w->rows[i].part[phase].set] = true;
    used[SIMAI_PP_EVEN] = simai_has_pipeline(w);
    used[SIMAI_PP_ODD] = simai_has_pipeline(w) && w->pp > 2;
}

/* Groups and streams of the sets that some call uses. */
static zipccl_status make_sets(struct simai_workload *w, struct simai_output *out,
                               struct zipccl_trace_header *header)
{
    struct zipccl_place at = simai_place(w);
    bool used[SIMAI_SETS] = {false};

    used_sets(w, used);
    header->groups = zipccl_arena_alloc(&w->arena, SIMAI_SETS, sizeof *header->groups);
    header->streams = zipccl_arena_alloc(&w->arena, SIMAI_SETS + 1, sizeof *header->streams);
    if (header->groups == NULL || header->streams == NULL)
        return zipccl_place_nomem(&at);
    header->streams[header->nstreams++] = (char *)"compute";
    for (int set = 0; set < SIMAI_SETS; set++) {
        if (!used[set])
            continue;
        ZIPCCL_TRY(make_set(w, (enum simai_set)set, &header->groups[header->ngroups]));
        out->group[set] = header->ngroups++;
        out->stream[set] = header->nstreams;
        header->streams[header->nstreams++] = stream_names[set];
    }
    return ZIPCCL_OK;
}

/* The file's name without folder and ending; "simai" if a trace cannot bear it. */
static const char *trace_name(struct simai_workload *w)
{
    const char *path = w->importer->paths[0], *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    size_t n = strlen(name);
    char *copy;

    if (w->importer->options->name != NULL)
        return w->importer->options->name;
    if (n > 3 && strcmp(name + n - 3, ".gz") == 0)
        n -= 3;
    if (n > 4 && memcmp(name + n - 4, ".txt", 4) == 0)
        n -= 4;
    copy = zipccl_arena_string(&w->arena, name, n);
    if (copy == NULL || n == 0 || !zipccl_text_printable(copy) || !zipccl_utf8_valid(copy, n))
        return "simai";
    return copy;
}

static zipccl_status make_header(struct simai_workload *w, struct simai_output *out,
                                 struct zipccl_trace_header *header)
{
    struct zipccl_place at = simai_place(w);
    uint32_t *ranks = zipccl_arena_alloc(&w->arena, (size_t)w->all_gpus, sizeof *ranks);
    char *model = zipccl_arena_alloc(&w->arena, 1, 200);
    uint64_t micro_batches = 0;

    if (ranks == NULL || model == NULL)
        return zipccl_place_nomem(&at);
    for (uint32_t i = 0; i < (uint32_t)w->all_gpus; i++)
        ranks[i] = i;
    out->ranks = ranks;
    for (size_t i = 0; i < w->nruns; i++)
        micro_batches += w->runs[i].repeat;
    snprintf(model, 200,
             "SimAI %s, %zu layers, TP %" PRIu64 ", EP %" PRIu64 ", DP %" PRIu64 ", PP %" PRIu64
             ", %" PRIu64 " micro-batches",
             w->mode_name, w->nrows, w->tp, w->ep, w->dp, w->pp,
             micro_batches > 0 ? micro_batches : 1);
    *header = (struct zipccl_trace_header){
        .version = 1,
        .name = trace_name(w),
        .model = model,
        .provenance = "imported from a SimAI workload; times and sizes as in the file, overlap "
                      "and types assumed",
        .generator = GENERATOR,
        .nranks = (uint32_t)w->all_gpus,
        .ranks_per_node = w->importer->options->ranks_per_node,
        .recorded_step_s = -1,
        .samples = w->importer->options->samples};
    return make_sets(w, out, header);
}

static zipccl_status write_trace(struct simai_workload *w)
{
    const struct zipccl_importer *importer = w->importer;
    struct simai_output out = {.writer = NULL};
    struct zipccl_trace_header header;
    struct zipccl_place at = {importer->paths[0], 0, importer->error};
    zipccl_status status;

    ZIPCCL_TRY(make_header(w, &out, &header));
    ZIPCCL_TRY(simai_bind_samples(w, &out));
    ZIPCCL_TRY(zipccl_trace_writer_open(importer->out_path, &header, &out.writer, importer->error));
    status = simai_write_step(w, &out);
    importer->report->ncollectives = out.ncalls;
    if (status == ZIPCCL_OK && out.ncalls == 0)
        status = zipccl_place_fail(&at, "no layer calls a collective, expected one or more");
    if (status == ZIPCCL_OK)
        return zipccl_trace_writer_finish(out.writer, true, importer->error);
    zipccl_trace_writer_finish(out.writer, false, NULL);
    return status;
}

static zipccl_status run(const struct zipccl_importer *importer)
{
    struct simai_workload w = {.importer = importer};
    zipccl_status status;

    if (importer->npaths != 1)
        return zipccl_fail(importer->error, ZIPCCL_ERR_INPUT,
                           "%zu files, expected one: a SimAI workload stands for all ranks",
                           importer->npaths);
    status = simai_read(&w);
    importer->report->nlayers = w.nrows;
    if (status == ZIPCCL_OK)
        status = simai_complete(&w);
    if (status == ZIPCCL_OK)
        status = simai_count_assumptions(&w);
    if (status == ZIPCCL_OK)
        status = write_trace(&w);
    simai_free(&w);
    return status;
}

const struct zipccl_import_format zipccl_import_simai = {
    .name = "simai",
    .about = "text workload of SimAI, AICB or ASTRA-sim 1: one layer a line",
    .detect = detect,
    .run = run,
};
