/*
 * move_two_level.c - all_gather, alltoall and broadcast between the nodes, then within them
 *
 * What crosses a node boundary crosses it once, on the rail of the rank that sends or receives it,
 * coded or not; what stays in the node travels raw.
 *
 * all_gather   each rank gathers the blocks of its rail, then spreads them in its node
 * alltoall     each rank hands its node-mates what is for their rails; these pass it on
 * broadcast    the root sends to the rank on its rail in each node, which spreads it there
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/strategies/moves.h"
#include "core/strategies/stages.h"

static uint32_t nnodes(const struct zipccl_stages *s)
{
    return s->topology->nnodes;
}

static uint32_t node_size(const struct zipccl_stages *s)
{
    return s->topology->nranks / s->topology->nnodes;
}

static bool is_raw(const struct zipccl_stages *s)
{
    return s->form == ZIPCCL_FORM_RAW;
}

static struct zipccl_place blocks(const struct zipccl_stages *s, enum zipccl_buf buf)
{
    return zipccl_stages_by_rank(s, buf, s->block_n);
}

/* all_gather: the own block along the rail. */
static void gather_rail(struct zipccl_stages *s)
{
    struct zipccl_place own = zipccl_stages_plain(s, ZIPCCL_BUF_SEND);

    if (is_raw(s))
        zipccl_stages_send_raw(s, ZIPCCL_GROUP_RAIL, ZIPCCL_PATTERN_ALL_GATHER, own,
                               blocks(s, ZIPCCL_BUF_RECV), 1);
    else
        zipccl_stages_send_coded(s, ZIPCCL_GROUP_RAIL, ZIPCCL_PATTERN_ALL_GATHER, own, 1);
}

/* all_gather: the rail's blocks to the node-mates. */
static void gather_node(struct zipccl_stages *s)
{
    struct zipccl_place recv = blocks(s, ZIPCCL_BUF_RECV);

    zipccl_stages_copy(s, ZIPCCL_GROUP_WORLD, ZIPCCL_PATTERN_ALL_GATHER,
                       zipccl_stages_plain(s, ZIPCCL_BUF_SEND), recv);
    if (!is_raw(s))
        zipccl_stages_decode(s, ZIPCCL_GROUP_RAIL, ZIPCCL_PATTERN_ALL_GATHER, recv, 1);
    zipccl_stages_send_raw(s, ZIPCCL_GROUP_NODE, ZIPCCL_PATTERN_ALL_GATHER, recv, recv, nnodes(s));
}

/* alltoall: blocks for the own node to their place, blocks for others to the mate on their rail.
 * TMP holds, for each node, what the members of this node have for it. */
static void hand_over(struct zipccl_stages *s)
{
    struct zipccl_place send = blocks(s, ZIPCCL_BUF_SEND), recv = blocks(s, ZIPCCL_BUF_RECV);
    struct zipccl_step step;

    step = zipccl_stages_step(s, ZIPCCL_STEP_COPY, ZIPCCL_GROUP_NODE, ZIPCCL_PATTERN_ALL_TO_ALL,
                              ZIPCCL_FORM_RAW);
    step.nblocks = (uint16_t)nnodes(s);
    step.remote = 1;
    step.src = send;
    step.dst = zipccl_stages_raw(s, ZIPCCL_BUF_TMP, 1, node_size(s));
    zipccl_stages_add(s, &step);
    zipccl_stages_copy(s, ZIPCCL_GROUP_WORLD, ZIPCCL_PATTERN_ALL_TO_ALL, send, recv);
    step.kind = ZIPCCL_STEP_EXCHANGE;
    step.lane = ZIPCCL_LANE_WIRE;
    step.ndeps = 0;
    zipccl_stages_add(s, &step);
    zipccl_stages_send_raw(s, ZIPCCL_GROUP_NODE, ZIPCCL_PATTERN_ALL_TO_ALL, send, recv, 1);
}

/* alltoall: everything of this node for the ranks of the rail, a message per node-mate. */
static void pass_on(struct zipccl_stages *s)
{
    struct zipccl_place collected = zipccl_stages_raw(s, ZIPCCL_BUF_TMP, node_size(s), 1);

    if (is_raw(s))
        zipccl_stages_send_raw(s, ZIPCCL_GROUP_RAIL, ZIPCCL_PATTERN_ALL_TO_ALL, collected,
                               blocks(s, ZIPCCL_BUF_RECV), node_size(s));
    else
        zipccl_stages_send_coded(s, ZIPCCL_GROUP_RAIL, ZIPCCL_PATTERN_ALL_TO_ALL, collected,
                                 node_size(s));
}

static void decode_passed(struct zipccl_stages *s)
{
    zipccl_stages_decode(s, ZIPCCL_GROUP_RAIL, ZIPCCL_PATTERN_ALL_TO_ALL,
                         blocks(s, ZIPCCL_BUF_RECV), node_size(s));
}

/* broadcast: from the root to its rail. */
static void reach_nodes(struct zipccl_stages *s)
{
    struct zipccl_place send = zipccl_stages_plain(s, ZIPCCL_BUF_SEND);

    if (is_raw(s))
        zipccl_stages_send_raw(s, ZIPCCL_GROUP_RAIL, ZIPCCL_PATTERN_BROADCAST, send,
                               zipccl_stages_plain(s, ZIPCCL_BUF_RECV), 1);
    else
        zipccl_stages_send_coded(s, ZIPCCL_GROUP_RAIL, ZIPCCL_PATTERN_BROADCAST, send, 1);
}

/* broadcast: in each node. */
static void reach_ranks(struct zipccl_stages *s)
{
    struct zipccl_place recv = zipccl_stages_plain(s, ZIPCCL_BUF_RECV);

    zipccl_stages_copy(s, ZIPCCL_GROUP_WORLD, ZIPCCL_PATTERN_BROADCAST,
                       zipccl_stages_plain(s, ZIPCCL_BUF_SEND), recv);
    if (!is_raw(s))
        zipccl_stages_decode(s, ZIPCCL_GROUP_RAIL, ZIPCCL_PATTERN_BROADCAST, recv, 1);
    zipccl_stages_send_raw(s, ZIPCCL_GROUP_NODE, ZIPCCL_PATTERN_BROADCAST, recv, recv, 1);
}

bool zipccl_serves_two_levels(const struct zipccl_call *call)
{
    return call->op == ZIPCCL_ALL_GATHER || call->op == ZIPCCL_ALLTOALL ||
           call->op == ZIPCCL_BROADCAST;
}

zipccl_status zipccl_move_two_level_build(const char *name, enum zipccl_form form,
                                          const struct zipccl_call *call,
                                          const struct zipccl_topology *topology, uint32_t nchunks,
                                          uint32_t capacity_class, size_t max_staging_bytes,
                                          struct zipccl_plan **out)
{
    struct zipccl_stages s;

    if (!zipccl_has_two_levels(topology))
        return ZIPCCL_ERR_UNSUPPORTED;
    ZIPCCL_TRY(zipccl_stages_init(&s, call, topology, form, capacity_class));
    switch (call->op) {
    case ZIPCCL_ALL_GATHER:
        s.tx_messages = 1;
        s.rx_messages = topology->nnodes;
        s.stage[s.nstages++] = gather_rail;
        s.stage[s.nstages++] = gather_node;
        break;
    case ZIPCCL_ALLTOALL:
        s.tx_messages = s.rx_messages = s.tmp_blocks = topology->nranks;
        s.stage[s.nstages++] = hand_over;
        s.stage[s.nstages++] = pass_on;
        if (form != ZIPCCL_FORM_RAW)
            s.stage[s.nstages++] = decode_passed;
        break;
    default:
        s.tx_messages = s.rx_messages = 1;
        s.stage[s.nstages++] = reach_nodes;
        s.stage[s.nstages++] = reach_ranks;
    }
    if (form == ZIPCCL_FORM_RAW)
        s.tx_messages = s.rx_messages = 0;
    return zipccl_stages_build(&s, name, nchunks, max_staging_bytes, out);
}
