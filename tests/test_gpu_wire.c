/*
 * test_gpu_wire.c - what settled capacities save on the wire, by the counters of NCCL's double
 *
 * Four ranks in two nodes move a captured tensor until its class has settled.  The bytes that then cross between the
 * nodes are set against the raw ones; that ratio against the one of the codec's messages of the same data at
 * their exact sizes, and of the tensor as one message, which `zipccl codec stat` prints.
 *
 *     test_gpu_wire        a few tensors
 *     test_gpu_wire all    every captured bf16 tensor of an all-gather, reduce-scatter or all-to-all
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/emu.h"
#include "gpu/tests/gpu_world.h"

#include "core/codec.h"
#include "traces/safetensors.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NRANKS   4u
#define PER_NODE 2u
#define DTYPE    ZIPCCL_BFLOAT16

/* A period, and the call that begins with the ranks' decision. */
#define SETTLING (ZIPCCL_CLASS_PERIOD + 1)

/* Of the codec's ratio that the wire must reach. */
#define LEAST 0.985

/* Messages of fixed size are for long tensors of values that are not mostly zero.  In others whole cache lines are
 * 1 % and more, or the classes too far apart: those are sent in their exact sizes. */
#define LEAST_FIXED_N    32768u
#define MOST_FIXED_RATIO 1.7

/* Sanitizers slow the codec down many times. */
#if defined(__SANITIZE_ADDRESS__) || RACE_CHECKED
#define MOST_CASES 1
#else
#define MOST_CASES 6
#endif

struct wire_case {
    enum zipccl_op op;
    const char *strategy;
    const struct zipccl_tensor *tensor;
    uint64_t exact, wire, raw; /* bytes between the nodes of one call */
    double stat;               /* ratio of the tensor as one message */
    const char *class_name;
    uint64_t overflows; /* calls in which a message did not fit */
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
    bool sums = strstr(c->strategy, "two-level") != NULL;
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
    return strstr(c->strategy, "two-level") == NULL || src % PER_NODE == dst % PER_NODE;
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
        if (EXPECT(r, zipccl_comm_get_class(zipccl_gpu_core(gpu), 0, &settled))) {
            c->class_name =
                strstr(c->strategy, "fixed") != NULL ? zipccl_class_name(settled.now) : "none";
            c->overflows = settled.overflow_calls;
        }
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
    share = ratio / (strstr(c.strategy, "two-level") != NULL ? exact : c.stat);
    printf("%-14s %-15s %-38s %-10s %8.4f %8.4f %8.4f %7.4f %5" PRIu64 "\n", zipccl_op_name(c.op),
           c.strategy, c.tensor->name, c.class_name, c.stat, exact, ratio, share, c.overflows);
    return ok && share >= LEAST && ratio / exact >= LEAST && c.overflows == 0;
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

/* What moves a captured tensor, by its name; false: none of the three ops, or not bf16. */
static bool find_op(const struct zipccl_tensor *tensor, struct wire_case *c)
{
    static const struct {
        const char *prefix;
        enum zipccl_op op;
        const char *fixed, *exact;
    } ops[] = {{"allgather.", ZIPCCL_ALL_GATHER, "fixed ring", "exact ring"},
               {"reducescatter.", ZIPCCL_REDUCE_SCATTER, "fixed two-level", "exact two-level"},
               {"alltoall.", ZIPCCL_ALLTOALL, "fixed direct", "exact direct"}};

    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strncmp(tensor->name, ops[i].prefix, strlen(ops[i].prefix)) == 0) {
            double ratio = (double)(2 * tensor->n) / (double)encoded_bytes(tensor->data, tensor->n);
            bool fixed = tensor->n >= LEAST_FIXED_N && ratio <= MOST_FIXED_RATIO;

            *c = (struct wire_case){
                .op = ops[i].op, .strategy = fixed ? ops[i].fixed : ops[i].exact, .tensor = tensor};
            return tensor->known && tensor->dtype == DTYPE;
        }
    return false;
}

static bool is_named(const char *name)
{
    static const char *const few[] = {
        "allgather.param.layer3.mlp.step219", "reducescatter.grad.layer7.mlp.step219",
        "reducescatter.grad.embed.step299",   "alltoall.dispatch.layer2.step299",
        "alltoall.combine.layer5.step299",    "alltoall.combine_grad.layer2.step299"};

    for (size_t i = 0; i < sizeof few / sizeof *few; i++)
        if (strcmp(name, few[i]) == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    static const char *const files[] = {"traces/samples/tensors/dense.safetensors",
                                        "traces/samples/tensors/moe.safetensors"};
    bool all = argc > 1 && strcmp(argv[1], "all") == 0, ok = true;
    unsigned ncases = 0, most = all ? UINT_MAX : MOST_CASES;

    printf("%-14s %-15s %-38s %-10s %8s %8s %8s %7s %5s\n", "op", "strategy", "tensor", "class",
           "stat", "exact", "wire", "share", "over");
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        const struct zipccl_safetensors *file = open_tensors(files[f]);

        for (size_t i = 0; i < file->ntensors && ncases < most; i++) {
            struct wire_case c;

            if ((!all && !is_named(file->tensors[i].name)) || !find_op(&file->tensors[i], &c))
                continue;
            ok = run(c) && ok;
            ncases++;
        }
        zipccl_safetensors_close(file);
    }
    if (ncases == 0 || (!all && ncases < MOST_CASES))
        ok = false;
    return ok ? 0 : 1;
}
