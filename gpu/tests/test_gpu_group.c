/*
 * test_gpu_group.c - groups of sends and receives on the GPU back end
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/codec_data.h"
#include "gpu/tests/gpu_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_OPS 64

/* One message of a pattern that all ranks know. */
struct message {
    uint32_t src, dst;
    enum zipccl_dtype dtype;
    size_t count;
    bool spoiled;
};

/* The messages of a call; each rank makes a group of those that are its own. */
struct pattern {
    const char *name;
    struct message messages[24];
    size_t nmessages;
    uint64_t coded; /* of all ranks' ops: how many are to be compressed */
};

struct own {
    struct zipccl_gpu_p2p ops[MOST_OPS];
    char *want[MOST_OPS]; /* of receives */
    size_t n;
};

static void fill(const struct message *m, size_t index, char *out)
{
    struct data_random random = {index * 131 + m->src * 7 + m->dst};

    data_fill_type(m->dtype, m->spoiled ? DATA_BITS : DATA_GAUSS, &random, 0.6, out, m->count);
}

static void add(struct gpu_rank *r, const struct message *m, size_t index, bool send,
                struct own *own)
{
    size_t nbytes = m->count * zipccl_dtype_size(m->dtype);
    char *bytes = malloc(nbytes + 1);

    if (zipccl_dtype_compressible(m->dtype))
        fill(m, index, bytes);
    else
        memset(bytes, (int)index + 1, nbytes);
    own->want[own->n] = bytes;
    own->ops[own->n] =
        (struct zipccl_gpu_p2p){send, send ? m->dst : m->src, NULL, m->count, m->dtype};
    own->ops[own->n].buf = gpu_upload(r, bytes, nbytes + 1);
    if (!send)
        EXPECT(r, cudaMemsetAsync(own->ops[own->n].buf, 0x55, nbytes, r->stream) == cudaSuccess);
    own->n++;
}

static void run_pattern(struct gpu_rank *r, const struct pattern *p, struct zipccl_gpu_comm *gpu)
{
    struct own own = {.n = 0};

    for (size_t i = 0; i < p->nmessages; i++) {
        if (p->messages[i].src == r->rank)
            add(r, &p->messages[i], i, true, &own);
        if (p->messages[i].dst == r->rank)
            add(r, &p->messages[i], i, false, &own);
    }
    if (own.n > 0 && !EXPECT(r, zipccl_gpu_group(own.ops, own.n, gpu, r->stream) == ZIPCCL_OK))
        fprintf(stderr, "%s: %s\n", p->name, zipccl_gpu_error(gpu));
    for (size_t i = 0; i < own.n; i++) {
        size_t nbytes = own.ops[i].count * zipccl_dtype_size(own.ops[i].dtype);
        char *came = malloc(nbytes + 1);

        gpu_download(r, came, own.ops[i].buf, nbytes);
        if (!EXPECT(r, memcmp(came, own.want[i], nbytes) == 0))
            fprintf(stderr, "%s: op %zu, %zu %s\n", p->name, i, own.ops[i].count,
                    zipccl_dtype_name(own.ops[i].dtype));
        EXPECT(r, cudaFree(own.ops[i].buf) == cudaSuccess);
        free(came);
        free(own.want[i]);
    }
}

static struct pattern patterns[] = {
    {"one message", {{0, 1, ZIPCCL_BFLOAT16, 30000, false}}, 1, 2},
    {"a shift",
     {{0, 1, ZIPCCL_BFLOAT16, 30000, false},
      {1, 2, ZIPCCL_BFLOAT16, 30000, true},
      {2, 3, ZIPCCL_BFLOAT16, 30000, false},
      {3, 0, ZIPCCL_BFLOAT16, 30000, false}},
     4,
     8},
    {"a pipeline, with sizes sent ahead",
     {{0, 1, ZIPCCL_INT64, 4, false},
      {0, 1, ZIPCCL_BFLOAT16, 900000, false},
      {1, 0, ZIPCCL_INT64, 4, false},
      {1, 0, ZIPCCL_FLOAT16, 70000, true},
      {2, 3, ZIPCCL_BFLOAT16, 100, false}},
     5,
     4},
    {"several of a pair, of several types, and to oneself",
     {{0, 1, ZIPCCL_BFLOAT16, 30000, false},
      {0, 1, ZIPCCL_FLOAT32, 10000, true},
      {0, 1, ZIPCCL_BFLOAT16, 600001, false},
      {0, 1, ZIPCCL_BFLOAT16, 10, false},
      {0, 1, ZIPCCL_BFLOAT16, 5000, true},
      {1, 3, ZIPCCL_BFLOAT16, 20000, false},
      {3, 0, ZIPCCL_FLOAT8_E5M2, 40000, false},
      {2, 2, ZIPCCL_BFLOAT16, 40000, false},
      {2, 0, ZIPCCL_BFLOAT16, 0, false}},
     9,
     12},
};

static void groups(struct gpu_rank *r, void *context)
{
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu = NULL;

    gpu_test_options(r, &options);
    options.strategy = context;
    options.min_bytes = 1000;
    if (!EXPECT(r, zipccl_gpu_create(r->nccl, &options, &gpu, NULL) == ZIPCCL_OK))
        return;
    for (unsigned turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
            run_pattern(r, &patterns[i], gpu);
    EXPECT(r, zipccl_gpu_async_error(gpu, NULL) == ZIPCCL_OK);
    zipccl_gpu_destroy(gpu);
}

/* How many ops each pattern compresses, over all ranks. */
static void counts(struct gpu_rank *r, void *context)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    uint64_t *totals = context;
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu = NULL;

    gpu_test_options(r, &options);
    options.strategy = "fixed direct";
    options.min_bytes = 1000;
    if (!EXPECT(r, zipccl_gpu_create(r->nccl, &options, &gpu, NULL) == ZIPCCL_OK))
        return;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        struct zipccl_gpu_op_stats before, after;

        zipccl_gpu_get_stats(gpu, ZIPCCL_SENDRECV, &before);
        run_pattern(r, &patterns[i], gpu);
        zipccl_gpu_get_stats(gpu, ZIPCCL_SENDRECV, &after);
        pthread_mutex_lock(&mutex);
        totals[i] += after.reasons[ZIPCCL_GPU_COMPRESSED] - before.reasons[ZIPCCL_GPU_COMPRESSED];
        pthread_mutex_unlock(&mutex);
    }
    zipccl_gpu_destroy(gpu);
}

int main(void)
{
    uint64_t totals[sizeof patterns / sizeof *patterns] = {0};
    char fixed[] = "fixed direct", exact[] = "exact direct", raw[] = "raw direct";
    bool ok = gpu_world_run(4, 2, groups, fixed);

    if (RACE_CHECKED)
        return ok ? 0 : 1;
    ok = gpu_world_run(4, 2, groups, exact) && ok;
    ok = gpu_world_run(4, 2, groups, raw) && ok;
    ok = gpu_world_run(4, 2, counts, totals) && ok;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (totals[i] != patterns[i].coded) {
            fprintf(stderr, "%s: %llu ops compressed, expected %llu\n", patterns[i].name,
                    (unsigned long long)totals[i], (unsigned long long)patterns[i].coded);
            ok = false;
        }
    return ok ? 0 : 1;
}
