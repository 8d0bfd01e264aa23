/*
 * reduce.cu - fp32 sums: of messages and raw elements at once, of raw elements, and rounded
 *
 * The bits are those of core/reduce.h: additions and the one division round to nearest even, nothing is
 * contracted, subnormals stay, a NaN result becomes the canonical one when it is rounded.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/decode_run.cuh"

/* A team that adds up messages; the sums of a superblock make it large. */
struct sum_shared {
    struct decode_shared decode;
    alignas(16) float sums[ZIPCCL_SUPERBLOCK];
};

#define SUM_TEAMS   2u
#define PLAIN_TEAMS 4u

/* A sum as it is stored: bits of an element. */
template <int SPLIT> static __device__ inline uint32_t rounded(float x, uint32_t divisor)
{
    if (divisor != 1)
        x = __fdiv_rn(x, (float)divisor);
    if (SPLIT == ZIPCCL_SPLIT_BF16)
        return zipccl_bf16_from_float(x);
    if (SPLIT == ZIPCCL_SPLIT_FP16)
        return zipccl_fp16_from_float(x);
    return x != x ? ZIPCCL_FP32_NAN : zipccl_float_to_bits(x);
}

/* Round the sums of 16 bytes of elements, number u of those of 'm'. */
template <int SPLIT>
static __device__ inline void round_unit(const float *sums, unsigned u, unsigned m,
                                         uint32_t divisor, uint8_t *dst)
{
    const unsigned size = element<SPLIT>::size, n = 16 / size;
    const float *from = sums + n * u;
    unsigned count = min(n, m - n * u);
    uint32_t x[4] = {0, 0, 0, 0};
    if (count == n && is_aligned16(from)) {
        SIMT_UNROLL
        for (unsigned k = 0; k < n; k += 4) {
            float4 y = *(const float4 *)(from + k);
            float four[4] = {y.x, y.y, y.z, y.w};
            SIMT_UNROLL
            for (unsigned l = 0; l < 4; l++)
                x[(k + l) * size / 4] |= rounded<SPLIT>(four[l], divisor)
                                         << 8 * ((k + l) * size % 4);
        }
    } else {
        SIMT_UNROLL
        for (unsigned k = 0; k < n; k++)
            if (k < count)
                x[k * size / 4] |= rounded<SPLIT>(from[k], divisor) << 8 * (k * size % 4);
    }
    store_unit<size>(dst + (size_t)16 * u, x, count);
}

/* Round sums [m] to dst [m]. */
static __device__ void round_sums(unsigned split, const float *sums, unsigned m, uint32_t divisor,
                                  uint8_t *dst)
{
    const unsigned n = split == ZIPCCL_SPLIT_FP32 ? 4 : 8;
    KEEP_LOOP
    for (unsigned u = team_thread(); n * u < m; u += TEAM_THREADS)
        switch (split) {
        case ZIPCCL_SPLIT_BF16: round_unit<ZIPCCL_SPLIT_BF16>(sums, u, m, divisor, dst); break;
        case ZIPCCL_SPLIT_FP16: round_unit<ZIPCCL_SPLIT_FP16>(sums, u, m, divisor, dst); break;
        default: round_unit<ZIPCCL_SPLIT_FP32>(sums, u, m, divisor, dst); break;
        }
}

__global__ void __launch_bounds__(SUM_TEAMS *TEAM_THREADS, 1)
    sum_kernel(struct decode_launch p, uint32_t divisor, uint8_t *dst)
{
    SIMT_DYN_SHARED(struct sum_shared, teams);
    struct decode_shared *sh = &teams[team_number()].decode;
    float *sums = teams[team_number()].sums;
    unsigned split = p.in.fields.split;
    uint32_t step = gridDim.x * (blockDim.x / TEAM_THREADS);
    begin_shared(sh);
    for (uint32_t s = blockIdx.x + gridDim.x * team_number(); s < p.superblocks; s += step) {
        size_t first = (size_t)s * ZIPCCL_SUPERBLOCK * p.in.size;
        unsigned m = (unsigned)zipccl_superblock_n(p.in.batch.first.n, s);
        for (uint32_t t = 0; t < p.nmessages; t++) {
            struct decode_slot slot = slot_at(&p.in, t);
            uint32_t kind = p.space.states[t].kind;
            struct decode_view v;
            team_sync(&sh->meeting);
            if (kind == DECODE_ELEMENTS)
                add_raw(split, slot.elements + first, m, sums, t == 0);
            else if (kind == DECODE_RAW)
                add_raw(split, slot.wire + ZIPCCL_MESSAGE_HEADER_BYTES + first, m, sums, t == 0);
            else if (kind == DECODE_CODED && ready_superblock(sh, &p, t, s, &v))
                add_coded(split, sh, &v, sums, t == 0);
        }
        team_sync(&sh->meeting);
        round_sums(split, sums, m, divisor, dst + first);
    }
}

/* As many elements a block at once as a superblock has. */
__global__ void __launch_bounds__(PLAIN_TEAMS *TEAM_THREADS, 1)
    accumulate_kernel(unsigned split, const uint8_t *x, uint64_t n, bool start, float *acc)
{
    const unsigned size = split == ZIPCCL_SPLIT_FP32 ? 4 : 2;
    uint64_t step = gridDim.x * PLAIN_TEAMS;
    for (uint64_t s = blockIdx.x + gridDim.x * team_number(); s * ZIPCCL_SUPERBLOCK < n;
         s += step) {
        uint64_t at = s * ZIPCCL_SUPERBLOCK;
        add_raw(split, x + at * size, (unsigned)zipccl_superblock_n(n, s), acc + at, start);
    }
}

__global__ void __launch_bounds__(PLAIN_TEAMS *TEAM_THREADS, 1)
    round_kernel(unsigned split, const float *acc, uint64_t n, uint32_t divisor, uint8_t *dst)
{
    const unsigned size = split == ZIPCCL_SPLIT_FP32 ? 4 : 2;
    uint64_t step = gridDim.x * PLAIN_TEAMS;
    for (uint64_t s = blockIdx.x + gridDim.x * team_number(); s * ZIPCCL_SUPERBLOCK < n;
         s += step) {
        uint64_t at = s * ZIPCCL_SUPERBLOCK;
        round_sums(split, acc + at, (unsigned)zipccl_superblock_n(n, s), divisor, dst + at * size);
    }
}

/* The split of a type that can be added; -1 for others. */
static int split_of(enum zipccl_dtype dtype)
{
    switch (dtype) {
    case ZIPCCL_BFLOAT16: return ZIPCCL_SPLIT_BF16;
    case ZIPCCL_FLOAT16: return ZIPCCL_SPLIT_FP16;
    case ZIPCCL_FLOAT32: return ZIPCCL_SPLIT_FP32;
    default: return -1;
    }
}

static bool read_args(const struct zipccl_gpu_sum_args *args, struct decode_launch *p)
{
    const struct zipccl_fields *fields = zipccl_fields_of(args->dtype);
    if (split_of(args->dtype) < 0 || args->nsms == 0 || args->nterms == 0 ||
        args->nterms > ZIPCCL_GPU_MAX_MESSAGES || args->divisor == 0 || !args->d_results ||
        args->n > SIZE_MAX / 8 / sizeof(float) ||
        args->n / ZIPCCL_SUPERBLOCK > INT32_MAX / ZIPCCL_GPU_MAX_MESSAGES)
        return false;
    if (!args->d_terms && ((uintptr_t)args->d_wire % ZIPCCL_GPU_WIRE_ALIGN != 0 ||
                           args->wire_stride % ZIPCCL_GPU_WIRE_ALIGN != 0))
        return false;
    memset(p, 0, sizeof *p);
    p->in.batch.first.n = args->n;
    p->in.batch.first.wire = (void *)args->d_wire;
    p->in.batch.first.capacity = args->wire_nbytes;
    p->in.batch.wire_stride = args->wire_stride;
    p->in.is_sum = true;
    p->in.d_terms = args->d_terms;
    p->in.own = args->own;
    p->in.d_own = args->d_own;
    p->in.fields = *fields;
    p->in.dtype = (uint32_t)args->dtype;
    p->in.size = fields->size;
    p->in.d_results = args->d_results;
    p->nmessages = args->nterms;
    p->superblocks = decode_superblocks(args->n);
    return true;
}

cudaError_t zipccl_gpu_decode_sum(const struct zipccl_gpu_sum_args *args, cudaStream_t stream)
{
    struct decode_launch p;
    if (!read_args(args, &p))
        return cudaErrorInvalidValue;
    cudaError_t error =
        zipccl_gpu_index(&p, (uint64_t)p.superblocks * args->nterms, args->d_workspace,
                         args->workspace_nbytes, args->nsms, stream);
    if (error != cudaSuccess || args->n == 0)
        return error;
    unsigned nteams;
    error = teams_of(sum_kernel, sizeof(struct sum_shared), SUM_TEAMS, &nteams);
    if (error != cudaSuccess)
        return error;
    uint32_t divisor = args->divisor;
    uint8_t *dst = (uint8_t *)args->d_dst;
    dim3 grid(p.superblocks < args->nsms ? p.superblocks : args->nsms),
        block(nteams * TEAM_THREADS);
    SIMT_LAUNCH(sum_kernel, grid, block, nteams * sizeof(struct sum_shared), stream, p, divisor,
                dst);
    return cudaGetLastError();
}

size_t zipccl_gpu_sum_workspace(enum zipccl_dtype dtype, uint64_t n, uint32_t nterms, uint32_t nsms)
{
    (void)nsms;
    if (split_of(dtype) < 0)
        return 0;
    return zipccl_gpu_index_workspace((n / ZIPCCL_SUPERBLOCK + 1) * nterms, nterms);
}

/* Blocks for n elements, of which a team takes a superblock's worth at a time. */
static dim3 plain_grid(uint64_t n, uint32_t nsms)
{
    uint64_t nblocks = decode_superblocks(n);
    return dim3((unsigned)(nblocks < nsms ? nblocks : nsms));
}

cudaError_t zipccl_gpu_accumulate(enum zipccl_dtype dtype, const void *d_x, uint64_t n, bool first,
                                  float *d_acc, uint32_t nsms, cudaStream_t stream)
{
    const uint8_t *x = (const uint8_t *)d_x;
    int split = split_of(dtype);
    if (split < 0 || nsms == 0 || n / ZIPCCL_SUPERBLOCK > INT32_MAX)
        return cudaErrorInvalidValue;
    if (n == 0)
        return cudaSuccess;
    SIMT_LAUNCH(accumulate_kernel, plain_grid(n, nsms), dim3(PLAIN_TEAMS * TEAM_THREADS), 0, stream,
                (unsigned)split, x, n, first, d_acc);
    return cudaGetLastError();
}

cudaError_t zipccl_gpu_round(enum zipccl_dtype dtype, const float *d_acc, uint64_t n,
                             uint32_t divisor, void *d_dst, uint32_t nsms, cudaStream_t stream)
{
    uint8_t *dst = (uint8_t *)d_dst;
    int split = split_of(dtype);
    if (split < 0 || nsms == 0 || divisor == 0 || n / ZIPCCL_SUPERBLOCK > INT32_MAX)
        return cudaErrorInvalidValue;
    if (n == 0)
        return cudaSuccess;
    SIMT_LAUNCH(round_kernel, plain_grid(n, nsms), dim3(PLAIN_TEAMS * TEAM_THREADS), 0, stream,
                (unsigned)split, d_acc, n, divisor, dst);
    return cudaGetLastError();
}

SIMT_KERNEL(sum_kernel);
SIMT_KERNEL(accumulate_kernel);
SIMT_KERNEL(round_kernel);
