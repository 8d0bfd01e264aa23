/*
 * test_gpu_wire.c - what settled capacities save on the wire, by the counters of NCCL's double
 *
 * Four ranks in two nodes move a captured tensor until its class has settled.  The bytes that then cross between the
 * nodes are set against the raw ones; that ratio against the one of the codec's messages of the same data at
 * their exact sizes, and of the tensor as one message, which `zipccl codec stat` prints.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/emu.h"
#include "gpu/tests/gpu_world.h"

#include "core/codec.h"
#include "traces/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NRANKS   4u
#define PER_NODE 2u
#define DTYPE    ZIPCCL_BFLOAT16

/* A period, and the call that begins with the ranks' decision. */
#define SETTLING (ZIPCCL_CLASS_PERIOD + 1)

/* Of the codec's ratio that the wire must reach; where the messages' size lies in the gap between two
 * capacity classes, which are up to 3.5 % apart, less. */
#define LEAST         0.985
#define LEAST_BETWEEN 0.96

/* Sanitizers slow the codec down many times. */
#if defined(__SANITIZE_ADDRESS__) || RACE_CHECKED
#define NCASES 1
#else
#define NCASES (sizeof cases / sizeof *cases)
#endif

struct wire_case {
    enum zipccl_op op;
    const char *strategy;
    const struct zipccl_tensor *tensor;
    uint64_t exact, wire, raw; /* bytes between the nodes of one call */
    double stat;               /* ratio of the tensor as one message */
    const char *class_name;
    double least; /* share of the codec's ratio */
};

static void *wanted(size_t nbytes)
{
    void *p = aligned_alloc(64, (nbytes + 63) / 64 * 64);

    if (p == NULL)
        abort();
    return p;
}

static uint64_t encoded_bytes(const void *elements, size_t n)
{
    size_t room = zipccl_bound(DTYPE, n), nbytes = 0;
    void *message = wanted(room), *scratch = wanted(zipccl_codec_scratch_bytes());

    if (zipccl_encode(ZIPCCL_ISA_SCALAR, DTYPE, elements, n, message, room, scratch, &nbytes) !=
        ZIPCCL_OK)
        abort();
    free(scratch);
    free(message);
    return nbytes;
}

/* What rank 'src' has for 'dst': the tensor from another place on, its end before its beginning. */
static void fill(const struct zipccl_tensor *tensor, uint32_t src, uint32_t dst, uint16_t *out)
{
    size_t first = (src * NRANKS + dst) * tensor->n / (NRANKS * NRANKS), tail = tensor->n - first;

    memcpy(out, (const char *)tensor->data + 2 * first, 2 * tail);
    memcpy(out + tail, tensor->data, 2 * first);
}

/* Bytes of what 'src' sends to 'dst' in the other node: its own data, or its node's sum. */
static uint64_t exact_message(const struct wire_case *c, uint32_t src, uint32_t dst)
{
    size_t n = c->tensor->n;
    uint16_t *own = wanted(2 * n), *other = wanted(2 * n);
    bool sums = strcmp(c->strategy, "fixed two-level") == 0;
    uint64_t nbytes;

    fill(c->tensor, src, c->op == ZIPCCL_ALL_GATHER ? 0 : dst, own);
    if (sums) {
        void *scratch = wanted(zipccl_codec_scratch_bytes());
        struct zipccl_term terms[2] = {{.bytes = own}, {.bytes = other}};
        uint16_t *sum = wanted(2 * n);

        fill(c->tensor, src ^ 1u, dst, other);
        if (zipccl_decode_sum(ZIPCCL_ISA_SCALAR, DTYPE, terms, 2, n, 1, sum, scratch) != ZIPCCL_OK)
            abort();
        memcpy(own, sum, 2 * n);
        free(sum);
        free(scratch);
    }
    nbytes = encoded_bytes(own, n);
    free(own);
    free(other);
    return nbytes;
}

/* Sums of a node cross once, to the rank in the same place; all else goes to everyone. */
static bool crosses(const struct wire_case *c, uint32_t src, uint32_t dst)
{
    if (src / PER_NODE == dst / PER_NODE)
        return false;
    return strcmp(c->strategy, "fixed two-level") != 0 || src % PER_NODE == dst % PER_NODE;
}

static void expected_bytes(struct wire_case *c)
{
    c->stat = (double)(2 * c->tensor->n) / (double)encoded_bytes(c->tensor->data, c->tensor->n);
    for (uint32_t src = 0; src < NRANKS; src++)
        for (uint32_t dst = 0; dst < NRANKS; dst++)
            if (crosses(c, src, dst)) {
                c->exact += exact_message(c, src, dst);
                c->raw += 2 * c->tensor->n;
            }
}

static uint64_t between_nodes(struct gpu_rank *r)
{
    uint64_t total = 0;

    for (uint32_t src = 0; src < NRANKS; src++)
        for (uint32_t dst = 0; dst < NRANKS; dst++)
            if (src / PER_NODE != dst / PER_NODE)
                total += emu_nccl_wire(r->nccl, (int)src, (int)dst);
    return total;
}

static zipccl_status call(struct gpu_rank *r, const struct wire_case *c, const void *send,
                          void *recv, struct zipccl_gpu_comm *gpu)
{
    size_t n = c->tensor->n;

    switch (c->op) {
    case ZIPCCL_ALL_GATHER: return zipccl_gpu_all_gather(send, recv, n, DTYPE, gpu, r->stream);
    case ZIPCCL_REDUCE_SCATTER:
        return zipccl_gpu_reduce_scatter(send, recv, n, DTYPE, ZIPCCL_SUM, gpu, r->stream);
    default: return zipccl_gpu_alltoall(send, recv, n, DTYPE, gpu, r->stream);
    }
}

static void move(struct gpu_rank *r, struct wire_case *c, struct zipccl_gpu_comm *gpu)
{
    size_t nbytes = 2 * c->tensor->n;
    char *host = wanted(NRANKS * nbytes), *send, *recv;
    struct zipccl_comm_class settled;
    uint64_t before;

    for (uint32_t p = 0; p < NRANKS; p++)
        fill(c->tensor, r->rank, p, (uint16_t *)(host + p * nbytes));
    send = gpu_upload(r, host, NRANKS * nbytes);
    recv = gpu_upload(r, host, NRANKS * nbytes);
    for (unsigned i = 0; i < SETTLING && r->ok; i++)
        EXPECT(r, call(r, c, send, recv, gpu) == ZIPCCL_OK);
    EXPECT(r, cudaStreamSynchronize(r->stream) == cudaSuccess);
    gpu_barrier(r);
    before = between_nodes(r);
    gpu_barrier(r);
    EXPECT(r, call(r, c, send, recv, gpu) == ZIPCCL_OK);
    EXPECT(r, cudaStreamSynchronize(r->stream) == cudaSuccess);
    gpu_barrier(r);
    if (r->rank == 0) {
        c->wire = between_nodes(r) - before;
        if (EXPECT(r, zipccl_comm_get_class(zipccl_gpu_core(gpu), 0, &settled)))
            c->class_name =
                strstr(c->strategy, "fixed") != NULL ? zipccl_class_name(settled.now) : "none";
    }
    EXPECT(r, cudaFree(send) == cudaSuccess);
    EXPECT(r, cudaFree(recv) == cudaSuccess);
    free(host);
}

static void run_case(struct gpu_rank *r, void *context)
{
    struct wire_case *c = context;
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu = NULL;
    struct zipccl_error error = {""};

    gpu_test_options(r, &options);
    options.strategy = c->strategy;
    options.nchunks = 1;
    if (!EXPECT(r, zipccl_gpu_create(r->nccl, &options, &gpu, &error) == ZIPCCL_OK)) {
        fprintf(stderr, "%s\n", error.text);
        return;
    }
    move(r, c, gpu);
    zipccl_gpu_destroy(gpu);
}

/* Run and print a case; true if the wire saves what it must. */
static bool run(struct wire_case c)
{
    double ratio, exact, share;
    bool ok;

    expected_bytes(&c);
    c.class_name = "?";
    ok = gpu_world_run(NRANKS, PER_NODE, run_case, &c) && c.wire > 0;
    ratio = c.wire > 0 ? (double)c.raw / (double)c.wire : 0;
    exact = (double)c.raw / (double)c.exact;
    share = ratio / (strcmp(c.strategy, "fixed two-level") == 0 ? exact : c.stat);
    printf("%-14s %-15s %-38s %-7s %7.4f %7.4f %7.4f %7.4f\n", zipccl_op_name(c.op), c.strategy,
           c.tensor->name, c.class_name, c.stat, exact, ratio, share);
    return ok && share >= c.least && ratio / exact >= c.least;
}

static const struct zipccl_safetensors *open_tensors(const char *path)
{
    const struct zipccl_safetensors *file = NULL;
    struct zipccl_error error = {""};

    if (zipccl_safetensors_open(path, &file, &error) != ZIPCCL_OK) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    return file;
}

int main(void)
{
    static const struct {
        enum zipccl_op op;
        const char *strategy, *tensor;
        bool moe;
        double least;
    } cases[] = {
        {ZIPCCL_ALL_GATHER, "fixed ring", "allgather.param.layer3.mlp.step219", false, LEAST},
        {ZIPCCL_ALLTOALL, "fixed direct", "alltoall.dispatch.layer2.step299", true, LEAST},
        {ZIPCCL_REDUCE_SCATTER, "fixed two-level", "reducescatter.grad.layer3.mlp.step219", false,
         LEAST},
        /* Just beside the class "tight": a class wider than would be enough. */
        {ZIPCCL_ALLTOALL, "fixed direct", "alltoall.combine_grad.layer2.step299", true,
         LEAST_BETWEEN},
        {ZIPCCL_ALLTOALL, "exact direct", "alltoall.combine_grad.layer2.step299", true, LEAST},
    };
    const struct zipccl_safetensors *dense =
                                        open_tensors("traces/samples/tensors/dense.safetensors"),
                                    *moe = open_tensors("traces/samples/tensors/moe.safetensors");
    bool ok = true;

    printf("%-14s %-15s %-38s %-7s %7s %7s %7s %7s\n", "op", "strategy", "tensor", "class", "stat",
           "exact", "wire", "share");
    for (size_t i = 0; i < NCASES; i++) {
        struct wire_case c = {
            .op = cases[i].op, .strategy = cases[i].strategy, .least = cases[i].least};

        c.tensor = zipccl_safetensors_find(cases[i].moe ? moe : dense, cases[i].tensor);
        if (c.tensor == NULL) {
            fprintf(stderr, "no tensor %s\n", cases[i].tensor);
            ok = false;
        } else {
            ok = run(c) && ok;
        }
    }
    zipccl_safetensors_close(dense);
    zipccl_safetensors_close(moe);
    return ok ? 0 : 1;
}
