/*
 * gate_sites.c - the steps of a plan at a gate: what is looked at, what would be sent again, what uses it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/gate.h"

#include <stdlib.h>

size_t zipccl_gate_table_bytes(size_t messages)
{
    return messages * (sizeof(struct zipccl_gate_copy) + ZIPCCL_GPU_WIRE_ALIGN);
}

size_t zipccl_gate_result_bytes(void)
{
    return sizeof(struct zipccl_gpu_result) + ZIPCCL_GPU_WIRE_ALIGN;
}

/* Where results that have been fetched to the host lie on the device. */
static const struct zipccl_gpu_result *on_device(const struct zipccl_exec_cuda *e,
                                                 const struct zipccl_gpu_result *h)
{
    const struct zipccl_cuda_region *results = &e->arena->results;

    if (h == NULL)
        return NULL;
    return (const void *)(results->d + ((const char *)h - results->h));
}

zipccl_status zipccl_gate_coded(struct zipccl_exec_cuda *e, const struct zipccl_run_state *s,
                                const struct zipccl_step *step)
{
    const struct zipccl_slot_state *slot = &s->slots[step->dst.slot];
    struct zipccl_gate_call *call = e->gate->call;

    if (step->form != ZIPCCL_FORM_FIXED) /* the host reads its size before it goes */
        return ZIPCCL_OK;
    if (call->ncoded + slot->nslices > call->room_coded) {
        size_t room = 2 * (call->ncoded + slot->nslices);
        struct zipccl_gate_coded *more = realloc(call->coded, room * sizeof *more);

        if (more == NULL)
            return ZIPCCL_ERR_NOMEM;
        call->coded = more;
        call->room_coded = room;
    }
    for (size_t i = 0; i < slot->nslices; i++)
        call->coded[call->ncoded++] =
            (struct zipccl_gate_coded){.n = slot->slices[i].n,
                                       .capacity = slot->slices[i].capacity,
                                       .to = slot->encoded[i] / step->nblocks,
                                       .h = &e->seen[i]};
    return ZIPCCL_OK;
}

/* Whether 'step', a RESOLVE, looks at a message of member 'p'. */
static bool arrives(const struct zipccl_run_state *s, const struct zipccl_step *step,
                    const struct zipccl_group *g, uint32_t p, uint32_t b)
{
    return zipccl_step_receives(s, step, g, p, b) &&
           zipccl_step_codes(s, step, zipccl_step_n_in(s, step, g, p, b),
                             zipccl_step_class_in(s, step, p));
}

/* The flag of what this rank sends to member 'p'; -1: it was no message, and never goes again. */
static int64_t flag_out(const struct zipccl_run_state *s, const struct zipccl_gate_site *site,
                        const struct zipccl_step *step, const struct zipccl_group *g, uint32_t p,
                        uint32_t b)
{
    const struct zipccl_slot_state *slot = &s->slots[step->src.slot];
    uint32_t index = zipccl_index_out(step, g, p, b);

    if (site->shared)
        return ZIPCCL_GATE_ALWAYS;
    for (size_t i = 0; i < slot->nslices; i++)
        if (slot->encoded[i] == index)
            return (int64_t)(site->nin + i);
    return -1;
}

static void add_send(const struct zipccl_run_state *s, struct zipccl_gate_site *site,
                     const struct zipccl_step *raw, const struct zipccl_group *g, uint32_t p,
                     uint32_t b, int64_t flag)
{
    if (flag < 0 || !zipccl_step_sends(s, raw, g, p, b))
        return;
    site->posts[site->nposts++] = (struct zipccl_gate_post){
        .peer = zipccl_group_rank(g, p),
        .flag = (uint32_t)flag,
        .send = true,
        .buf = (void *)(uintptr_t)zipccl_place_from(s, &raw->src, g, site->shared ? g->self : p, b),
        .nbytes = zipccl_step_n_out(s, raw, g, p, b) * s->element};
}

static void add_recv(const struct zipccl_run_state *s, struct zipccl_gate_site *site,
                     const struct zipccl_step *raw, const struct zipccl_group *g, uint32_t p,
                     uint32_t b, int64_t flag)
{
    if (flag < 0 || !zipccl_step_receives(s, raw, g, p, b))
        return;
    site->posts[site->nposts++] =
        (struct zipccl_gate_post){.peer = zipccl_group_rank(g, p),
                                  .flag = (uint32_t)flag,
                                  .buf = zipccl_place_to(s, &raw->dst, g, p, b),
                                  .nbytes = zipccl_step_n_in(s, raw, g, p, b) * s->element};
}

/* The messages of the raw exchange, in the order in which executor_wire.c posts them. */
static void add_posts(const struct zipccl_run_state *s, struct zipccl_gate_site *site,
                      const struct zipccl_step *step, const struct zipccl_step *raw,
                      const struct zipccl_group *g, const int64_t *flag_in)
{
    for (uint32_t i = 1; i <= g->size; i++)
        for (uint32_t b = 0; b < g->nblocks; b++) {
            uint32_t p = (g->self + i) % g->size;

            add_send(s, site, raw, g, p, b, flag_out(s, site, step, g, p, b));
            add_recv(s, site, raw, g, p, b,
                     site->shared ? ZIPCCL_GATE_ALWAYS : flag_in[p * g->nblocks + b]);
        }
}

/* Messages that arrive: they are in e->list, in this order. */
static zipccl_status add_arriving(struct zipccl_exec_cuda *e, const struct zipccl_run_state *s,
                                  struct zipccl_gate_site *site, const struct zipccl_step *step,
                                  const struct zipccl_step *raw, const struct zipccl_group *g,
                                  int64_t *flag_in)
{
    uint32_t k = 0;

    for (uint32_t p = 0; p < g->size; p++)
        for (uint32_t b = 0; b < g->nblocks; b++) {
            flag_in[p * g->nblocks + b] = -1;
            if (!arrives(s, step, g, p, b))
                continue;
            if (k == site->nin)
                return ZIPCCL_ERR_INTERNAL;
            site->wire[k] = e->list[k].wire;
            site->n[k] = e->list[k].n;
            site->from[k] = p;
            site->raw[k] = zipccl_place_from(s, &raw->dst, g, p, b);
            flag_in[p * g->nblocks + b] = k++;
        }
    return k == site->nin ? ZIPCCL_OK : ZIPCCL_ERR_INTERNAL;
}

static void add_ring(const struct zipccl_run_state *s, struct zipccl_gate_site *site,
                     const struct zipccl_step *raw, const struct zipccl_group *g)
{
    site->ring_nbytes = raw->n * s->element;
    site->broadcast = raw->pattern == ZIPCCL_PATTERN_BROADCAST;
    site->root = raw->root;
    site->ring_src = zipccl_place_from(s, &raw->src, g, g->self, 0);
    site->ring_dst = zipccl_place_to(s, &raw->dst, g, 0, 0);
    if (site->broadcast && s->rank == raw->root) /* which only reads it there */
        site->ring_dst = (void *)(uintptr_t)site->ring_src;
    else if (site->broadcast)
        site->ring_src = site->ring_dst;
}

static zipccl_status fill(struct zipccl_exec_cuda *e, const struct zipccl_run_state *s,
                          struct zipccl_gate_site *site, const struct zipccl_step *step,
                          const struct zipccl_step *raw)
{
    struct zipccl_group g = zipccl_step_group(s, step);
    size_t messages = (size_t)g.size * g.nblocks;
    int64_t *flag_in = calloc(messages + 1, sizeof *flag_in);
    zipccl_status status = ZIPCCL_ERR_NOMEM;

    site->wire = calloc(site->nin + 1, sizeof *site->wire);
    site->raw = calloc(site->nin + 1, sizeof *site->raw);
    site->n = calloc(site->nin + 1, sizeof *site->n);
    site->from = calloc(site->nin + 1, sizeof *site->from);
    site->posts = calloc(2 * messages + 1, sizeof *site->posts);
    if (flag_in != NULL && site->wire != NULL && site->raw != NULL && site->n != NULL &&
        site->from != NULL && site->posts != NULL)
        status = add_arriving(e, s, site, step, raw, &g, flag_in);
    if (status == ZIPCCL_OK && raw->lowering == ZIPCCL_LOWER_RING)
        add_ring(s, site, raw, &g);
    else if (status == ZIPCCL_OK)
        add_posts(s, site, step, raw, &g, flag_in);
    free(flag_in);
    return status;
}

zipccl_status zipccl_gate_look(struct zipccl_exec_cuda *e, const struct zipccl_run_state *s,
                               const struct zipccl_step *step)
{
    uint32_t resolve = (uint32_t)(step - s->plan->steps);
    const struct zipccl_slot_state *slot = &s->slots[step->src.slot];
    struct zipccl_gate_site *site;
    size_t at;

    if (s->raw_exchange[resolve] == ZIPCCL_STEP_NONE)
        return ZIPCCL_OK;
    if (e->nlist + slot->nslices > 2 * (size_t)e->gate->nranks)
        return ZIPCCL_ERR_INTERNAL; /* more than there are flags for */
    site = calloc(1, sizeof *site);
    if (site == NULL)
        return ZIPCCL_ERR_NOMEM;
    site->next = e->gate->call->sites;
    site->number = UINT32_MAX;
    e->gate->call->sites = site;
    site->resolve = resolve;
    site->shared = zipccl_step_shares_message(step);
    site->nin = (uint32_t)e->nlist;
    site->nout = (uint32_t)slot->nslices;
    site->h_in = site->nin > 0 ? e->seen : NULL;
    site->h_out = site->nout > 0 ? e->coded[step->src.slot] : NULL;
    site->d_in = on_device(e, site->h_in);
    site->d_out = on_device(e, site->h_out);
    at = zipccl_cuda_take(&e->arena->results, sizeof *site->d_any);
    site->d_any = (struct zipccl_gpu_result *)(void *)(e->arena->results.d + at);
    ZIPCCL_TRY(fill(e, s, site, step, &s->plan->steps[s->raw_exchange[resolve]]));
    return zipccl_gate_site_add(e->gate, site);
}

static struct zipccl_gate_site *site_of(const struct zipccl_exec_cuda *e, unsigned resolve)
{
    struct zipccl_gate_site *site = e->gate->call->sites;

    while (site != NULL && site->resolve != resolve)
        site = site->next;
    return site;
}

static zipccl_status driver_status(struct zipccl_exec_cuda *e, CUresult result, const char *what)
{
    return zipccl_transport_nccl_cuda(
        e->transport, result == CUDA_SUCCESS ? cudaSuccess : cudaErrorUnknown, what);
}

zipccl_status zipccl_gate_pass(struct zipccl_exec_cuda *e, unsigned resolve)
{
    const struct zipccl_gate_site *site = site_of(e, resolve);
    struct zipccl_gate *gate = e->gate;
    CUdeviceptr word = (CUdeviceptr)(uintptr_t)(gate->d_words + ZIPCCL_GATE_WORD);
    struct zipccl_gate_decide_args args = {.words = gate->d_words,
                                           .flags = gate->request->flags,
                                           .bell = &gate->request->bell,
                                           .broken = &gate->request->broken};

    if (site == NULL)
        return ZIPCCL_OK;
    if (site->nin + site->nout == 0) /* neither sends nor receives a message */
        return ZIPCCL_OK;
    args.d_in = site->d_in;
    args.d_out = site->d_out;
    args.nin = site->nin;
    args.nout = site->nout;
    args.site = site->number + 1;
    args.d_any = site->d_any;
    ZIPCCL_CUDA_TRY(e, zipccl_gate_decide(&args, e->now));
    ZIPCCL_TRY(driver_status(e, gate->wait_value(e->now, word, 1, CU_STREAM_WAIT_VALUE_GEQ),
                             "cuStreamWaitValue32"));
    /* For the next one, and for the next replay. */
    return driver_status(e, gate->write_value(e->now, word, 0, 0), "cuStreamWriteValue32");
}

/* What replaces the message at 'wire'; nothing if it is none of the site's. */
static struct zipccl_gate_copy copy_of(const struct zipccl_gate_site *site, const void *wire)
{
    for (uint32_t k = 0; k < site->nin; k++)
        if (site->wire[k] == wire)
            return (struct zipccl_gate_copy){.seen = site->shared ? site->d_any : site->d_in + k,
                                             .raw = site->raw[k]};
    return (struct zipccl_gate_copy){0};
}

/* Room for a table of 'n'; where it lies on the device is known by upload(). */
static struct zipccl_gate_copy *table(struct zipccl_exec_cuda *e, size_t n, size_t *at)
{
    struct zipccl_cuda_region *tables = &e->arena->tables;

    *at = zipccl_cuda_take(tables, n * sizeof(struct zipccl_gate_copy));
    return (struct zipccl_gate_copy *)(void *)(tables->h + *at);
}

static zipccl_status upload(struct zipccl_exec_cuda *e, size_t at, size_t n,
                            const struct zipccl_gate_copy **out)
{
    struct zipccl_cuda_region *tables = &e->arena->tables;

    ZIPCCL_CUDA_TRY(e, cudaMemcpyAsync(tables->d + at, tables->h + at, n * sizeof **out,
                                       cudaMemcpyHostToDevice, e->now));
    *out = (const struct zipccl_gate_copy *)(const void *)(tables->d + at);
    return ZIPCCL_OK;
}

zipccl_status zipccl_gate_decoded(struct zipccl_exec_cuda *e, size_t outcomes)
{
    const struct zipccl_gate_site *site = site_of(e, e->gate->step_of);
    struct zipccl_gpu_result *results =
        (struct zipccl_gpu_result *)(void *)(e->arena->outcomes.d + outcomes);
    const struct zipccl_gate_copy *d_copies;
    struct zipccl_gate_copy *copies;
    size_t at;

    if (site == NULL || e->nlist == 0)
        return ZIPCCL_OK;
    copies = table(e, e->nlist, &at);
    for (size_t i = 0; i < e->nlist; i++) {
        copies[i] = copy_of(site, e->list[i].wire);
        copies[i].elements = e->list[i].elements;
        copies[i].nbytes = e->list[i].n * e->gate->call->element;
        copies[i].result = results + i;
    }
    ZIPCCL_TRY(upload(e, at, e->nlist, &d_copies));
    ZIPCCL_CUDA_TRY(e, zipccl_gate_copies(d_copies, (uint32_t)e->nlist, e->nsms, e->now));
    return ZIPCCL_OK;
}

zipccl_status zipccl_gate_summed(struct zipccl_exec_cuda *e, const struct zipccl_term *terms,
                                 struct zipccl_gpu_term *d_terms, size_t nterms)
{
    const struct zipccl_gate_site *site = site_of(e, e->gate->step_of);
    const struct zipccl_gate_copy *d_copies;
    struct zipccl_gate_copy *copies;
    size_t at;

    if (site == NULL)
        return ZIPCCL_OK;
    copies = table(e, nterms, &at);
    for (size_t t = 0; t < nterms; t++)
        copies[t] =
            terms[t].is_message ? copy_of(site, terms[t].bytes) : (struct zipccl_gate_copy){0};
    ZIPCCL_TRY(upload(e, at, nterms, &d_copies));
    ZIPCCL_CUDA_TRY(e, zipccl_gate_terms(d_copies, d_terms, (uint32_t)nterms, e->now));
    return ZIPCCL_OK;
}
