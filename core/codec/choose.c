/*
 * choose.c - tier program and bases of a superblock, from 64 exponents of each sub-block
 *
 * The mean exponent of a Gaussian lies 1.416 octaves below log2(sigma), wherever sigma is:
 * it places the base without a histogram.  Locations are in 1/256 octave.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/superblock.h"

#include <string.h>

/* Three standard deviations of a mean of 64 exponents of a Gaussian (1.60 octaves / 8). */
#define DEVIATION 154

/*
 * base = (location + shift) >> 8.  The shifts minimise the exact code length of a Gaussian over
 * its phase; for the superblock the best pair of base and order switches order at FLIP.
 */
#define SHIFT_PAIR 483
#define FLIP       180
static const int shifts[ZIPCCL_NUM_PROGRAMS] = {
    [ZIPCCL_PROGRAM_2222] = 477,
    [ZIPCCL_PROGRAM_21222_UP] = 525,
    [ZIPCCL_PROGRAM_21222_DOWN] = 409,
};

static uint8_t base_of(int location, int shift)
{
    int base = (location + shift) >> 8;
    return (uint8_t)(base < 0 ? 0 : base > 255 ? 255 : base);
}

/* Mean location of the sub-blocks within DEVIATION of 'centre'; 'centre' if there is none. */
static int mean_near(const struct zipccl_sample *sample, const int *location, size_t nsub,
                     int centre, int deviation)
{
    uint32_t sum = 0, nvalid = 0;
    for (size_t i = 0; i < nsub; i++) {
        int away = location[i] - centre;
        if (sample[i].nvalid == 0 || away > deviation || away < -deviation)
            continue;
        sum += sample[i].sum;
        nvalid += sample[i].nvalid;
    }
    return nvalid ? (int)((256 * sum + nvalid / 2) / nvalid) : centre;
}

void zipccl_choose(const struct zipccl_row *row, const uint8_t *src, size_t m,
                   struct zipccl_scratch *scratch, struct zipccl_entry *entry)
{
    struct zipccl_sample *sample = scratch->sample;
    int location[ZIPCCL_SUBBLOCKS];
    size_t nsub = (m + ZIPCCL_SUBBLOCK - 1) / ZIPCCL_SUBBLOCK;
    for (size_t i = 0; i < nsub; i++) {
        size_t left = m - i * ZIPCCL_SUBBLOCK;
        row->sample(src + 2 * ZIPCCL_SUBBLOCK * i, i,
                    left < ZIPCCL_SUBBLOCK ? left : ZIPCCL_SUBBLOCK, &sample[i]);
        uint32_t nvalid = sample[i].nvalid;
        location[i] = nvalid ? (int)((256 * sample[i].sum + nvalid / 2) / nvalid) : 0;
    }
    /* The second mean leaves out the sub-blocks that have a scale of their own. */
    int all = mean_near(sample, location, nsub, 0, 256 * 256);
    int centre = mean_near(sample, location, nsub, all, DEVIATION + DEVIATION / 2);

    bool up = ((centre + SHIFT_PAIR) & 255) < FLIP;
    entry->program = up ? ZIPCCL_PROGRAM_21222_UP : ZIPCCL_PROGRAM_21222_DOWN;
    uint8_t common = base_of(centre, SHIFT_PAIR);
    for (size_t i = 0; i < nsub; i++) {
        int away = location[i] - centre;
        bool own = sample[i].nvalid != 0 && (away > DEVIATION || away < -DEVIATION);
        entry->base[i] = own ? base_of(location[i], shifts[entry->program]) : common;
    }
}
