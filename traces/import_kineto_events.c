/*
 * import_kineto_events.c - sorts the events of a profiler file into what counts
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_kineto_read.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Within 2^62 ns, so that sums do not overflow. */
#define MAX_US 4e15

bool kineto_grow(void *array, size_t *room, size_t n, size_t size)
{
    size_t more = *room > 0 ? 2 * *room : 64;
    void *bigger, *old;

    if (n < *room)
        return true;
    memcpy(&old, array, sizeof old);
    if (more > SIZE_MAX / size)
        return false;
    bigger = realloc(old, more * size);
    if (bigger == NULL)
        return false;
    memcpy(array, &bigger, sizeof bigger);
    *room = more;
    return true;
}

static uint64_t hash(const char *text)
{
    uint64_t h = 1469598103934665603u;

    for (; *text != '\0'; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h;
}

static bool rehash(struct kineto_texts *t)
{
    size_t room = t->room > 0 ? 2 * t->room : 256;
    const char **slots = calloc(room, sizeof *slots);

    if (slots == NULL)
        return false;
    for (size_t i = 0; i < t->room; i++) {
        size_t at;

        if (t->slots[i] == NULL)
            continue;
        for (at = hash(t->slots[i]) & (room - 1); slots[at] != NULL;)
            at = (at + 1) & (room - 1);
        slots[at] = t->slots[i];
    }
    free(t->slots);
    t->slots = slots;
    t->room = room;
    return true;
}

const char *kineto_intern(struct kineto_texts *t, const char *text)
{
    size_t at;

    if (text[0] == '\0')
        return "";
    if (2 * t->n >= t->room && !rehash(t))
        return NULL;
    for (at = hash(text) & (t->room - 1); t->slots[at] != NULL; at = (at + 1) & (t->room - 1))
        if (strcmp(t->slots[at], text) == 0)
            return t->slots[at];
    t->slots[at] = zipccl_arena_string(t->arena, text, strlen(text));
    t->n += t->slots[at] != NULL;
    return t->slots[at];
}

void kineto_texts_free(struct kineto_texts *texts)
{
    free(texts->slots);
}

bool kineto_nanoseconds(const char *text, int64_t *out)
{
    const char *p = text + (*text == '-');
    int64_t whole = 0, part = 0;
    int digits = 0, places = 0;

    for (; isdigit((unsigned char)*p) && digits < 16; p++, digits++)
        whole = whole * 10 + (*p - '0');
    if (digits > 0 && *p == '.')
        for (p++; isdigit((unsigned char)*p); p++)
            if (places < 3) {
                part = part * 10 + (*p - '0');
                places++;
            }
    if (digits == 0 || *p != '\0') { /* an exponent, or more digits than a time has */
        char *end;
        double real = strtod(text, &end);

        if (end == text || *end != '\0' || !(fabs(real) < MAX_US))
            return false;
        *out = (int64_t)llround(real * 1000);
        return true;
    }
    if (whole >= (int64_t)MAX_US)
        return false;
    for (; places < 3; places++)
        part *= 10;
    whole = whole * 1000 + part;
    *out = *text == '-' ? -whole : whole;
    return true;
}

static const char *text_of(const struct kineto_event *e, enum kineto_key key)
{
    return e->values[key].given ? e->values[key].text : "";
}

static bool integer_of(const struct kineto_event *e, enum kineto_key key, int64_t *out)
{
    const char *text = text_of(e, key);
    char *end;
    long long n = strtoll(text, &end, 10);

    if (end == text || (*end != '\0' && *end != '.'))
        return false;
    *out = n;
    return true;
}

static zipccl_status nomem(const struct kineto_file *file, struct zipccl_error *error)
{
    struct zipccl_place at = {file->path, 0, error};

    return zipccl_place_nomem(&at);
}

static bool find_stream(struct kineto_file *f, int64_t number, uint16_t *out)
{
    for (size_t i = 0; i < f->nstreams; i++)
        if (f->streams[i].number == number) {
            *out = (uint16_t)i;
            return true;
        }
    if (f->nstreams > UINT16_MAX ||
        !kineto_grow(&f->streams, &f->stream_room, f->nstreams, sizeof *f->streams))
        return false;
    f->streams[f->nstreams] = (struct kineto_stream){.number = number, .trace_stream = KINETO_NONE};
    *out = (uint16_t)f->nstreams++;
    return true;
}

/* Threads are told apart by what the file calls them. */
static bool find_thread(struct kineto_file *f, const char *tid, uint16_t *out)
{
    uint64_t h = hash(tid);

    for (size_t i = f->nthreads; i-- > 0;)
        if (f->threads[i] == h) {
            *out = (uint16_t)i;
            return true;
        }
    if (f->nthreads > UINT16_MAX ||
        !kineto_grow(&f->threads, &f->thread_room, f->nthreads, sizeof *f->threads))
        return false;
    f->threads[f->nthreads] = h;
    *out = (uint16_t)f->nthreads++;
    return true;
}

/* Old profilers counted elements in 32 bits. */
static uint64_t elements(const struct kineto_event *e, enum kineto_key key, bool *wrapped)
{
    int64_t n = 0;

    integer_of(e, key, &n);
    if (n >= 0)
        return (uint64_t)n;
    *wrapped = true;
    return n >= INT32_MIN ? (uint64_t)(n + ((int64_t)1 << 32)) : 0;
}

static bool fill_meta(const struct kineto_event *e, struct kineto_texts *texts,
                      enum kineto_source source, struct kineto_meta *m)
{
    bool annotation = source == KINETO_FROM_ANNOTATION;
    int64_t n;

    m->line = e->line;
    m->source = (uint8_t)source;
    m->name = kineto_intern(texts, source == KINETO_FROM_CPU ? text_of(e, KINETO_KEY_COLL)
                                                             : text_of(e, KINETO_KEY_NAME));
    m->dtype = kineto_intern(texts, annotation ? e->type : text_of(e, KINETO_KEY_DTYPE));
    m->pg_name = kineto_intern(texts, text_of(e, KINETO_KEY_PG_NAME));
    m->pg_desc = kineto_intern(texts, text_of(e, KINETO_KEY_PG_DESC));
    m->pg_ranks = kineto_intern(texts, text_of(e, KINETO_KEY_PG_RANKS));
    m->in_split = kineto_intern(texts, text_of(e, KINETO_KEY_IN_SPLIT));
    if (m->name == NULL || m->dtype == NULL || m->pg_name == NULL || m->pg_desc == NULL ||
        m->pg_ranks == NULL || m->in_split == NULL)
        return false;
    m->coll = (uint8_t)kineto_coll_of(annotation ? m->name : text_of(e, KINETO_KEY_COLL));
    m->sized = annotation ? e->has_dims : e->values[KINETO_KEY_IN].given;
    m->in = annotation ? e->dims : elements(e, KINETO_KEY_IN, &m->wrapped);
    m->out = annotation ? 0 : elements(e, KINETO_KEY_OUT, &m->wrapped);
    m->seq = m->src = m->dst = m->first = m->stride = m->root = -1;
    integer_of(e, KINETO_KEY_SEQ, &m->seq);
    integer_of(e, KINETO_KEY_SRC, &m->src);
    integer_of(e, KINETO_KEY_DST, &m->dst);
    integer_of(e, KINETO_KEY_FIRST, &m->first);
    integer_of(e, KINETO_KEY_STRIDE, &m->stride);
    if (integer_of(e, KINETO_KEY_SIZE, &n) && n > 0 && n <= UINT32_MAX)
        m->size = (uint32_t)n;
    return true;
}

static bool add_meta(struct kineto_file *f, struct kineto_texts *texts,
                     const struct kineto_event *e, enum kineto_source source, int64_t start,
                     int64_t end)
{
    struct kineto_meta m = {.start_ns = start, .end_ns = end};

    if (f->nmetas >= KINETO_NONE || !fill_meta(e, texts, source, &m) ||
        !find_thread(f, text_of(e, KINETO_KEY_TID), &m.thread) ||
        !kineto_grow(&f->metas, &f->meta_room, f->nmetas, sizeof *f->metas))
        return false;
    f->metas[f->nmetas++] = m;
    return true;
}

/* The profiler numbers GPUs as processes; a rank has NCCL kernels on one. */
static void note_gpu(struct kineto_file *f, const struct kineto_event *e, uint8_t kind)
{
    uint64_t pid = hash(text_of(e, KINETO_KEY_PID));

    if (kind != KINETO_NCCL)
        return;
    if (f->nnccl == 0)
        f->nccl_pid = pid;
    if (f->nccl_pid != pid && f->second_gpu == 0)
        f->second_gpu = e->line;
}

static bool add_gpu(struct kineto_file *f, struct kineto_texts *texts, const struct kineto_event *e,
                    bool kernel, int64_t start, int64_t end)
{
    struct kineto_gpu g = {
        .start_ns = start, .end_ns = end, .launch = KINETO_NONE, .meta = KINETO_NONE};
    int64_t number = 0;

    g.kind = (uint8_t)(kernel ? kineto_kernel_kind(text_of(e, KINETO_KEY_NAME)) : KINETO_MEMORY);
    if (!integer_of(e, KINETO_KEY_STREAM, &number))
        integer_of(e, KINETO_KEY_TID, &number);
    if (!find_stream(f, number, &g.stream))
        return false;
    number = 0;
    integer_of(e, KINETO_KEY_CORRELATION, &number);
    g.correlation = (uint32_t)number;
    if (kernel) {
        f->kernel_first_ns =
            f->nkernels == 0 || start < f->kernel_first_ns ? start : f->kernel_first_ns;
        f->kernel_last_ns = f->nkernels == 0 || end > f->kernel_last_ns ? end : f->kernel_last_ns;
        f->nkernels++;
    }
    f->streams[g.stream].nkernels += g.kind == KINETO_COMPUTE;
    if (g.kind == KINETO_NCCL || g.kind == KINETO_FOREIGN) {
        g.meta = (uint32_t)f->nmetas;
        if (!add_meta(f, texts, e, KINETO_FROM_KERNEL, start, end))
            return false;
        note_gpu(f, e, g.kind);
        f->nnccl += g.kind == KINETO_NCCL;
        f->nforeign += g.kind == KINETO_FOREIGN;
        *(g.kind == KINETO_NCCL ? &f->nccl_ns : &f->foreign_ns) += end - start;
        f->streams[g.stream].comm_ns += end - start;
    }
    if (f->ngpu >= KINETO_NONE || !kineto_grow(&f->gpu, &f->gpu_room, f->ngpu, sizeof *f->gpu))
        return false;
    f->gpu[f->ngpu++] = g;
    return true;
}

/* Calls that put something into a stream, by CUDA's and HIP's names. */
static bool launches_something(const char *name)
{
    return strstr(name, "Launch") != NULL || strstr(name, "MemcpyAsync") != NULL ||
           strstr(name, "MemsetAsync") != NULL || strstr(name, "Memcpy") != NULL ||
           strstr(name, "Memset") != NULL;
}

static bool add_block(struct kineto_file *f, int64_t start, int64_t end)
{
    if (!kineto_grow(&f->blocks, &f->block_room, f->nblocks, sizeof *f->blocks))
        return false;
    f->blocks[f->nblocks++] = (struct kineto_block){start, end};
    return true;
}

static bool add_runtime(struct kineto_file *f, const struct kineto_event *e, int64_t start,
                        int64_t end)
{
    const char *name = text_of(e, KINETO_KEY_NAME);
    bool wait = strstr(name, "StreamWaitEvent") != NULL;
    struct kineto_launch l = {.ts_ns = start, .wait = wait};
    int64_t number = 0;

    if (strstr(name, "Synchronize") != NULL)
        return add_block(f, start, end);
    if (!wait && !launches_something(name))
        return true;
    f->has_waits |= wait;
    integer_of(e, KINETO_KEY_CORRELATION, &number);
    l.correlation = (uint32_t)number;
    if (!find_thread(f, text_of(e, KINETO_KEY_TID), &l.thread) || f->nlaunches >= KINETO_NONE ||
        !kineto_grow(&f->launches, &f->launch_room, f->nlaunches, sizeof *f->launches))
        return false;
    f->launches[f->nlaunches++] = l;
    return true;
}

static bool add_sync(struct kineto_file *f, const struct kineto_event *e)
{
    struct kineto_sync s = {.correlation = 0};
    int64_t number = 0;

    if (strstr(text_of(e, KINETO_KEY_NAME), "Wait") == NULL ||
        !integer_of(e, KINETO_KEY_WAIT_ON, &s.wait_on_stream) ||
        !integer_of(e, KINETO_KEY_STREAM, &s.stream) || s.wait_on_stream < 0)
        return true;
    integer_of(e, KINETO_KEY_CORRELATION, &number);
    s.correlation = (uint32_t)number;
    if (!kineto_grow(&f->syncs, &f->sync_room, f->nsyncs, sizeof *f->syncs))
        return false;
    f->syncs[f->nsyncs++] = s;
    return true;
}

static bool is(const char *text, const char *a, const char *b)
{
    return strcmp(text, a) == 0 || strcmp(text, b) == 0;
}

static bool take_annotation(struct kineto_file *f, struct kineto_texts *texts,
                            const struct kineto_event *e, int64_t start, int64_t end)
{
    const char *name = text_of(e, KINETO_KEY_NAME);

    f->nsteps += strncmp(name, "ProfilerStep#", 13) == 0;
    if (strncmp(name, "nccl:", 5) == 0)
        return add_meta(f, texts, e, KINETO_FROM_ANNOTATION, start, end);
    f->nother_backend += strncmp(name, "gloo:", 5) == 0 || strncmp(name, "mpi:", 4) == 0 ||
                         strncmp(name, "ucc:", 4) == 0;
    return true;
}

zipccl_status kineto_take_event(struct kineto_file *f, struct kineto_texts *texts,
                                const struct kineto_event *e, struct zipccl_error *error)
{
    const char *cat = text_of(e, KINETO_KEY_CAT), *name = text_of(e, KINETO_KEY_NAME);
    bool kernel = is(cat, "kernel", "Kernel"), done = true;
    bool memory = is(cat, "gpu_memcpy", "Memcpy") || is(cat, "gpu_memset", "Memset");
    bool runtime = is(cat, "cuda_runtime", "Runtime") || is(cat, "cuda_driver", "hip_runtime");
    bool cpu = is(cat, "cpu_op", "Operator") && strcmp(name, "record_param_comms") == 0;
    bool annotation = is(cat, "user_annotation", "user_annotation"),
         sync = is(cat, "cuda_sync", "cuda_sync");
    int64_t start, length = 0;

    if (!(kernel || memory || runtime || cpu || annotation || sync) ||
        strcmp(text_of(e, KINETO_KEY_PH), "X") != 0)
        return ZIPCCL_OK;
    if (!kineto_nanoseconds(text_of(e, KINETO_KEY_TS), &start) ||
        (e->values[KINETO_KEY_DUR].given &&
         !kineto_nanoseconds(text_of(e, KINETO_KEY_DUR), &length)) ||
        length < 0) {
        if (kernel && kineto_kernel_kind(name) == KINETO_NCCL)
            f->first_dropped = f->ndropped++ == 0 ? e->line : f->first_dropped;
        else
            f->first_untimed = f->nuntimed++ == 0 ? e->line : f->first_untimed;
        return ZIPCCL_OK;
    }
    if (kernel || memory)
        done = add_gpu(f, texts, e, kernel, start, start + length);
    else if (runtime)
        done = add_runtime(f, e, start, start + length);
    else if (cpu)
        done = add_meta(f, texts, e, KINETO_FROM_CPU, start, start + length);
    else if (annotation)
        done = take_annotation(f, texts, e, start, start + length);
    else
        done = add_sync(f, e);
    return done ? ZIPCCL_OK : nomem(f, error);
}
