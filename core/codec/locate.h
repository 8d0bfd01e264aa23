/*
 * locate.h - where the sub-blocks of a superblock lie, in plain C for every row's instructions
 *
 * A template of static functions, so that one text is compiled with several instruction sets.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CODEC_LOCATE_H
#define ZIPCCL_CORE_CODEC_LOCATE_H

#include "core/codec/decide.h"
#include "core/codec/row.h"

/* Mean location of the sub-blocks within 'deviation' of 'centre'; 'centre' if there is none. */
static inline int mean_near(const struct zipccl_moments *m, int centre, int deviation)
{
    uint32_t sum = 0, nvalid = 0;
    for (size_t i = 0; i < ZIPCCL_SUBBLOCKS; i++) {
        uint32_t near = (uint32_t)zipccl_is_near(m->location[i], centre, deviation);
        sum += m->sum[i] & near;
        nvalid += m->nvalid[i] & near;
    }
    return nvalid ? zipccl_location_of(sum, nvalid) : centre;
}

/* Find the location of every sub-block; returns the common one. */
static inline int locate(struct zipccl_moments *m)
{
    uint32_t usual = 0;
    for (size_t i = 0; i < ZIPCCL_SUBBLOCKS; i++)
        usual += m->nvalid[i] == ZIPCCL_SAMPLES;
    for (size_t i = 0; i < ZIPCCL_SUBBLOCKS && usual < ZIPCCL_SUBBLOCKS; i++)
        m->location[i] = zipccl_location_of(m->sum[i], m->nvalid[i]);
    for (size_t i = 0; i < ZIPCCL_SUBBLOCKS && usual == ZIPCCL_SUBBLOCKS; i++)
        m->location[i] =
            (int)(m->sum[i] * (256 / ZIPCCL_SAMPLES)); /* the same without a division */
    /* The second mean leaves out the sub-blocks that have a scale of their own. */
    int deviation = zipccl_deviation(m->nlooks);
    int centre = mean_near(m, mean_near(m, 0, 256 * 256), deviation + deviation / 2);
    uint32_t spread = 0;
    for (size_t i = 0; i < ZIPCCL_SUBBLOCKS; i++) {
        int away = m->location[i] - centre,
            near = zipccl_is_near(m->location[i], centre, deviation);
        spread += (uint32_t)(i < m->nsub ? (away & near) * (away & near) : 0);
        m->own[i] = ~near & -(int)(m->nvalid[i] != 0);
        m->location[i] = (m->location[i] & m->own[i]) | (centre & ~m->own[i]);
    }
    m->spread = spread;
    return centre;
}

#endif
