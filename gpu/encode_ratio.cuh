/*
 * encode_ratio.cuh - one superblock for max ratio: by tiers or by program ANS, whichever is shorter
 *
 * As encode_shorter() of core/codec/superblock.c decides, by sizes; nothing is estimated but a
 * Gaussian's tiers.  Only the way that is taken is in the slot at the end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_ENCODE_RATIO_CUH
#define ZIPCCL_GPU_ENCODE_RATIO_CUH

#include "gpu/encode_ratio_ans.cuh"

/* Length of a lane's d = lane + ZIPCCL_LEAST_D by 'law', in 1/8 bit; as ans_lengths() of choose.c. */
static __device__ __forceinline__ uint32_t ratio_length(const struct zipccl_ans_law *law,
                                                        uint32_t lane)
{
    int d = (int)lane + ZIPCCL_LEAST_D, octaves = law->octaves, far = d < octaves ? d : d - octaves;
    uint32_t bits = law->escape_cost, codes = 0;
    if (d >= 0 && d < octaves)
        return law->cost[d];
    ENC_ROLLED
    for (int k = 0; k < ZIPCCL_ANS_TIERS; k++) {
        codes += 8u * ratio_tiers[k].width;
        ENC_ROLLED
        for (int code = 0; code < (1 << ratio_tiers[k].width) - 1; code++)
            if (ratio_tiers[k].d[code] == far && lane < ZIPCCL_NUM_D - 1)
                return bits + codes;
    }
    return bits + codes + 64;
}

/* The warp's table if the data has 'shape'; '*law' is the superblock's. */
static __device__ __forceinline__ uint32_t ratio_table(const struct enc_thread *t, int shape,
                                                       uint32_t *law)
{
    int top = ans_laws[zipccl_ans_law_of(shape, 0)].top;
    int lowest = zipccl_ans_lowest(t->sh->centre, top);
    *law = (uint32_t)shape << 8 | (uint32_t)lowest;
    return zipccl_ans_table_at(t->sh->location[t->warp], top, lowest);
}

/* The shape whose tables are shortest on the sample, which becomes four looks.  Every thread calls it. */
static __device__ __forceinline__ int ratio_shape(struct enc_thread *t, struct enc_sample *s)
{
    struct enc_shared *sh = t->sh;
    uint32_t least = 0xffffffffu, law;
    int best = 0;
    /* What the sums were read from changes next. */
    __syncthreads();
    if (s->nlooks < ZIPCCL_LOOKS)
        enc_look_and_locate<ENC_ANY, false>(t, &sh->src, s, ZIPCCL_LOOKS);
    ENC_ROLLED
    for (int shape = 0; shape < ZIPCCL_ANS_SHAPES; shape++) {
        uint32_t now = 0, table = ratio_table(t, shape, &law);
        const struct zipccl_ans_law *of = &ans_laws[zipccl_ans_law_of(shape, (int)(table & 7))];
        if (s->m > 0)
            now = enc_length(t, s, ratio_length(of, t->lane), (law & 255) + (table >> 3));
        if (t->lane == 0)
            sh->cost[shape][t->warp] = now;
    }
    __syncthreads();
    ENC_ROLLED
    for (int shape = 0; shape < ZIPCCL_ANS_SHAPES; shape++) {
        uint32_t now = enc_sum(t, sh->cost[shape]);
        now += shape > 0 ? enc_sum(t, sh->nsampled) / ZIPCCL_SHAPE_CHANCE : 0;
        best = now < least ? shape : best;
        least = now < least ? now : least;
    }
    return best;
}

/* Choose the tables.  Every thread calls it; ends with a barrier. */
static __device__ __forceinline__ void ratio_choose(struct enc_thread *t, struct ratio_ans *ans,
                                                    struct enc_choice *choice)
{
    bool gaussian = choice->verdict == ZIPCCL_IS_GAUSSIAN;
    uint32_t law, table = ratio_table(t, gaussian ? 0 : ratio_shape(t, &choice->sample), &law);
    if (t->lane == 0)
        ans->tables[t->warp] = choice->sample.m > 0 ? (uint8_t)table : 0;
    if (t->lane == 0 && t->warp == 0) {
        ans->law = law;
        ans->gaussian = gaussian;
        ans->tier_bits = choice->tier_bits;
    }
    __syncthreads();
}

/* By tiers, or raw if that is no longer. */
static __device__ __forceinline__ void ratio_code_tiers(struct enc_thread *t,
                                                        struct enc_coded<ENC_ANY> *c)
{
    const struct enc_shared *sh = t->sh;
    struct enc_sizes *z = &c->z;
    if (z->program != ZIPCCL_PROGRAM_RAW && enc_by_tiers<ENC_ANY, false>(t, c))
        return;
    z->program = ZIPCCL_PROGRAM_RAW;
    z->planes = z->base = 0;
    z->share = (uint32_t)zipccl_raw_share(&sh->fields, sh->src.m);
    z->variable = sh->nbitmap + sh->src.m * sh->fields.size - z->share;
}

/* What a Gaussian is thought to take by tiers, if it has the planes that it has by ANS. */
static __device__ __forceinline__ uint32_t ratio_estimate(const struct enc_shared *sh,
                                                          const struct ratio_ans *ans)
{
    const struct zipccl_fields *fields = &sh->fields;
    int nplanes = __popc(ans->sizes.planes) + fields->nplanes - zipccl_ans_planes(fields);
    return sh->nbitmap + (uint32_t)zipccl_share_of(fields, sh->src.m, nplanes, 2).tier1 +
           sh->src.m * ans->tier_bits / (8 * 256);
}

static __device__ __forceinline__ uint32_t ratio_bytes_of(const struct enc_sizes *z)
{
    return (uint32_t)zipccl_align64(z->share) + z->variable;
}

/*
 * Code by program ANS or by what has been chosen, whichever is shorter: a Gaussian by ANS at once, if
 * that is as short as its tiers are thought to be; all else both ways.
 */
static __device__ __forceinline__ void
ratio_code_shorter(struct enc_thread *t, struct ratio_ans *ans, struct enc_coded<ENC_ANY> *c)
{
    ENC_ROLLED
    for (bool both = !ans->gaussian;; both = true) {
        if (both)
            ratio_code_tiers(t, c);
        __syncthreads();
        bool shorter = ratio_code_ans(t, ans);
        uint32_t by_ans = ratio_bytes_of(&ans->sizes);
        shorter = shorter &&
                  (both ? by_ans < ratio_bytes_of(&c->z) : by_ans <= ratio_estimate(t->sh, ans));
        if (shorter) {
            c->z = ans->sizes;
            c->z.base = ans->tables[t->warp];
            ratio_write_ans(t, ans);
        }
        if (shorter || both)
            return;
        __syncthreads();
    }
}

/* As enc_code(), for max ratio.  Every thread calls it. */
static __device__ __forceinline__ void ratio_code(struct enc_thread *t, struct ratio_ans *ans,
                                                  struct enc_coded<ENC_ANY> *c)
{
    struct enc_sizes *z = &c->z;
    struct enc_choice choice;
    *z = (struct enc_sizes){};
    if (t->warp == 0 && t->lane < ZIPCCL_MAX_TIERS)
        t->sh->escapes[t->lane] = 0;
    if (ratio_stage(t)) {
        z->program = ZIPCCL_PROGRAM_CONSTANT;
        return;
    }
    ENC_ROLLED
    for (bool again = false;; again = true) {
        z->program = enc_choose<ENC_ANY, false>(t, &t->sh->src, !again, &z->base, &choice);
        if (z->program != ZIPCCL_PROGRAM_ZEROS)
            break;
        enc_bitmap<ENC_ANY, false>(t);
    }
    if (choice.verdict == ZIPCCL_IS_HOPELESS) {
        ratio_code_tiers(t, c);
        return;
    }
    ratio_choose(t, ans, &choice);
    ratio_code_shorter(t, ans, c);
}

/* First round: code the block's item and put share and entry where they belong. */
template <>
__device__ __forceinline__ void enc_code_item<ENC_ANY, true>(struct enc_thread *t,
                                                             const struct enc_params *p,
                                                             const struct enc_message *msg)
{
    SIMT_SHARED(struct ratio_ans, ans, 1);
    struct enc_shared *sh = t->sh;
    struct enc_coded<ENC_ANY> c;
    ratio_code(t, ans, &c);
    enc_find_place(t, p, &c.z);
    if (t->warp == 0) {
        bool constant = c.z.program == ZIPCCL_PROGRAM_CONSTANT;
        uint32_t element = ratio_element_of(sh->fields.split, ratio_staged(sh, 0));
        if (constant && t->lane < sh->fields.size)
            sh->base[t->lane] = (uint8_t)(element >> 8 * t->lane);
        __syncwarp();
        enc_entry(t, &c.z,
                  msg->wire + ZIPCCL_MESSAGE_HEADER_BYTES + sh->index * ZIPCCL_ENTRY_BYTES);
    }
    uint8_t *share = enc_share_at(t, msg, &c.z);
    if (c.z.program == ZIPCCL_PROGRAM_RAW)
        ratio_place_raw(t, &c.z, share);
    else if (share && c.z.program == ZIPCCL_PROGRAM_ANS)
        ratio_place_ans(t, &c.z, share);
    else if (share && c.z.program != ZIPCCL_PROGRAM_CONSTANT)
        enc_place_tiers<ENC_ANY, false>(t, &c, share);
    __syncthreads();
    if (t->warp == 0 && t->lane == 0)
        simt_add_acq_rel(&p->control->ndone[sh->message], 1u);
}

#endif
