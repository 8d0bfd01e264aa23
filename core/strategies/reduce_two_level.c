/*
 * reduce_two_level.c - reduce_scatter and all_reduce within the nodes, then between them
 *
 * Level 1 exchanges raw elements within the node: the rank with local index p gets its node-mates'
 * contributions to the blocks of all ranks with that index, one a node, and adds them in member
 * order into TMP, rounded to the type.  Level 2 exchanges these sums along the rails, coded or not;
 * every rank adds the nodes' sums of its own block in node order and rounds again.
 *
 *     codec lane |            REDUCE ENCODE          REDUCE
 *     wire lane  | EXCHANGE                 EXCHANGE          over the node, over the rail
 *
 * A node thus sends S * (nnodes - 1) / nnodes to the others, an eighth of what the one-level form
 * sends on nodes of eight.  all_reduce does so with shards, then gathers the rounded ones along the
 * rails and spreads them in the node.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/strategies/reductions.h"
#include "core/strategies/stages.h"

static uint32_t nnodes(const struct zipccl_stages *s)
{
    return s->topology->nnodes;
}

static bool is_raw(const struct zipccl_stages *s)
{
    return s->form == ZIPCCL_FORM_RAW;
}

/* Stage 0: member p of the node gets, for each node b, the block of the rank there. */
static void to_rails(struct zipccl_stages *s)
{
    zipccl_stages_send_raw(s, ZIPCCL_GROUP_NODE, ZIPCCL_PATTERN_ALL_TO_ALL,
                           zipccl_stages_by_rank(s, ZIPCCL_BUF_SEND, s->block_n),
                           zipccl_stages_raw(s, ZIPCCL_BUF_RX, nnodes(s), 1), nnodes(s));
}

/* Stage 1: the node's sums, one a node, and their way along the rail. */
static void sum_node(struct zipccl_stages *s)
{
    struct zipccl_place raw = zipccl_stages_raw(s, ZIPCCL_BUF_RX, nnodes(s), 1);
    struct zipccl_place sums = zipccl_stages_raw(s, ZIPCCL_BUF_TMP, 1, 0);

    zipccl_stages_reduce(s, ZIPCCL_GROUP_NODE, ZIPCCL_SUM, &raw,
                         zipccl_stages_by_rank(s, ZIPCCL_BUF_SEND, s->block_n),
                         zipccl_stages_raw(s, ZIPCCL_BUF_TMP, 0, 1), nnodes(s));
    if (is_raw(s))
        zipccl_stages_send_raw(s, ZIPCCL_GROUP_RAIL, ZIPCCL_PATTERN_ALL_TO_ALL, sums,
                               zipccl_stages_raw(s, ZIPCCL_BUF_RX, 1, 0), 1);
    else
        zipccl_stages_send_coded(s, ZIPCCL_GROUP_RAIL, ZIPCCL_PATTERN_ALL_TO_ALL, sums, 1);
}

static void sum_rail(struct zipccl_stages *s, struct zipccl_place dst)
{
    struct zipccl_place raw = zipccl_stages_raw(s, ZIPCCL_BUF_RX, 1, 0);

    zipccl_stages_reduce(s, ZIPCCL_GROUP_RAIL, s->call->redop, is_raw(s) ? &raw : NULL,
                         zipccl_stages_raw(s, ZIPCCL_BUF_TMP, 1, 0), dst, 1);
}

/* Stage 2 of reduce_scatter. */
static void sum_block(struct zipccl_stages *s)
{
    sum_rail(s, zipccl_stages_plain(s, ZIPCCL_BUF_RECV));
}

/* The node's shards are complete on the rails: each rank hands those of its rail to its mates. */
static void spread(struct zipccl_stages *s)
{
    struct zipccl_place shards = zipccl_stages_by_rank(s, ZIPCCL_BUF_RECV, s->shard_n);

    zipccl_stages_send_raw(s, ZIPCCL_GROUP_NODE, ZIPCCL_PATTERN_ALL_GATHER, shards, shards,
                           nnodes(s));
}

/* Stage 2 of all_reduce. */
static void sum_shard_and_gather(struct zipccl_stages *s)
{
    struct zipccl_place shards = zipccl_stages_by_rank(s, ZIPCCL_BUF_RECV, s->shard_n);

    sum_rail(s, shards);
    if (is_raw(s)) {
        zipccl_stages_send_raw(s, ZIPCCL_GROUP_RAIL, ZIPCCL_PATTERN_ALL_GATHER, shards, shards, 1);
        spread(s);
        return;
    }
    zipccl_stages_send_coded(s, ZIPCCL_GROUP_RAIL, ZIPCCL_PATTERN_ALL_GATHER, shards, 1);
}

/* Stage 3 of a compressed all_reduce. */
static void decode_and_spread(struct zipccl_stages *s)
{
    zipccl_stages_decode(s, ZIPCCL_GROUP_RAIL, ZIPCCL_PATTERN_ALL_GATHER,
                         zipccl_stages_by_rank(s, ZIPCCL_BUF_RECV, s->shard_n), 1);
    spread(s);
}

zipccl_status zipccl_reduce_two_level_build(const char *name, enum zipccl_form form,
                                            const struct zipccl_call *call,
                                            const struct zipccl_topology *topology,
                                            uint32_t nchunks, uint32_t capacity_class,
                                            size_t max_staging_bytes, struct zipccl_plan **out)
{
    bool whole = call->op == ZIPCCL_ALL_REDUCE;
    struct zipccl_stages s;

    if (!zipccl_has_two_levels(topology))
        return ZIPCCL_ERR_UNSUPPORTED;
    ZIPCCL_TRY(zipccl_stages_init(&s, call, topology, form, capacity_class));
    if (whole)
        s.block_n = s.shard_n = zipccl_shard_n(call->count, topology->nranks);
    s.reduces = true;
    s.rx_blocks = topology->nranks;
    s.tmp_blocks = topology->nnodes;
    if (form != ZIPCCL_FORM_RAW)
        s.tx_messages = s.rx_messages = topology->nnodes;
    s.stage[s.nstages++] = to_rails;
    s.stage[s.nstages++] = sum_node;
    s.stage[s.nstages++] = whole ? sum_shard_and_gather : sum_block;
    if (whole && form != ZIPCCL_FORM_RAW)
        s.stage[s.nstages++] = decode_and_spread;
    return zipccl_stages_build(&s, name, nchunks, max_staging_bytes, out);
}
