/*
 * kineto_names.c - a collective in the words of PyTorch's profiler
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/trace/kineto_names.h"

#include "experiments/program/json_put.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Kineto cuts lists of ranks after this many; start and stride then tell the rest. */
enum { MAX_RANKS_LISTED = 30 };

/* Splits cannot be told otherwise, so they are cut much later. */
enum { MAX_SPLITS_LISTED = 1024 };

static const char *const dtype_names[ZIPCCL_NUM_DTYPES] = {[ZIPCCL_INT8] = "Char",
                                                           [ZIPCCL_UINT8] = "Byte",
                                                           [ZIPCCL_INT32] = "Int",
                                                           [ZIPCCL_UINT32] = "UInt32",
                                                           [ZIPCCL_INT64] = "Long",
                                                           [ZIPCCL_UINT64] = "UInt64",
                                                           [ZIPCCL_FLOAT16] = "Half",
                                                           [ZIPCCL_FLOAT32] = "Float",
                                                           [ZIPCCL_FLOAT64] = "Double",
                                                           [ZIPCCL_BFLOAT16] = "BFloat16",
                                                           [ZIPCCL_FLOAT8_E4M3] = "Float8_e4m3fn",
                                                           [ZIPCCL_FLOAT8_E5M2] = "Float8_e5m2"};

static const struct {
    const char *collective, *kernel;
} op_names[ZIPCCL_NUM_OPS] = {[ZIPCCL_ALL_GATHER] = {"_allgather_base", "AllGather"},
                              [ZIPCCL_REDUCE_SCATTER] = {"_reduce_scatter_base", "ReduceScatter"},
                              [ZIPCCL_ALL_REDUCE] = {"allreduce", "AllReduce"},
                              [ZIPCCL_ALLTOALL] = {"all_to_all", "SendRecv"},
                              [ZIPCCL_ALLTOALLV] = {"all_to_allv", "SendRecv"},
                              [ZIPCCL_SENDRECV] = {"sendrecv", "SendRecv"},
                              [ZIPCCL_BROADCAST] = {"broadcast", "Broadcast"}};

const char *zipccl_kineto_group(char out[ZIPCCL_KINETO_NAME_SIZE],
                                const struct zipccl_trace_group *group, uint32_t part)
{
    if (group->nparts == 1)
        snprintf(out, ZIPCCL_KINETO_NAME_SIZE, "%.120s", group->name);
    else
        snprintf(out, ZIPCCL_KINETO_NAME_SIZE, "%.120s.%" PRIu32, group->name, part);
    return out;
}

const char *zipccl_kineto_kernel(char out[ZIPCCL_KINETO_NAME_SIZE],
                                 const struct zipccl_event *event, bool compressed)
{
    snprintf(out, ZIPCCL_KINETO_NAME_SIZE, "ncclDevKernel_%s%s", op_names[event->op].kernel,
             compressed ? "_compressed" : "");
    return out;
}

/* What one member sends and receives. */
struct ends {
    uint64_t in, out;      /* elements */
    uint32_t nsend, nrecv; /* pairs of a sendrecv */
    uint32_t to, from;     /* the last of them, group-relative */
};

static void count_pairs(const struct zipccl_event *e, uint32_t member, struct ends *ends)
{
    for (uint32_t i = 0; i < e->npairs; i++) {
        if (e->pairs[i].src == member) {
            ends->in += e->count;
            ends->nsend++;
            ends->to = e->pairs[i].dst;
        }
        if (e->pairs[i].dst == member) {
            ends->out += e->count;
            ends->nrecv++;
            ends->from = e->pairs[i].src;
        }
    }
}

static void count_splits(const struct zipccl_trace_splits *splits, uint32_t member,
                         struct ends *ends)
{
    for (uint32_t i = 0; i < splits->size; i++) {
        ends->in += splits->counts[(size_t)member * splits->size + i];
        ends->out += splits->counts[(size_t)i * splits->size + member];
    }
}

static struct ends count_ends(const struct zipccl_trace_header *header,
                              const struct zipccl_event *e, uint32_t member)
{
    uint64_t n = header->groups[e->group].size;
    struct ends ends = {.in = e->count, .out = e->count};

    switch (e->op) {
    case ZIPCCL_ALL_GATHER: ends.out = n * e->count; break;
    case ZIPCCL_REDUCE_SCATTER: ends.in = n * e->count; break;
    case ZIPCCL_ALLTOALL: ends.in = ends.out = n * e->count; break;
    case ZIPCCL_ALLTOALLV:
        ends.in = ends.out = 0;
        count_splits(&header->splits[e->splits], member, &ends);
        break;
    case ZIPCCL_SENDRECV:
        ends.in = ends.out = 0;
        count_pairs(e, member, &ends);
        break;
    default: break;
    }
    return ends;
}

/* "[0, 8, 16]": n numbers, 'stride' apart in memory; cut after 'most' as "[0, ..., 29, ...]". */
static void put_list(yajl_gen gen, const char *key, const uint64_t *counts, const uint32_t *ranks,
                     size_t n, size_t stride, size_t most)
{
    char text[24 * MAX_SPLITS_LISTED + 16];
    size_t length = (size_t)snprintf(text, sizeof text, "[");

    for (size_t i = 0; i < n && i < most; i++)
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "%s%" PRIu64, i > 0 ? ", " : "",
                             counts != NULL ? counts[i * stride] : ranks[i * stride]);
    length += (size_t)snprintf(text + length, sizeof text - length, "%s]", n > most ? ", ..." : "");
    zipccl_put_key(gen, key);
    yajl_gen_string(gen, (const unsigned char *)text, length);
}

static void put_splits(yajl_gen gen, const struct zipccl_trace_header *header,
                       const struct zipccl_event *e, uint32_t member)
{
    const struct zipccl_trace_splits *splits;

    if (e->op != ZIPCCL_ALLTOALLV) {
        zipccl_put_string(gen, "In split size", "[]");
        zipccl_put_string(gen, "Out split size", "[]");
        return;
    }
    splits = &header->splits[e->splits];
    put_list(gen, "In split size", splits->counts + (size_t)member * splits->size, NULL,
             splits->size, 1, MAX_SPLITS_LISTED);
    put_list(gen, "Out split size", splits->counts + member, NULL, splits->size, splits->size,
             MAX_SPLITS_LISTED);
}

static void put_group(yajl_gen gen, const struct zipccl_trace_group *group, uint32_t part)
{
    const uint32_t *ranks = group->ranks + (size_t)part * group->size;
    uint32_t stride = group->size > 1 && ranks[1] > ranks[0] ? ranks[1] - ranks[0] : 1, i = 1;
    char name[ZIPCCL_KINETO_NAME_SIZE];

    zipccl_put_integer(gen, "Group size", group->size);
    zipccl_put_string(gen, "Process Group Name", zipccl_kineto_group(name, group, part));
    zipccl_put_string(gen, "Process Group Description", group->name);
    put_list(gen, "Process Group Ranks", NULL, ranks, group->size, 1, MAX_RANKS_LISTED);
    while (i < group->size && ranks[i] == ranks[0] + (uint64_t)i * stride)
        i++;
    if (i < group->size)
        return;
    zipccl_put_integer(gen, "Global rank start", ranks[0]);
    zipccl_put_integer(gen, "Global rank stride", stride);
}

void zipccl_kineto_put(yajl_gen gen, const struct zipccl_trace_header *header,
                       const struct zipccl_event *event, uint32_t part, uint32_t rank)
{
    const struct zipccl_trace_group *group = &header->groups[event->group];
    const uint32_t *ranks = group->ranks + (size_t)part * group->size;
    const char *name = op_names[event->op].collective;
    uint32_t member = 0;
    struct ends ends;

    while (member + 1 < group->size && ranks[member] != rank)
        member++;
    ends = count_ends(header, event, member);
    if (event->op == ZIPCCL_SENDRECV && (ends.nsend == 0 || ends.nrecv == 0))
        name = ends.nsend > 0 ? "send" : "recv";
    zipccl_put_string(gen, "Collective name", name);
    zipccl_put_string(gen, "dtype", dtype_names[event->dtype]);
    zipccl_put_integer(gen, "In msg nelems", ends.in);
    zipccl_put_integer(gen, "Out msg nelems", ends.out);
    put_splits(gen, header, event, member);
    put_group(gen, group, part);
    zipccl_put_integer(gen, "Rank", rank);
    if (ends.nrecv == 1)
        zipccl_put_integer(gen, "Src Rank", ranks[ends.from]);
    if (ends.nsend == 1)
        zipccl_put_integer(gen, "Dst Rank", ranks[ends.to]);
}
