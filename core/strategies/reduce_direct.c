/*
 * reduce_direct.c - reduce_scatter and all_reduce in one level: all-to-all, then one sum
 *
 * Every rank gets all contributions to its own block and adds them in rank order, rounding once:
 *
 *     codec lane | ENCODE          REDUCE
 *     wire lane  |        EXCHANGE          all-to-all over the world
 *
 * all_reduce does so with shards of the buffer, then gathers the rounded shards; the owner of a
 * shard keeps what it has sent:
 *
 *     codec lane | ENCODE          REDUCE ENCODE          DECODE
 *     wire lane  |        EXCHANGE               EXCHANGE          all-to-all, all-gather
 *
 * Uncompressed plans have neither ENCODE nor DECODE.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/strategies/reductions.h"
#include "core/strategies/stages.h"

bool zipccl_serves_reduction(const struct zipccl_call *call)
{
    bool is_float = call->dtype == ZIPCCL_BFLOAT16 || call->dtype == ZIPCCL_FLOAT16 ||
                    call->dtype == ZIPCCL_FLOAT32;

    return zipccl_is_reduction(call->op) && is_float &&
           (call->redop == ZIPCCL_SUM || call->redop == ZIPCCL_AVG);
}

size_t zipccl_shard_n(size_t count, uint32_t nranks)
{
    return count / nranks + (count % nranks != 0);
}

static void scatter(struct zipccl_stages *s)
{
    struct zipccl_place src = zipccl_stages_by_rank(s, ZIPCCL_BUF_SEND, s->block_n);

    if (s->form == ZIPCCL_FORM_RAW)
        zipccl_stages_send_raw(s, ZIPCCL_GROUP_WORLD, ZIPCCL_PATTERN_ALL_TO_ALL, src,
                               zipccl_stages_raw(s, ZIPCCL_BUF_RX, 1, 0), 1);
    else
        zipccl_stages_send_coded(s, ZIPCCL_GROUP_WORLD, ZIPCCL_PATTERN_ALL_TO_ALL, src, 1);
}

static void sum(struct zipccl_stages *s, struct zipccl_place dst)
{
    struct zipccl_place raw = zipccl_stages_raw(s, ZIPCCL_BUF_RX, 1, 0);

    zipccl_stages_reduce(s, ZIPCCL_GROUP_WORLD, s->call->redop,
                         s->form == ZIPCCL_FORM_RAW ? &raw : NULL,
                         zipccl_stages_by_rank(s, ZIPCCL_BUF_SEND, s->block_n), dst, 1);
}

static void sum_block(struct zipccl_stages *s)
{
    sum(s, zipccl_stages_plain(s, ZIPCCL_BUF_RECV));
}

static void sum_shard_and_gather(struct zipccl_stages *s)
{
    struct zipccl_place shards = zipccl_stages_by_rank(s, ZIPCCL_BUF_RECV, s->shard_n);

    sum(s, shards);
    if (s->form == ZIPCCL_FORM_RAW)
        zipccl_stages_send_raw(s, ZIPCCL_GROUP_WORLD, ZIPCCL_PATTERN_ALL_GATHER, shards, shards, 1);
    else
        zipccl_stages_send_coded(s, ZIPCCL_GROUP_WORLD, ZIPCCL_PATTERN_ALL_GATHER, shards, 1);
}

static void decode_shards(struct zipccl_stages *s)
{
    zipccl_stages_decode(s, ZIPCCL_GROUP_WORLD, ZIPCCL_PATTERN_ALL_GATHER,
                         zipccl_stages_by_rank(s, ZIPCCL_BUF_RECV, s->shard_n), 1);
}

/* One rank has nothing to add: its bits are the result. */
static void copy_all(struct zipccl_stages *s)
{
    zipccl_stages_copy(s, ZIPCCL_GROUP_WORLD, ZIPCCL_PATTERN_ALL_TO_ALL,
                       zipccl_stages_plain(s, ZIPCCL_BUF_SEND),
                       zipccl_stages_plain(s, ZIPCCL_BUF_RECV));
}

static void choose_stages(struct zipccl_stages *s)
{
    bool whole = s->call->op == ZIPCCL_ALL_REDUCE;

    s->reduces = true;
    s->stage[s->nstages++] = scatter;
    s->stage[s->nstages++] = whole ? sum_shard_and_gather : sum_block;
    if (whole && s->form != ZIPCCL_FORM_RAW)
        s->stage[s->nstages++] = decode_shards;
}

zipccl_status zipccl_reduce_direct_build(const char *name, enum zipccl_form form,
                                         const struct zipccl_call *call,
                                         const struct zipccl_topology *topology, uint32_t nchunks,
                                         uint32_t capacity_class, size_t max_staging_bytes,
                                         struct zipccl_plan **out)
{
    struct zipccl_stages s;

    if (form != ZIPCCL_FORM_RAW && topology->nranks < 2)
        return ZIPCCL_ERR_UNSUPPORTED;
    ZIPCCL_TRY(zipccl_stages_init(&s, call, topology, form, capacity_class));
    if (topology->nranks == 1) {
        s.stage[s.nstages++] = copy_all;
        return zipccl_stages_build(&s, name, 1, max_staging_bytes, out);
    }
    if (call->op == ZIPCCL_ALL_REDUCE)
        s.block_n = s.shard_n = zipccl_shard_n(call->count, topology->nranks);
    if (form == ZIPCCL_FORM_RAW)
        s.rx_blocks = topology->nranks;
    else
        s.tx_messages = s.rx_messages = topology->nranks;
    choose_stages(&s);
    return zipccl_stages_build(&s, name, nchunks, max_staging_bytes, out);
}
