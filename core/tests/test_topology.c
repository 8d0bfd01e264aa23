/*
 * test_topology.c - nodes, local indices and rings
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/topology.h"

#include <criterion/criterion.h>

/* Each ring visits every rank once and enters each node once. */
static void check_rings(const struct zipccl_topology *t)
{
    for (uint32_t channel = 0; channel < 11; channel++) {
        uint32_t crossings = 0, rank = 0, visited = 0;

        do {
            uint32_t next = zipccl_ring_next(t, channel, rank);

            cr_assert_lt(next, t->nranks);
            crossings += t->node_of[next] != t->node_of[rank];
            if (t->node_of[next] != t->node_of[rank] || t->nranks == 1)
                cr_assert_eq(t->local_of[next],
                             channel % zipccl_topology_node_size(t, t->node_of[next]));
            rank = next;
            visited++;
        } while (rank != 0 && visited <= t->nranks);
        cr_assert_eq(visited, t->nranks);
        cr_assert_eq(crossings, t->nnodes > 1 ? t->nnodes : 0);
    }
}

Test(topology, even_nodes_are_contiguous)
{
    for (uint32_t nodes = 1; nodes <= 4; nodes++)
        for (uint32_t size = 1; size <= 8; size++) {
            struct zipccl_topology *t = NULL;

            cr_assert_eq(zipccl_topology_create_even(nodes, size, &t), ZIPCCL_OK);
            cr_assert_eq(t->nranks, nodes * size);
            cr_assert_eq(t->nnodes, nodes);
            cr_assert(t->even);
            for (uint32_t r = 0; r < t->nranks; r++) {
                cr_assert_eq(t->node_of[r], r / size);
                cr_assert_eq(t->local_of[r], r % size);
                cr_assert_eq(t->members[r], r);
            }
            check_rings(t);
            zipccl_topology_destroy(t);
        }
}

Test(topology, nodes_are_numbered_by_their_first_rank)
{
    static const uint32_t ids[] = {900, 5, 900, 7, 5, 900};
    static const uint32_t node_of[] = {0, 1, 0, 2, 1, 0}, local_of[] = {0, 0, 1, 0, 1, 2};
    static const uint32_t members[] = {0, 2, 5, 1, 4, 3};
    struct zipccl_topology *t = NULL;

    cr_assert_eq(zipccl_topology_create(6, ids, &t), ZIPCCL_OK);
    cr_assert_eq(t->nnodes, 3);
    cr_assert_not(t->even);
    for (uint32_t r = 0; r < 6; r++) {
        cr_assert_eq(t->node_of[r], node_of[r]);
        cr_assert_eq(t->local_of[r], local_of[r]);
        cr_assert_eq(t->members[r], members[r]);
    }
    cr_assert_eq(zipccl_topology_node_size(t, 0), 3);
    cr_assert_eq(zipccl_topology_node_size(t, 2), 1);
    check_rings(t);
    zipccl_topology_destroy(t);
}

Test(topology, members_of_a_group_keep_their_nodes)
{
    static const uint32_t ids[] = {0, 1, 2, 2, 1, 0}, ranks[] = {4, 3, 1, 2};
    struct zipccl_topology *whole = NULL, *group = NULL;

    cr_assert_eq(zipccl_topology_create(6, ids, &whole), ZIPCCL_OK);
    cr_assert_eq(zipccl_topology_create_group(whole, ranks, 4, &group), ZIPCCL_OK);
    cr_assert_eq(group->nranks, 4);
    cr_assert_eq(group->nnodes, 2);
    for (uint32_t r = 0; r < 4; r++)
        cr_assert_eq(group->node_of[r], r % 2);
    zipccl_topology_destroy(group);
    cr_assert_eq(zipccl_topology_create_group(whole, ranks, 0, &group), ZIPCCL_ERR_ARG);
    zipccl_topology_destroy(whole);
}

Test(topology, rings_leave_a_node_from_different_ranks)
{
    struct zipccl_topology *t = NULL;

    cr_assert_eq(zipccl_topology_create_even(2, 4, &t), ZIPCCL_OK);
    cr_assert_eq(zipccl_ring_next(t, 0, 3), 4);
    cr_assert_eq(zipccl_ring_next(t, 0, 7), 0);
    cr_assert_eq(zipccl_ring_next(t, 1, 0), 5);
    cr_assert_eq(zipccl_ring_next(t, 1, 3), 0);
    cr_assert_eq(zipccl_ring_next(t, 3, 2), 7);
    cr_assert_eq(zipccl_ring_next(t, 5, 0), 5);
    zipccl_topology_destroy(t);
}

Test(topology, invalid_arguments_are_refused)
{
    static const uint32_t ids[] = {0};
    struct zipccl_topology *t = NULL;

    cr_assert_eq(zipccl_topology_create(0, ids, &t), ZIPCCL_ERR_ARG);
    cr_assert_eq(zipccl_topology_create_even(0, 8, &t), ZIPCCL_ERR_ARG);
    cr_assert_eq(zipccl_topology_create_even(1u << 20, 1u << 20, &t), ZIPCCL_ERR_ARG);
    cr_assert_null(t);
}
