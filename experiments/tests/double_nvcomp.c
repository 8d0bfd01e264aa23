/*
 * double_nvcomp.c - stands for nvCOMP's library in a test: chunks are copied, with their length before them
 *
 * It checks what a caller must keep of nvCOMP 5's interface: options of 64 bytes by value with zeros
 * behind what is used, chunks within their limit, room and temporary memory as asked for.  Memory of
 * the emulated device is the host's.  DOUBLE_NVCOMP=old tells another version, =wrong changes a
 * byte, =status fails the last chunk.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/device/device_nvcomp.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { INVALID = 10, HEAD = 16, TEMP = 100 };

static bool is_asked(const char *what)
{
    const char *value = getenv("DOUBLE_NVCOMP");

    return value != NULL && strcmp(value, what) == 0;
}

static bool are_valid(const struct nvcomp_options *o, bool packs)
{
    static const char zeros[sizeof o->reserved];

    return sizeof *o == 64 && memcmp(o->reserved, zeros, sizeof zeros) == 0 &&
           (packs || (o->first == 0 && o->data_type == 0));
}

int nvcompGetProperties(struct nvcomp_properties *out);
int nvcompGetProperties(struct nvcomp_properties *out)
{
    *out = (struct nvcomp_properties){is_asked("old") ? 4100 : 5300, 13000};
    return NVCOMP_SUCCESS;
}

static int temp(size_t nchunks, size_t max_chunk, struct nvcomp_options o, size_t *nbytes,
                size_t total, bool packs)
{
    if (!are_valid(&o, packs) || nchunks == 0 || total > nchunks * max_chunk)
        return INVALID;
    *nbytes = TEMP * nchunks;
    return NVCOMP_SUCCESS;
}

static int compress(const void *const *chunks, const size_t *nbytes, size_t max_chunk, size_t n,
                    void *scratch, size_t temp_nbytes, void *const *out, size_t *out_nbytes,
                    struct nvcomp_options o, int *statuses)
{
    if (!are_valid(&o, true) || temp_nbytes < TEMP * n)
        return INVALID;
    memset(scratch, 1, TEMP * n);
    for (size_t i = 0; i < n; i++) {
        if (nbytes[i] > max_chunk)
            return INVALID;
        memcpy(out[i], &nbytes[i], sizeof nbytes[i]);
        memcpy((char *)out[i] + HEAD, chunks[i], nbytes[i]);
        out_nbytes[i] = HEAD + nbytes[i];
        statuses[i] = is_asked("status") && i == n - 1 ? INVALID : NVCOMP_SUCCESS;
    }
    return NVCOMP_SUCCESS;
}

static int decompress(const void *const *chunks, const size_t *nbytes, const size_t *room,
                      size_t *got, size_t n, void *scratch, size_t temp_nbytes, void *const *out,
                      struct nvcomp_options o, int *statuses)
{
    if (!are_valid(&o, false) || temp_nbytes < TEMP * n)
        return INVALID;
    memset(scratch, 2, TEMP * n);
    for (size_t i = 0; i < n; i++) {
        memcpy(&got[i], chunks[i], sizeof got[i]);
        statuses[i] = got[i] <= room[i] && nbytes[i] == HEAD + got[i] ? NVCOMP_SUCCESS : INVALID;
        if (statuses[i] == NVCOMP_SUCCESS)
            memcpy(out[i], (const char *)chunks[i] + HEAD, got[i]);
        if (is_asked("wrong"))
            *(char *)out[i] ^= 1;
    }
    return NVCOMP_SUCCESS;
}

/* Both formats have the same functions. */
#define FORMAT(name)                                                                               \
    int nvcompBatched##name##CompressGetTempSizeAsync(size_t, size_t, struct nvcomp_options,       \
                                                      size_t *, size_t);                           \
    int nvcompBatched##name##CompressGetTempSizeAsync(                                             \
        size_t n, size_t most, struct nvcomp_options o, size_t *nbytes, size_t total)              \
    {                                                                                              \
        return temp(n, most, o, nbytes, total, true);                                              \
    }                                                                                              \
    int nvcompBatched##name##DecompressGetTempSizeAsync(size_t, size_t, struct nvcomp_options,     \
                                                        size_t *, size_t);                         \
    int nvcompBatched##name##DecompressGetTempSizeAsync(                                           \
        size_t n, size_t most, struct nvcomp_options o, size_t *nbytes, size_t total)              \
    {                                                                                              \
        return temp(n, most, o, nbytes, total, false);                                             \
    }                                                                                              \
    int nvcompBatched##name##CompressGetMaxOutputChunkSize(size_t, struct nvcomp_options,          \
                                                           size_t *);                              \
    int nvcompBatched##name##CompressGetMaxOutputChunkSize(size_t most, struct nvcomp_options o,   \
                                                           size_t *nbytes)                         \
    {                                                                                              \
        *nbytes = most + HEAD;                                                                     \
        return are_valid(&o, true) ? NVCOMP_SUCCESS : INVALID;                                     \
    }                                                                                              \
    int nvcompBatched##name##CompressAsync(const void *const *, const size_t *, size_t, size_t,    \
                                           void *, size_t, void *const *, size_t *,                \
                                           struct nvcomp_options, int *, cudaStream_t);            \
    int nvcompBatched##name##CompressAsync(                                                        \
        const void *const *chunks, const size_t *nbytes, size_t most, size_t n, void *scratch,     \
        size_t room, void *const *out, size_t *out_nbytes, struct nvcomp_options o, int *statuses, \
        cudaStream_t stream)                                                                       \
    {                                                                                              \
        (void)stream;                                                                              \
        return compress(chunks, nbytes, most, n, scratch, room, out, out_nbytes, o, statuses);     \
    }                                                                                              \
    int nvcompBatched##name##DecompressAsync(const void *const *, const size_t *, const size_t *,  \
                                             size_t *, size_t, void *, size_t, void *const *,      \
                                             struct nvcomp_options, int *, cudaStream_t);          \
    int nvcompBatched##name##DecompressAsync(                                                      \
        const void *const *chunks, const size_t *nbytes, const size_t *room, size_t *got,          \
        size_t n, void *scratch, size_t temp_nbytes, void *const *out, struct nvcomp_options o,    \
        int *statuses, cudaStream_t stream)                                                        \
    {                                                                                              \
        (void)stream;                                                                              \
        return decompress(chunks, nbytes, room, got, n, scratch, temp_nbytes, out, o, statuses);   \
    }
FORMAT(ANS)
FORMAT(Bitcomp)
