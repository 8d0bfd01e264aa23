/*
 * interpose_part.c - samples of what is sent, and the file that a rank writes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/capture/interpose.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PATH = 4096 };

static const struct {
    const char *name, *safe; /* of a trace, of a .safetensors file (NULL: not worth a sample) */
    size_t nbytes;
} dtypes[] = {
    [ncclInt8] = {"int8", NULL, 1},
    [ncclUint8] = {"uint8", NULL, 1},
    [ncclInt32] = {"int32", NULL, 4},
    [ncclUint32] = {"uint32", NULL, 4},
    [ncclInt64] = {"int64", NULL, 8},
    [ncclUint64] = {"uint64", NULL, 8},
    [ncclFloat16] = {"fp16", "F16", 2},
    [ncclFloat32] = {"fp32", "F32", 4},
    [ncclFloat64] = {"fp64", "F64", 8},
    [ncclBfloat16] = {"bf16", "BF16", 2},
    [ncclFloat8e4m3] = {"fp8_e4m3", "F8_E4M3", 1},
    [ncclFloat8e5m2] = {"fp8_e5m2", "F8_E5M2", 1},
};

int64_t capture_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool is_known(ncclDataType_t dtype)
{
    return (unsigned)dtype < sizeof dtypes / sizeof dtypes[0] && dtypes[dtype].name != NULL;
}

size_t capture_dtype_size(ncclDataType_t dtype)
{
    return is_known(dtype) ? dtypes[dtype].nbytes : 0;
}

const char *capture_dtype_name(ncclDataType_t dtype)
{
    return is_known(dtype) ? dtypes[dtype].name : NULL;
}

bool capture_wants(const struct capture *c, const struct capture_slot *slot)
{
    uint64_t at = c->by_step ? c->step : slot->seen;

    return !slot->written && at >= c->first && at < c->last;
}

/* The class of a call's tensors, named as in the bundled samples. */
static void name_class(char out[48], const struct capture_call *call)
{
    static const char *const names[][2] = {
        {"all_gather", "allgather.param"}, {"reduce_scatter", "reducescatter.grad"},
        {"all_reduce", "allreduce.grad"},  {"alltoall", "alltoall.dispatch"},
        {"broadcast", "broadcast.param"},  {"send", "p2p.pp.hidden"}};
    bool wide = call->dtype != ncclBfloat16 && call->dtype != ncclFloat16;
    const char *name = "other";

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i][0], call->op) == 0)
            name = names[i][1];
    snprintf(out, 48, "%s%s%s", name, wide ? "_" : "", wide ? dtypes[call->dtype].name : "");
}

static void *sample_room(struct capture *c, size_t nbytes)
{
    void *p = NULL;

    if (c->cuda.whole)
        return c->cuda.host_alloc(&p, nbytes, 0) == cudaSuccess ? p : NULL;
    return NULL;
}

uint32_t capture_sample(struct capture *c, struct capture_slot *slot,
                        const struct capture_call *call, const void *from, uint64_t count)
{
    struct capture_sample *s = &slot->samples[slot->nsamples];
    size_t width = capture_dtype_size(call->dtype);
    uint64_t n = 1, take = count;

    if (from == NULL || count == 0 || !is_known(call->dtype) || dtypes[call->dtype].safe == NULL ||
        call->opaque || call->captured || slot->nsamples == CAPTURE_SAMPLES || !c->cuda.whole)
        return 0;
    name_class(s->class, call);
    for (size_t i = 0; i < slot->ncalls; i++)
        n += slot->calls[i].op == call->op && slot->calls[i].dtype == call->dtype;
    if ((n & (n - 1)) != 0)
        return 0;
    if (take > c->sample_size / width)
        take = c->sample_size / width;
    if (take == 0 || slot->sample_bytes + take * width > c->sample_limit)
        return 0;
    s->bytes = sample_room(c, take * width);
    if (s->bytes == NULL)
        return 0;
    if (c->cuda.memcpy_async(s->bytes, (const char *)from + (count - take) / 2 * width,
                             take * width, cudaMemcpyDeviceToHost, call->stream) != cudaSuccess) {
        c->cuda.free_host(s->bytes);
        return 0;
    }
    s->call = slot->ncalls;
    s->nbytes = take * width;
    s->dtype = call->dtype;
    slot->sample_bytes += s->nbytes;
    return (uint32_t)++slot->nsamples;
}

/* When 'event' came, in nanoseconds after the first call began. */
static bool time_event(const struct capture *c, const struct capture_slot *slot, cudaEvent_t event,
                       int64_t *out)
{
    float ms = 0;

    if (event != slot->base && c->cuda.event_elapsed(&ms, slot->base, event) != cudaSuccess)
        return false;
    *out = (int64_t)(1e6 * (double)ms);
    return true;
}

/* Device times of a call, host times where the rank has none. */
static void time_call(const struct capture *c, const struct capture_slot *slot,
                      const struct capture_call *call, int64_t *begin, int64_t *end)
{
    *begin = call->begin_ns - slot->step_begin_ns;
    *end = call->end_ns - slot->step_begin_ns;
    if (slot->base != NULL &&
        (!time_event(c, slot, call->begin, begin) || !time_event(c, slot, call->end, end)))
        *end = *begin;
}

static void write_call(FILE *f, const struct capture *c, const struct capture_slot *slot, size_t i,
                       int64_t *cursor, uint64_t *nlines)
{
    const struct capture_call *call = &slot->calls[i];
    static const char *const redops[] = {"sum", "prod", "max", "min", "avg"};
    int64_t begin, end;

    time_call(c, slot, call, &begin, &end);
    begin = begin < 0 ? 0 : begin;
    end = end < begin ? begin : end;
    fprintf(f,
            "{\"call\":%zu,\"group\":\"%016" PRIx64
            "\",\"op\":\"%s\",\"dtype\":\"%s\",\"count\":%" PRIu64 ",\"t0\":%" PRId64
            ",\"issue\":%" PRId64 ",\"t1\":%" PRId64 ",\"end\":%" PRId64 ",\"batch\":%" PRIu64,
            i, c->comms[call->comm].id, call->op, capture_dtype_name(call->dtype), call->count,
            begin > *cursor ? begin : *cursor, begin, end > *cursor ? end : *cursor, end,
            call->batch);
    *cursor = end > *cursor ? end : *cursor;
    if (call->reduces)
        fprintf(f, ",\"redop\":\"%s\"", (unsigned)call->redop < 5 ? redops[call->redop] : "sum");
    if (call->has_root)
        fprintf(f, ",\"root\":%d", call->root);
    if (call->has_peer)
        fprintf(f, ",\"peer\":%d", call->peer);
    if (call->label != NULL)
        fprintf(f, ",\"label\":\"%s\"", call->label);
    if (call->opaque)
        fprintf(f, ",\"opaque\":true");
    if (call->sample != 0 && call->sample <= slot->nsamples)
        fprintf(f, ",\"sample\":\"%s.step%" PRIu64 ".call%zu\"",
                slot->samples[call->sample - 1].class, c->by_step ? c->first : 0, i);
    fprintf(f, "}\n");
    ++*nlines;
    /* Which later work needs it is not seen here: all of it. */
    if (i + 1 == slot->ncalls || slot->calls[i + 1].batch != call->batch) {
        fprintf(f, "{\"wait\":[");
        for (size_t k = i;; k--) {
            fprintf(f, "%zu", k);
            if (k == 0 || slot->calls[k - 1].batch != call->batch)
                break;
            fprintf(f, ",");
        }
        fprintf(f, "],\"t0\":%" PRId64 ",\"t1\":%" PRId64 "}\n", *cursor, *cursor);
        ++*nlines;
    }
}

static void write_lines(FILE *f, const struct capture *c, const struct capture_slot *slot)
{
    int64_t cursor = 0, begin, last = slot->step_end_ns - slot->step_begin_ns;
    uint64_t nlines = 2;
    char host[256] = "";
    uint64_t hash = 14695981039346656037u;

    gethostname(host, sizeof host - 1);
    for (const char *p = host; *p != '\0'; p++)
        hash = (hash ^ (unsigned char)*p) * 1099511628211u;
    for (size_t i = 0; i < slot->ncalls; i++) {
        int64_t end;

        time_call(c, slot, &slot->calls[i], &begin, &end);
        last = end > last ? end : last;
    }
    fprintf(f,
            "{\"part\":\"zipccl-capture-part\",\"version\":1,\"rank\":%d,\"world\":%d,\"host\":"
            "\"%012" PRIx64 "\",\"clock\":\"%s\",\"in_graphs\":%" PRIu64
            ",\"generator\":\"libzipccl-capture 1\"}\n",
            slot->rank, slot->nranks, hash >> 16, slot->base != NULL ? "device" : "host",
            slot->ncaptured);
    for (size_t i = 0; i < c->ncomms; i++)
        if (&c->slots[c->comms[i].slot] == slot) {
            fprintf(f, "{\"group\":\"%016" PRIx64 "\",\"name\":\"\",\"member\":%d,\"size\":%d}\n",
                    c->comms[i].id, c->comms[i].rank, c->comms[i].nranks);
            nlines++;
        }
    fprintf(f, "{\"step\":%" PRIu64 ",\"t0\":0,\"t1\":%" PRId64 "}\n", c->by_step ? c->first : 0,
            last);
    for (size_t i = 0; i < slot->ncalls; i++)
        write_call(f, c, slot, i, &cursor, &nlines);
    fprintf(f, "{\"end\":%" PRIu64 "}\n", nlines);
}

static void write_tensors(FILE *f, const struct capture *c, const struct capture_slot *slot)
{
    char *text = NULL;
    size_t nbytes = 0;
    FILE *header = open_memstream(&text, &nbytes);
    uint64_t at = 0, size;
    unsigned char raw[8];

    if (header == NULL)
        return;
    fprintf(header, "{\"__metadata__\":{\"generator\":\"libzipccl-capture 1\"}");
    for (size_t i = 0; i < slot->nsamples; i++) {
        const struct capture_sample *s = &slot->samples[i];

        fprintf(header,
                ",\"%s.step%" PRIu64 ".call%" PRIu64 "\":{\"dtype\":\"%s\",\"shape\":[%" PRIu64
                "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
                s->class, c->by_step ? c->first : 0, s->call, dtypes[s->dtype].safe,
                s->nbytes / dtypes[s->dtype].nbytes, at, at + s->nbytes);
        at += s->nbytes;
    }
    fprintf(header, "}");
    while (fflush(header) == 0 && nbytes % 8 != 0)
        fputc(' ', header);
    fclose(header);
    size = nbytes;
    for (int i = 0; i < 8; i++)
        raw[i] = (unsigned char)(size >> (8 * i));
    fwrite(raw, 1, 8, f);
    fwrite(text, 1, nbytes, f);
    for (size_t i = 0; i < slot->nsamples; i++)
        fwrite(slot->samples[i].bytes, 1, slot->samples[i].nbytes, f);
    free(text);
}

/* Write one file with 'write' under a temporary name, then rename it. */
static bool write_file(const struct capture *c, const struct capture_slot *slot, const char *ending,
                       void (*write)(FILE *, const struct capture *, const struct capture_slot *))
{
    char path[MAX_PATH], temporary[MAX_PATH + 16];
    bool good;
    FILE *f;

    snprintf(path, sizeof path, "%s/parts/rank%d.%s", c->folder, slot->rank, ending);
    snprintf(temporary, sizeof temporary, "%s.tmp%ld", path, (long)getpid());
    f = fopen(temporary, "wb");
    if (f == NULL) {
        fprintf(stderr, "libzipccl-capture: %s: %s; nothing is captured\n", temporary,
                strerror(errno));
        return false;
    }
    write(f, c, slot);
    good = ferror(f) == 0;
    good &= fclose(f) == 0;
    good = good && rename(temporary, path) == 0;
    if (!good) {
        fprintf(stderr, "libzipccl-capture: %s: %s; nothing is captured\n", path, strerror(errno));
        unlink(temporary);
    }
    return good;
}

/* True if the device has told the times of all calls. */
static bool has_times(const struct capture *c, const struct capture_slot *slot)
{
    if (slot->base == NULL)
        return false;
    for (size_t i = 0; i < slot->ncalls; i++)
        if (slot->calls[i].end == NULL || c->cuda.event_query(slot->calls[i].end) != cudaSuccess)
            return false;
    return true;
}

void capture_write(struct capture *c, struct capture_slot *slot)
{
    char parts[MAX_PATH];

    if (slot->written || slot->ncalls == 0)
        return;
    slot->written = true;
    if (slot->step_end_ns == 0)
        slot->step_end_ns = capture_now();
    if (!has_times(c, slot)) {
        slot->base = NULL;
        slot->nsamples = 0; /* they may not have been copied yet */
    }
    mkdir(c->folder, 0777);
    snprintf(parts, sizeof parts, "%s/parts", c->folder);
    mkdir(parts, 0777);
    if (slot->nsamples == 0 || write_file(c, slot, "safetensors", write_tensors))
        write_file(c, slot, "jsonl", write_lines);
}
