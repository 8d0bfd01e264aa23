/*
 * bench_peers.c - zstd, lz4 and Huffman codes of a byte plane, from packaged libraries
 *
 * A general codec gets the elements as they are.  The Huffman rows do what codecs of exponents do:
 * they take the byte that holds the exponent from each element, code that plane by a library's
 * Huffman stage with string matching off, and store the other bytes.  For bf16 and fp32 that byte
 * is the exponent; for fp16 it is the upper byte (sign, exponent, two bits), for fp8 the element.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifdef ZIPCCL_HAVE_ZSTD
/* For ZSTD_c_literalCompressionMode: Huffman codes even where no string is looked for. */
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#endif
#ifdef ZIPCCL_HAVE_LZ4
#include <lz4.h>
#endif
#include "experiments/bench/bench_codec.h"

#include "core/wire.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Bytes before a plane that is coded: how many it takes. */
#define PLANE_HEADER 8

static size_t raw_bytes(const struct zipccl_bench_elements *elements)
{
    return elements->n * elements->size;
}

/* Work memory of all peers. */
struct peer {
#ifdef ZIPCCL_HAVE_ZSTD
    ZSTD_CCtx *encoder;
    ZSTD_DCtx *decoder;
#endif
    uint8_t *plane; /* [n] */
};

static void destroy(void *state)
{
    struct peer *peer = state;
    if (!peer)
        return;
#ifdef ZIPCCL_HAVE_ZSTD
    ZSTD_freeCCtx(peer->encoder);
    ZSTD_freeDCtx(peer->decoder);
#endif
    free(peer->plane);
    free(peer);
}

/* With a plane, but no context of zstd. */
static void *create(const struct zipccl_bench_codec *codec,
                    const struct zipccl_bench_elements *elements)
{
    (void)codec;
    struct peer *peer = calloc(1, sizeof *peer);
    if (!peer)
        return NULL;
    peer->plane = malloc(elements->n + 1);
    if (peer->plane)
        return peer;
    destroy(peer);
    return NULL;
}

/*
 * Take the exponents' bytes and the others apart.  bf16 and fp32 are rotated left by one, so that
 * the exponent fills the upper byte and the sign the lowest bit.
 */
static void split(const struct zipccl_bench_elements *elements, const uint8_t *src,
                  uint8_t *restrict plane, uint8_t *restrict others)
{
    size_t n = elements->n;
    if (elements->size == 1) {
        memcpy(plane, src, n);
    } else if (elements->dtype == ZIPCCL_FLOAT32) {
        for (size_t i = 0; i < n; i++) {
            uint32_t x;
            memcpy(&x, src + 4 * i, 4);
            x = x << 1 | x >> 31;
            plane[i] = (uint8_t)(x >> 24);
            others[i] = (uint8_t)x;
            others[n + i] = (uint8_t)(x >> 8);
            others[2 * n + i] = (uint8_t)(x >> 16);
        }
    } else if (elements->dtype == ZIPCCL_BFLOAT16) {
        for (size_t i = 0; i < n; i++) {
            uint16_t x;
            memcpy(&x, src + 2 * i, 2);
            x = (uint16_t)(x << 1 | x >> 15);
            plane[i] = (uint8_t)(x >> 8);
            others[i] = (uint8_t)x;
        }
    } else {
        for (size_t i = 0; i < n; i++) {
            plane[i] = src[2 * i + 1];
            others[i] = src[2 * i];
        }
    }
}

static void join(const struct zipccl_bench_elements *elements, const uint8_t *restrict plane,
                 const uint8_t *restrict others, uint8_t *restrict dst)
{
    size_t n = elements->n;
    if (elements->size == 1) {
        memcpy(dst, plane, n);
    } else if (elements->dtype == ZIPCCL_FLOAT32) {
        for (size_t i = 0; i < n; i++) {
            uint32_t x = (uint32_t)plane[i] << 24 | (uint32_t)others[2 * n + i] << 16 |
                         (uint32_t)others[n + i] << 8 | others[i];
            x = x >> 1 | x << 31;
            memcpy(dst + 4 * i, &x, 4);
        }
    } else if (elements->dtype == ZIPCCL_BFLOAT16) {
        for (size_t i = 0; i < n; i++) {
            uint16_t x = (uint16_t)(plane[i] << 8 | others[i]);
            x = (uint16_t)(x >> 1 | x << 15);
            memcpy(dst + 2 * i, &x, 2);
        }
    } else {
        for (size_t i = 0; i < n; i++) {
            dst[2 * i + 1] = plane[i];
            dst[2 * i] = others[i];
        }
    }
}

/* A plane coder: room -> bytes written, 0 if it refuses. */
typedef size_t plane_fn(struct peer *peer, const uint8_t *in, size_t nin, uint8_t *out,
                        size_t room);

/* header: bytes of the coded plane; the other bytes; the coded plane. */
static bool encode_planes(struct peer *peer, plane_fn *code,
                          const struct zipccl_bench_elements *elements, const void *src,
                          uint8_t *dst, size_t capacity, size_t *nbytes)
{
    size_t before = PLANE_HEADER + raw_bytes(elements) - elements->n;
    split(elements, src, peer->plane, dst + PLANE_HEADER);
    size_t coded = code(peer, peer->plane, elements->n, dst + before, capacity - before);
    zipccl_put_u64(dst, coded);
    *nbytes = before + coded;
    return coded > 0;
}

static bool decode_planes(struct peer *peer, plane_fn *decode,
                          const struct zipccl_bench_elements *elements, const uint8_t *wire,
                          size_t nbytes, uint8_t *dst)
{
    size_t before = PLANE_HEADER + raw_bytes(elements) - elements->n;
    if (nbytes < before || zipccl_get_u64(wire) != nbytes - before ||
        decode(peer, wire + before, nbytes - before, peer->plane, elements->n) != elements->n)
        return false;
    join(elements, peer->plane, wire + PLANE_HEADER, dst);
    return true;
}

/* ---- zlib: deflate's Huffman stage alone */

static size_t zlib_capacity(const struct zipccl_bench_elements *elements)
{
    return PLANE_HEADER + raw_bytes(elements) + compressBound(elements->n) + 64;
}

static size_t zlib_code(struct peer *peer, const uint8_t *in, size_t nin, uint8_t *out, size_t room)
{
    z_stream z = {.next_in = (Bytef *)in, .avail_in = (uInt)nin, .next_out = out};
    (void)peer;
    z.avail_out = room > UINT32_MAX ? UINT32_MAX : (uInt)room;
    if (deflateInit2(&z, 1, Z_DEFLATED, -15, 8, Z_HUFFMAN_ONLY) != Z_OK)
        return 0;
    int result = deflate(&z, Z_FINISH);
    size_t used = z.total_out;
    return deflateEnd(&z) == Z_OK && result == Z_STREAM_END ? used : 0;
}

static size_t zlib_decode(struct peer *peer, const uint8_t *in, size_t nin, uint8_t *out,
                          size_t room)
{
    z_stream z = {.next_in = (Bytef *)in, .avail_in = (uInt)nin, .next_out = out};
    (void)peer;
    z.avail_out = (uInt)room;
    if (inflateInit2(&z, -15) != Z_OK)
        return 0;
    int result = inflate(&z, Z_FINISH);
    size_t used = z.total_out;
    return inflateEnd(&z) == Z_OK && result == Z_STREAM_END ? used : 0;
}

static bool zlib_encode(void *state, const struct zipccl_bench_elements *elements, const void *src,
                        void *dst, size_t capacity, size_t *nbytes)
{
    return encode_planes(state, zlib_code, elements, src, dst, capacity, nbytes);
}

static bool zlib_planes_decode(void *state, const struct zipccl_bench_elements *elements,
                               const void *wire, size_t nbytes, void *dst)
{
    return decode_planes(state, zlib_decode, elements, wire, nbytes, dst);
}

#ifdef ZIPCCL_HAVE_ZSTD
/* ---- zstd, as it is and for its Huffman stage alone */

static size_t zstd_capacity(const struct zipccl_bench_elements *elements)
{
    return PLANE_HEADER + raw_bytes(elements) + ZSTD_compressBound(raw_bytes(elements));
}

static bool set(struct peer *peer, ZSTD_cParameter parameter, int value)
{
    return !ZSTD_isError(ZSTD_CCtx_setParameter(peer->encoder, parameter, value));
}

static void *zstd_create(const struct zipccl_bench_codec *codec,
                         const struct zipccl_bench_elements *elements)
{
    struct peer *peer = create(codec, elements);
    if (!peer)
        return NULL;
    peer->encoder = ZSTD_createCCtx();
    peer->decoder = ZSTD_createDCtx();
    if (peer->encoder && peer->decoder && set(peer, ZSTD_c_compressionLevel, 1))
        return peer;
    destroy(peer);
    return NULL;
}

/* The fast strategy at its largest step finds no strings; literals are coded all the same. */
static void *zstd_huffman_create(const struct zipccl_bench_codec *codec,
                                 const struct zipccl_bench_elements *elements)
{
    struct peer *peer = zstd_create(codec, elements);
    if (peer && set(peer, ZSTD_c_strategy, ZSTD_fast) &&
        set(peer, ZSTD_c_targetLength, ZSTD_TARGETLENGTH_MAX) &&
        set(peer, ZSTD_c_minMatch, ZSTD_MINMATCH_MAX) &&
        set(peer, ZSTD_c_literalCompressionMode, ZSTD_ps_enable))
        return peer;
    destroy(peer);
    return NULL;
}

static size_t zstd_code(struct peer *peer, const uint8_t *in, size_t nin, uint8_t *out, size_t room)
{
    size_t used = ZSTD_compress2(peer->encoder, out, room, in, nin);
    return ZSTD_isError(used) ? 0 : used;
}

static size_t zstd_decode(struct peer *peer, const uint8_t *in, size_t nin, uint8_t *out,
                          size_t room)
{
    size_t used = ZSTD_decompressDCtx(peer->decoder, out, room, in, nin);
    return ZSTD_isError(used) ? 0 : used;
}

static bool zstd_plain_encode(void *state, const struct zipccl_bench_elements *elements,
                              const void *src, void *dst, size_t capacity, size_t *nbytes)
{
    *nbytes = zstd_code(state, src, raw_bytes(elements), dst, capacity);
    return *nbytes > 0;
}

static bool zstd_plain_decode(void *state, const struct zipccl_bench_elements *elements,
                              const void *wire, size_t nbytes, void *dst)
{
    return zstd_decode(state, wire, nbytes, dst, raw_bytes(elements)) == raw_bytes(elements);
}

static bool zstd_planes_encode(void *state, const struct zipccl_bench_elements *elements,
                               const void *src, void *dst, size_t capacity, size_t *nbytes)
{
    return encode_planes(state, zstd_code, elements, src, dst, capacity, nbytes);
}

static bool zstd_planes_decode(void *state, const struct zipccl_bench_elements *elements,
                               const void *wire, size_t nbytes, void *dst)
{
    return decode_planes(state, zstd_decode, elements, wire, nbytes, dst);
}
#endif

#ifdef ZIPCCL_HAVE_LZ4
/* ---- lz4 */

static size_t lz4_capacity(const struct zipccl_bench_elements *elements)
{
    return (size_t)LZ4_compressBound((int)raw_bytes(elements));
}

static bool lz4_encode(void *state, const struct zipccl_bench_elements *elements, const void *src,
                       void *dst, size_t capacity, size_t *nbytes)
{
    (void)state;
    int used = LZ4_compress_default(src, dst, (int)raw_bytes(elements), (int)capacity);
    *nbytes = used > 0 ? (size_t)used : 0;
    return used > 0;
}

static bool lz4_decode(void *state, const struct zipccl_bench_elements *elements, const void *wire,
                       size_t nbytes, void *dst)
{
    int raw = (int)raw_bytes(elements);
    (void)state;
    return LZ4_decompress_safe(wire, dst, (int)nbytes, raw) == raw;
}
#endif

static const struct zipccl_bench_codec peers[] = {
#ifdef ZIPCCL_HAVE_ZSTD
    {"zstd-1", "library", "libzstd " ZSTD_VERSION_STRING ", level 1, on the elements as they are",
     zstd_create, destroy, zstd_capacity, zstd_plain_encode, zstd_plain_decode, 0, 1},
#endif
#ifdef ZIPCCL_HAVE_LZ4
    {"lz4", "library", "liblz4 " LZ4_VERSION_STRING ", default level, on the elements as they are",
     create, destroy, lz4_capacity, lz4_encode, lz4_decode, 0, 1},
#endif
#ifdef ZIPCCL_HAVE_ZSTD
    {"huffman-zstd", "library",
     "the byte with the exponent by libzstd's Huffman stage (no strings), other bytes stored",
     zstd_huffman_create, destroy, zstd_capacity, zstd_planes_encode, zstd_planes_decode, 0, 1},
#endif
    {"huffman-zlib", "library",
     "the byte with the exponent by zlib's deflate, Z_HUFFMAN_ONLY, other bytes stored", create,
     destroy, zlib_capacity, zlib_encode, zlib_planes_decode, 0, 1},
};

const struct zipccl_bench_codec *zipccl_bench_peers(size_t *n)
{
    *n = sizeof peers / sizeof peers[0];
    return peers;
}

const char *zipccl_bench_missing(void)
{
#if !defined(ZIPCCL_HAVE_ZSTD) && !defined(ZIPCCL_HAVE_LZ4)
    return "zstd, lz4";
#elif !defined(ZIPCCL_HAVE_ZSTD)
    return "zstd";
#elif !defined(ZIPCCL_HAVE_LZ4)
    return "lz4";
#else
    return "";
#endif
}
