/*
 * encode.cu - messages written on a GPU: the launchers, and the kernel for types that are stored raw
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/encode_kernel.cuh"

ENC_ELSEWHERE(ZIPCCL_SPLIT_BF16, false);
ENC_ELSEWHERE(ZIPCCL_SPLIT_BF16, true);
ENC_ELSEWHERE(ZIPCCL_SPLIT_FP16, false);
ENC_ELSEWHERE(ZIPCCL_SPLIT_FP16, true);
ENC_ELSEWHERE(ZIPCCL_SPLIT_FP32, false);
ENC_ELSEWHERE(ZIPCCL_SPLIT_E4M3, false);
ENC_ELSEWHERE(ZIPCCL_SPLIT_E5M2, false);
ENC_ELSEWHERE(ENC_ANY, true);

/* enum zipccl_effort; core/codec.h is C. */
#define ENC_EFFORT_FAST  0
#define ENC_EFFORT_RATIO 1

/* Type by number: how it is taken apart, ENC_RAW if it is not. */
static int enc_split(enum zipccl_dtype dtype)
{
    switch (dtype) {
    case ZIPCCL_BFLOAT16: return ZIPCCL_SPLIT_BF16;
    case ZIPCCL_FLOAT16: return ZIPCCL_SPLIT_FP16;
    case ZIPCCL_FLOAT32: return ZIPCCL_SPLIT_FP32;
    case ZIPCCL_FLOAT8_E4M3: return ZIPCCL_SPLIT_E4M3;
    case ZIPCCL_FLOAT8_E5M2: return ZIPCCL_SPLIT_E5M2;
    default: return ENC_RAW;
    }
}

static uint32_t enc_size(enum zipccl_dtype dtype)
{
    switch (dtype) {
    case ZIPCCL_INT8:
    case ZIPCCL_UINT8:
    case ZIPCCL_FLOAT8_E4M3:
    case ZIPCCL_FLOAT8_E5M2: return 1;
    case ZIPCCL_FLOAT16:
    case ZIPCCL_BFLOAT16: return 2;
    case ZIPCCL_INT32:
    case ZIPCCL_UINT32:
    case ZIPCCL_FLOAT32: return 4;
    case ZIPCCL_INT64:
    case ZIPCCL_UINT64:
    case ZIPCCL_FLOAT64: return 8;
    default: return 0;
    }
}

static size_t enc_align(size_t x)
{
    return (x + 255) & ~(size_t)255;
}

/*
 * Where the parts of a workspace lie.  Launches leave the words at 0, but not what follows; so where the
 * words end depends on nothing but the workspace's own size, as many as there is room for slots.
 */
struct enc_workspace {
    size_t slots, rests, nbytes, slot_nbytes, rest_nbytes;
};

#define ENC_WORDS_AT   enc_align(sizeof(struct enc_control))
#define ENC_LEAST_SLOT 16384u

static uint64_t enc_max_items(enum zipccl_dtype dtype, uint64_t total_n, uint32_t nmessages)
{
    uint64_t size = enc_size(dtype);
    uint64_t chunk = enc_split(dtype) == ENC_RAW ? ENC_RAW_BYTES / size : ZIPCCL_SUPERBLOCK;
    return total_n / chunk + nmessages;
}

/* Bytes for a superblock's variable bytes, which with its share are never longer than raw elements. */
static size_t enc_slot_bytes(const struct zipccl_fields *fields, bool ratio)
{
    size_t bitmap = zipccl_bitmap_bytes(ZIPCCL_SUPERBLOCK, ZIPCCL_SUPERBLOCK / ZIPCCL_GROUP);
    size_t share = zipccl_share_of(fields, ZIPCCL_SUPERBLOCK, 0, 1).end;
    struct zipccl_share ans = zipccl_ans_share_of(fields, ZIPCCL_SUPERBLOCK, 0);
    if (ratio && share > ans.end - zipccl_ans_carried(&ans))
        share = ans.end - zipccl_ans_carried(&ans);
    return zipccl_align64(bitmap + ZIPCCL_SUPERBLOCK * fields->size - share + 16);
}

/* Fills 'out' for a workspace of 'nbytes', or if that is 0 of as many as it takes.  False if it cannot be. */
static bool enc_workspace_of(enum zipccl_dtype dtype, bool ratio, uint64_t total_n,
                             uint32_t nmessages, uint32_t nsms, size_t nbytes,
                             struct enc_workspace *out)
{
    int split = enc_split(dtype);
    if (enc_size(dtype) == 0 || total_n > UINT64_MAX / 64)
        return false;
    uint64_t items = enc_max_items(dtype, total_n, nmessages);
    uint64_t blocks = (uint64_t)nsms * ENC_BLOCKS_PER_SM;
    if (items >= 0x7fffffffu)
        return false;
    out->slot_nbytes = out->rest_nbytes = 0;
    if (split != ENC_RAW) {
        struct zipccl_fields fields = enc_fields[split];
        /* For max ratio the elements as words, and those of them that are not zero. */
        out->rest_nbytes = ZIPCCL_SUPERBLOCK * (ratio ? 2 * sizeof(uint32_t) : fields.size);
        out->slot_nbytes = enc_slot_bytes(&fields, ratio);
    }
    size_t slots = items * out->slot_nbytes;
    size_t rests = (blocks < items ? blocks : items) * out->rest_nbytes;
    size_t least = ENC_WORDS_AT + enc_align(slots) + enc_align(rests);
    /* Words take one part in 2048. */
    out->nbytes = nbytes ? nbytes : enc_align(least + least / 1024 + 1024);
    out->slots = ENC_WORDS_AT + enc_align(8 * (out->nbytes / ENC_LEAST_SLOT));
    out->rests = out->slots + enc_align(slots);
    return out->rests + rests <= out->nbytes;
}

extern "C" size_t zipccl_gpu_encode_workspace(enum zipccl_dtype dtype, uint64_t total_n,
                                              uint32_t nmessages, uint32_t nsms)
{
    struct enc_workspace at;
    return enc_workspace_of(dtype, false, total_n, nmessages, nsms, 0, &at) ? at.nbytes : 0;
}

extern "C" size_t zipccl_gpu_encode_ratio_workspace(enum zipccl_dtype dtype, uint64_t total_n,
                                                    uint32_t nmessages, uint32_t nsms)
{
    struct enc_workspace at;
    return enc_workspace_of(dtype, true, total_n, nmessages, nsms, 0, &at) ? at.nbytes : 0;
}

extern "C" cudaError_t zipccl_gpu_workspace_clear(void *d_workspace, size_t nbytes,
                                                  cudaStream_t stream)
{
    return cudaMemsetAsync(d_workspace, 0, nbytes, stream);
}

/* Arguments that can be, as far as the host sees; fills 'p' and the number of blocks. */
static bool enc_prepare(const struct zipccl_gpu_encode_args *args, bool floats,
                        struct enc_params *p, uint32_t *nblocks)
{
    const struct zipccl_gpu_batch *batch = &args->batch;
    struct enc_workspace at;
    uint8_t *workspace = (uint8_t *)args->d_workspace;
    uint64_t total_n = batch->d_slots ? batch->total_n : batch->first.n;
    if (!batch->d_slots && batch->nmessages > 0) {
        if (total_n > UINT64_MAX / 64 / batch->nmessages)
            return false;
        total_n *= batch->nmessages;
        if ((uintptr_t)batch->first.wire % ZIPCCL_GPU_WIRE_ALIGN || !batch->first.wire ||
            (batch->nmessages > 1 && batch->wire_stride % ZIPCCL_GPU_WIRE_ALIGN) ||
            batch->first.capacity < ZIPCCL_MESSAGE_HEADER_BYTES ||
            (batch->first.n && !batch->first.elements))
            return false;
    }
    if (args->nsms == 0 || args->workspace_nbytes == 0 ||
        batch->nmessages > ZIPCCL_GPU_MAX_MESSAGES || !workspace || (uintptr_t)workspace % 256 ||
        !args->d_results ||
        !enc_workspace_of(args->dtype, args->effort == ENC_EFFORT_RATIO, total_n, batch->nmessages,
                          args->nsms, args->workspace_nbytes, &at))
        return false;
    uint64_t items = enc_max_items(args->dtype, total_n, batch->nmessages);
    uint64_t blocks = (uint64_t)args->nsms * ENC_BLOCKS_PER_SM;
    *nblocks = (uint32_t)(blocks < items ? blocks : items);
    p->batch = *batch;
    p->dtype = args->dtype;
    p->size = enc_size(args->dtype);
    p->max_items = (uint32_t)items;
    p->flag_any = args->flag_any;
    p->floats = floats;
    p->fields = enc_fields[enc_split(args->dtype) == ENC_RAW ? 0 : enc_split(args->dtype)];
    p->control = (struct enc_control *)workspace;
    p->words = (uint64_t *)(workspace + ENC_WORDS_AT);
    p->slots = workspace + at.slots;
    p->rests = workspace + at.rests;
    p->slot_nbytes = (uint32_t)at.slot_nbytes;
    p->rest_nbytes = (uint32_t)at.rest_nbytes;
    p->results = args->d_results;
    return true;
}

static cudaError_t enc_check(const struct zipccl_gpu_encode_args *args, bool floats,
                             struct enc_params *p, uint32_t *nblocks)
{
    if ((args->effort != ENC_EFFORT_FAST && args->effort != ENC_EFFORT_RATIO) ||
        enc_size(args->dtype) == 0)
        return cudaErrorInvalidValue;
    return enc_prepare(args, floats, p, nblocks) ? cudaSuccess : cudaErrorInvalidValue;
}

extern "C" cudaError_t zipccl_gpu_encode(const struct zipccl_gpu_encode_args *args,
                                         cudaStream_t stream)
{
    struct enc_params p;
    uint32_t nblocks;
    cudaError_t error = enc_check(args, false, &p, &nblocks);
    if (error != cudaSuccess || args->batch.nmessages == 0)
        return error;
    if (args->effort == ENC_EFFORT_RATIO && enc_split(args->dtype) != ENC_RAW)
        return enc_launch<ENC_ANY, true>(&p, nblocks, stream);
    switch (enc_split(args->dtype)) {
    case ZIPCCL_SPLIT_BF16: return enc_launch<ZIPCCL_SPLIT_BF16, false>(&p, nblocks, stream);
    case ZIPCCL_SPLIT_FP16: return enc_launch<ZIPCCL_SPLIT_FP16, false>(&p, nblocks, stream);
    case ZIPCCL_SPLIT_FP32: return enc_launch<ZIPCCL_SPLIT_FP32, false>(&p, nblocks, stream);
    case ZIPCCL_SPLIT_E4M3: return enc_launch<ZIPCCL_SPLIT_E4M3, false>(&p, nblocks, stream);
    case ZIPCCL_SPLIT_E5M2: return enc_launch<ZIPCCL_SPLIT_E5M2, false>(&p, nblocks, stream);
    default: return enc_launch<ENC_RAW, false>(&p, nblocks, stream);
    }
}

extern "C" cudaError_t zipccl_gpu_encode_f32(const struct zipccl_gpu_encode_args *args,
                                             cudaStream_t stream)
{
    struct enc_params p;
    uint32_t nblocks;
    if (args->dtype == ZIPCCL_FLOAT32)
        return zipccl_gpu_encode(args, stream);
    if (args->dtype != ZIPCCL_BFLOAT16 && args->dtype != ZIPCCL_FLOAT16)
        return cudaErrorInvalidValue;
    cudaError_t error = enc_check(args, true, &p, &nblocks);
    if (error != cudaSuccess || args->batch.nmessages == 0)
        return error;
    if (args->effort == ENC_EFFORT_RATIO)
        return enc_launch<ENC_ANY, true>(&p, nblocks, stream);
    return args->dtype == ZIPCCL_BFLOAT16
               ? enc_launch<ZIPCCL_SPLIT_BF16, true>(&p, nblocks, stream)
               : enc_launch<ZIPCCL_SPLIT_FP16, true>(&p, nblocks, stream);
}

ENC_HERE(ENC_RAW, false);
