/*
 * codec_file_print.c - what came of a file: a line for people, JSON for programs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/codec/codec_file_print.h"

#include "experiments/program/json_put.h"

#include <inttypes.h>

static double ratio(uint64_t raw, uint64_t wire)
{
    return wire > 0 ? (double)raw / (double)wire : 0;
}

static double rate(const struct zipccl_file_result *result)
{
    return result->seconds > 0 ? (double)result->stats.raw_bytes / result->seconds / 1e9 : 0;
}

/* Write bytes in the unit that leaves three digits or more. */
static const char *amount(char text[32], uint64_t nbytes)
{
    if (nbytes < 10000)
        snprintf(text, 32, "%" PRIu64 " B", nbytes);
    else if (nbytes < 10000000)
        snprintf(text, 32, "%.1f kB", (double)nbytes / 1e3);
    else
        snprintf(text, 32, "%.1f MB", (double)nbytes / 1e6);
    return text;
}

void zipccl_file_print(const struct zipccl_file_result *result, FILE *out)
{
    const struct zipccl_file_stats *s = &result->stats;
    uint64_t from = result->encode ? s->raw_bytes : s->file_bytes;
    uint64_t to = result->encode ? s->file_bytes : s->raw_bytes;
    char a[32], b[32];
    int ntypes = 0;

    fprintf(out, "%s -> %s: %s -> %s, ratio %.4f, %.2f GB/s\n", result->in_name, result->out_name,
            amount(a, from), amount(b, to), ratio(s->raw_bytes, s->file_bytes), rate(result));
    for (int t = 0; t < ZIPCCL_NUM_DTYPES; t++)
        ntypes += s->types[t].raw_bytes > 0;
    for (int t = 0; t < ZIPCCL_NUM_DTYPES && ntypes > 1; t++)
        if (s->types[t].raw_bytes > 0)
            fprintf(out, "  %-11s %10s -> %10s, ratio %.4f\n",
                    t == ZIPCCL_UINT8 ? "other bytes" : zipccl_dtype_name((enum zipccl_dtype)t),
                    amount(a, s->types[t].raw_bytes), amount(b, s->types[t].wire_bytes),
                    ratio(s->types[t].raw_bytes, s->types[t].wire_bytes));
}

static void put_types(yajl_gen gen, const struct zipccl_file_stats *s)
{
    zipccl_put_key(gen, "types");
    yajl_gen_array_open(gen);
    for (int t = 0; t < ZIPCCL_NUM_DTYPES; t++) {
        if (s->types[t].raw_bytes == 0)
            continue;
        yajl_gen_map_open(gen);
        zipccl_put_string(gen, "dtype", zipccl_dtype_name((enum zipccl_dtype)t));
        zipccl_put_integer(gen, "raw_bytes", s->types[t].raw_bytes);
        zipccl_put_integer(gen, "wire_bytes", s->types[t].wire_bytes);
        zipccl_put_number(gen, "ratio", ratio(s->types[t].raw_bytes, s->types[t].wire_bytes), true);
        yajl_gen_map_close(gen);
    }
    yajl_gen_array_close(gen);
}

zipccl_status zipccl_file_json(const struct zipccl_file_result *result, FILE *out,
                               struct zipccl_error *error)
{
    const struct zipccl_file_stats *s = &result->stats;
    const unsigned char *text;
    char sum[20];
    size_t n;
    yajl_gen gen = yajl_gen_alloc(NULL);

    if (gen == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    yajl_gen_config(gen, yajl_gen_beautify, 1);
    yajl_gen_map_open(gen);
    zipccl_put_string(gen, "schema", "zipccl.codec-file");
    zipccl_put_integer(gen, "version", 1);
    zipccl_put_string(gen, "action", result->encode ? "encode" : "decode");
    zipccl_put_string(gen, "input", result->in_name);
    zipccl_put_string(gen, "output", result->out_name);
    zipccl_put_integer(gen, "raw_bytes", s->raw_bytes);
    zipccl_put_integer(gen, "file_bytes", s->file_bytes);
    zipccl_put_number(gen, "ratio", ratio(s->raw_bytes, s->file_bytes), s->file_bytes > 0);
    zipccl_put_number(gen, "seconds", result->seconds, true);
    zipccl_put_number(gen, "GBps", rate(result), result->seconds > 0);
    zipccl_put_integer(gen, "segments", s->nsegments);
    snprintf(sum, sizeof sum, "%016" PRIx64, s->sum);
    zipccl_put_string(gen, "raw_xxh3", sum);
    put_types(gen, s);
    yajl_gen_map_close(gen);
    zipccl_status status = ZIPCCL_OK;
    if (yajl_gen_get_buf(gen, &text, &n) != yajl_gen_status_ok)
        status = zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    else if (fwrite(text, 1, n, out) != n)
        status = zipccl_fail(error, ZIPCCL_ERR_IO, "cannot write the JSON");
    yajl_gen_free(gen);
    return status;
}
