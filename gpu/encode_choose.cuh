/*
 * encode_choose.cuh - program and bases of a superblock, each warp looking at its sub-block
 *
 * choose.c as a block of threads does it, with the arithmetic of core/codec/decide.h, so that the
 * choice is the scalar row's: a sub-block's sample stays in the registers of its warp, two
 * elements a look and lane, and its estimates are sums over the warp.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_ENCODE_CHOOSE_CUH
#define ZIPCCL_GPU_ENCODE_CHOOSE_CUH

#include "gpu/encode_state.cuh"

/* What a lane sampled: exponent of look k, run r in byte 2 k + r, 0 if there was no element. */
struct enc_sample {
    uint64_t exponents;
    uint32_t m; /* elements of the warp's sub-block */
    uint32_t nlooks;
};

/* How many elements run 'run' of a look has. */
static __device__ __forceinline__ uint32_t enc_run(const struct enc_thread *t, uint32_t m,
                                                   uint32_t look, uint32_t run)
{
    uint32_t start = (uint32_t)zipccl_sample_start(t->warp, m, look, run);
    return m - start < ZIPCCL_RUN ? m - start : ZIPCCL_RUN;
}

static __device__ __forceinline__ uint32_t enc_nsub(const struct enc_source *src)
{
    return (src->m + ZIPCCL_SUBBLOCK - 1) / ZIPCCL_SUBBLOCK;
}

/* Take look 's->nlooks' at the warp's sub-block and add what it says to the shared sums. */
template <int SPLIT, bool FLOATS>
static __device__ __forceinline__ void enc_look(struct enc_thread *t, const struct enc_source *src,
                                                struct enc_sample *s)
{
    const struct zipccl_fields fields = enc_fields_of<SPLIT>(t->sh);
    const uint32_t special = fields.special ? fields.special : 255;
    uint32_t first = t->warp * ZIPCCL_SUBBLOCK, look = s->nlooks++, m = s->m;
    if (m == 0)
        return;
    uint32_t nsampled = 0, sum = 0, nvalid = 0, nzero = 0, e[2];
    bool valid[2];
    SIMT_UNROLL
    for (uint32_t run = 0; run < 2; run++) {
        uint32_t start = (uint32_t)zipccl_sample_start(t->warp, m, look, run);
        uint32_t len = enc_run(t, m, look, run);
        bool taken = t->lane < len;
        uint32_t x = taken ? enc_element<SPLIT, FLOATS>(src, first + start + t->lane) : 0;
        /* The other elements of eight are zero and not looked at. */
        uint32_t words[8] = {x, 0, 0, 0, 0, 0, 0, 0};
        e[run] = enc_exponents<SPLIT>(words, 0) & 0xff;
        valid[run] = (e[run] != 0) & (e[run] != special);
        nsampled += len;
        nzero += (uint32_t)__popc(__ballot_sync(ALL_LANES, taken && x == 0));
        nvalid += (uint32_t)__popc(__ballot_sync(ALL_LANES, valid[run]));
        s->exponents |= (uint64_t)e[run] << 8 * (2 * look + run);
    }
    uint8_t low, high;
    sum = __reduce_add_sync(ALL_LANES, (valid[0] ? e[0] : 0) + (valid[1] ? e[1] : 0));
    zipccl_pull(sum, nvalid, &low, &high);
    sum = 0;
    SIMT_UNROLL
    for (int run = 0; run < 2; run++) {
        uint32_t pulled = e[run] < low ? low : e[run] > high ? high : e[run];
        sum += valid[run] ? pulled : 0;
    }
    sum = __reduce_add_sync(ALL_LANES, sum);
    if (t->lane == 0) {
        struct enc_shared *sh = t->sh;
        sh->sum[t->warp] += sum;
        sh->nvalid[t->warp] += fields.exponent_bits < 8 ? nsampled - nzero : nvalid;
        sh->nsampled[t->warp] += nsampled;
        sh->nzero[t->warp] += nzero;
    }
}

/* As locate() of core/codec/locate.h, by one warp, a lane a sub-block. */
static __device__ __forceinline__ void enc_locate(struct enc_thread *t, const struct enc_sample *s)
{
    struct enc_shared *sh = t->sh;
    uint32_t lane = t->lane, sum = 0, nvalid = 0;
    if (lane < ZIPCCL_SUBBLOCKS) {
        sum = sh->sum[lane];
        nvalid = sh->nvalid[lane];
    }
    int location = zipccl_location_of(sum, nvalid), deviation = zipccl_deviation(s->nlooks);
    int centre =
        zipccl_location_of(__reduce_add_sync(ALL_LANES, sum), __reduce_add_sync(ALL_LANES, nvalid));
    /* The second mean leaves out the sub-blocks that have a scale of their own. */
    uint32_t near = (uint32_t)zipccl_is_near(location, centre, deviation + deviation / 2);
    uint32_t near_sum = __reduce_add_sync(ALL_LANES, sum & near);
    uint32_t near_nvalid = __reduce_add_sync(ALL_LANES, nvalid & near);
    centre = near_nvalid ? zipccl_location_of(near_sum, near_nvalid) : centre;
    int away = location - centre, is_near = zipccl_is_near(location, centre, deviation);
    uint32_t square =
        lane < enc_nsub(&sh->src) ? (uint32_t)((away & is_near) * (away & is_near)) : 0;
    uint32_t spread = __reduce_add_sync(ALL_LANES, square);
    int own = ~is_near & -(int)(nvalid != 0);
    if (lane < ZIPCCL_SUBBLOCKS) {
        sh->location[lane] = (location & own) | (centre & ~own);
        sh->own[lane] = own;
    }
    if (lane == 0) {
        sh->centre = centre;
        sh->spread = spread;
    }
}

/* Take looks up to 'nlooks' and find the locations.  Every thread calls it; ends with a barrier. */
template <int SPLIT, bool FLOATS>
static __device__ __forceinline__ void enc_look_and_locate(struct enc_thread *t,
                                                           const struct enc_source *src,
                                                           struct enc_sample *s, uint32_t nlooks)
{
    ENC_ROLLED
    while (s->nlooks < nlooks)
        enc_look<SPLIT, FLOATS>(t, src, s);
    __syncthreads();
    if (t->warp == 0)
        enc_locate(t, s);
    __syncthreads();
}

/* Sum of one of the arrays by sub-block. */
static __device__ __forceinline__ uint32_t enc_sum(const struct enc_thread *t, const uint32_t *x)
{
    return __reduce_add_sync(ALL_LANES, t->lane < ZIPCCL_SUBBLOCKS ? x[t->lane] : 0);
}

/* Sum of lengths over the warp's sample: 'lengths' is a lane's, of d = lane + ZIPCCL_LEAST_D. */
static __device__ __forceinline__ uint32_t enc_length(const struct enc_thread *t,
                                                      const struct enc_sample *s, uint32_t lengths,
                                                      uint32_t base)
{
    uint32_t sum = 0;
    ENC_ROLLED
    for (uint32_t j = 0; j < 2 * s->nlooks; j++) {
        uint32_t e = (uint32_t)(s->exponents >> 8 * j) & 0xff;
        uint32_t at = (base - e - (uint32_t)ZIPCCL_LEAST_D) & 0xff;
        uint32_t length =
            __shfl_sync(ALL_LANES, lengths, (int)(at < ZIPCCL_NUM_D ? at : ZIPCCL_NUM_D - 1));
        if (s->m == ZIPCCL_SUBBLOCK || t->lane < enc_run(t, s->m, j / 2, j % 2))
            sum += length;
    }
    return __reduce_add_sync(ALL_LANES, sum);
}

/* Estimated bits of the warp's sub-block by 'program' with 'base'. */
static __device__ __forceinline__ uint32_t enc_cost(const struct enc_thread *t,
                                                    const struct enc_sample *s, uint32_t program,
                                                    uint32_t base)
{
    return enc_length(t, s, enc_code_lengths[program][t->lane], base);
}

/*
 * Move the warp's base up, or else down, while its sample gains by it; it stops where a step gains
 * nothing.  Returns the bits.
 */
static __device__ __forceinline__ uint32_t enc_improve(const struct enc_thread *t,
                                                       const struct enc_sample *s, uint32_t program,
                                                       uint32_t *base)
{
    uint32_t from = *base, least = enc_cost(t, s, program, from);
    ENC_ROLLED
    for (int step = 1; step >= -1; step -= 2) {
        bool going = *base == from;
        ENC_ROLLED
        for (int octave = 1; octave <= ZIPCCL_REACH && going; octave++) {
            uint32_t next = (from + (uint32_t)(step * octave)) & 0xff;
            uint32_t now = enc_cost(t, s, program, next);
            going = now + ZIPCCL_CHANCE_BITS < least;
            *base = going ? next : *base;
            least = going ? now : least;
        }
    }
    return least;
}

/*
 * The data is no Gaussian: weigh every program, those that are not for Gaussians with all bases an
 * octave lower and higher too if 'deep', and then move the bases one by one.
 */
template <int SPLIT>
static __device__ __forceinline__ uint32_t enc_search(struct enc_thread *t,
                                                      const struct enc_sample *s, bool deep,
                                                      uint32_t *base)
{
    struct enc_shared *sh = t->sh;
    bool mine = s->m > 0;
    uint32_t candidates = 0, best = 0, least = 0xffffffffu, taken = 0;
    int location = sh->location[t->warp];
    ENC_ROLLED
    for (uint32_t program = 1; program < ZIPCCL_NUM_PROGRAMS; program++) {
        int reach = zipccl_search_reach(deep, (uint8_t)program);
        ENC_ROLLED
        for (int octaves = -reach; octaves <= reach; octaves++, candidates++) {
            uint32_t now = 0;
            if (mine)
                now = enc_cost(t, s, program,
                               zipccl_base_of(location, zipccl_shifts[program] + 256 * octaves));
            if (t->lane == 0)
                sh->cost[candidates][t->warp] = now;
        }
    }
    __syncthreads();
    candidates = 0;
    ENC_ROLLED
    for (uint32_t program = 1; program < ZIPCCL_NUM_PROGRAMS; program++) {
        int reach = zipccl_search_reach(deep, (uint8_t)program);
        ENC_ROLLED
        for (int octaves = -reach; octaves <= reach; octaves++, candidates++) {
            uint32_t now = enc_sum(t, sh->cost[candidates]);
            if (now >= least)
                continue;
            least = now;
            best = program;
            taken = zipccl_base_of(location, zipccl_shifts[program] + 256 * octaves);
        }
    }
    *base = mine ? taken : 0;
    if (!deep)
        return best;
    uint32_t bits = mine ? enc_improve(t, s, best, base) : 0;
    __syncthreads();
    if (t->lane == 0)
        sh->cost[0][t->warp] = bits;
    __syncthreads();
    bool raw = enc_sum(t, sh->cost[0]) >=
               enc_fields_of<SPLIT>(sh).exponent_bits * enc_sum(t, sh->nsampled);
    return raw ? (uint32_t)ZIPCCL_PROGRAM_RAW : best;
}

/* How a choice came about. */
struct enc_choice {
    struct enc_sample sample;
    enum zipccl_verdict verdict;
    uint32_t tier_bits; /* what a Gaussian's program takes an exponent, in 1/256 bit */
};

/*
 * Choose as zipccl_superblock_choose() does.  Returns the program, and fills '*base', that of the
 * warp's sub-block, 0 beyond the last one; or, with 'look_for_zeros', ZIPCCL_PROGRAM_ZEROS if one in
 * 16 sampled elements or more have no bit set.  Every thread calls it and gets the same program.
 */
template <int SPLIT, bool FLOATS>
static __device__ __forceinline__ uint32_t enc_choose(struct enc_thread *t,
                                                      const struct enc_source *src,
                                                      bool look_for_zeros, uint32_t *base,
                                                      struct enc_choice *choice)
{
    struct enc_shared *sh = t->sh;
    uint32_t begin = t->warp * ZIPCCL_SUBBLOCK, left = src->m > begin ? src->m - begin : 0;
    struct enc_sample *s = &choice->sample;
    *s = (struct enc_sample){0, left < ZIPCCL_SUBBLOCK ? left : ZIPCCL_SUBBLOCK, 0};
    *base = 0;
    if (t->lane == 0)
        sh->sum[t->warp] = sh->nvalid[t->warp] = sh->nsampled[t->warp] = sh->nzero[t->warp] = 0;
    /* One look at each of a few sub-blocks would be too few exponents. */
    uint32_t nlooks = enc_nsub(src) <= ZIPCCL_FEW_SUBBLOCKS ? ZIPCCL_LOOKS : 1;
    bool far = false;
    ENC_ROLLED
    for (;;) {
        enc_look_and_locate<SPLIT, FLOATS>(t, src, s, nlooks);
        if (far)
            break;
        uint32_t nsampled = enc_sum(t, sh->nsampled);
        if (look_for_zeros && ZIPCCL_ZEROS_IN * enc_sum(t, sh->nzero) >= nsampled)
            return ZIPCCL_PROGRAM_ZEROS;
        int x = sh->centre + ZIPCCL_SHIFT_GAUSSIAN;
        uint32_t program = zipccl_gaussian_program(x), cost = 0;
        if (s->m > 0) {
            int shift = sh->own[t->warp] ? zipccl_shifts[program] : ZIPCCL_SHIFT_GAUSSIAN;
            *base = zipccl_base_of(sh->location[t->warp], shift);
            cost = enc_cost(t, s, program, *base);
        }
        if (t->lane == 0)
            sh->cost[0][t->warp] = cost;
        __syncthreads();
        cost = enc_sum(t, sh->cost[0]);
        enum zipccl_verdict verdict =
            zipccl_verdict_of(cost, nsampled, enc_fields_of<SPLIT>(sh).exponent_bits,
                              zipccl_gaussian_bits[(x & 255) / 16], sh->spread, enc_nsub(src));
        choice->verdict = verdict;
        choice->tier_bits = 256 * cost / nsampled;
        if (verdict == ZIPCCL_IS_HOPELESS)
            return ZIPCCL_PROGRAM_RAW;
        if (verdict == ZIPCCL_IS_GAUSSIAN)
            return program;
        /* What the sums were read from changes next. */
        __syncthreads();
        if (verdict == ZIPCCL_IS_NEAR)
            break;
        far = true;
        nlooks = ZIPCCL_LOOKS;
    }
    return enc_search<SPLIT>(t, s, far, base);
}

#endif
