/*
 * codec_bench.c - measures codecs beside memcpy in one run
 *
 * Times are of the thread's own processor clock: on a shared machine other work costs caches and
 * memory bandwidth, but not time slices.  Several threads need the wall clock.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/bench/codec_bench.h"

#include "experiments/bench/plain_copy.h"
#include "models/exponent_code.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_CODECS = 16 };

/* Timed calls of a hot repeat take about so long together, so that the clock does not matter. */
#define BATCH_S    400e-6
#define MOST_CALLS 1000
/* A call before the timed ones brings its buffers back to the caches, unless it is as long. */
#define LONG_CALL_S 5e-3

/* Times of one codec [repeats]. */
struct times {
    double *encode_s, *decode_s, *memcpy_s;
};

/* One codec with what it needs. */
struct entrant {
    struct zipccl_bench_codec codec;
    void *state;
    size_t nwire;
    unsigned encode_calls, decode_calls;
    double encode_once_s, decode_once_s;
    struct times times;
    uint64_t wrong;
};

struct bench {
    const struct zipccl_bench_options *options;
    struct zipccl_bench_elements elements;
    size_t nbytes, capacity;
    bool cold;
    const uint8_t *src;
    uint8_t *wire, *back, *copy;
    struct entrant entrants[MAX_CODECS];
    size_t nentrants;
    unsigned memcpy_calls;
    clockid_t clock;
    struct zipccl_plain_copy copies[ZIPCCL_MAX_COPIES];
    double *copies_s[ZIPCCL_MAX_COPIES]; /* [repeats]; NULL if not measured */
    double *all_times;                   /* what the above point into */
};

static double now_s(const struct bench *b)
{
    struct timespec t;
    clock_gettime(b->clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double at_share(const double *x, size_t n, double share)
{
    double place = share * (double)(n - 1);
    size_t i = (size_t)place;
    return i + 1 < n ? x[i] + (place - (double)i) * (x[i + 1] - x[i]) : x[i];
}

struct zipccl_spread zipccl_spread_of(double *x, size_t n)
{
    qsort(x, n, sizeof *x, by_size);
    return (struct zipccl_spread){at_share(x, n, 0.5), at_share(x, n, 0.25), at_share(x, n, 0.75)};
}

/* One piece of work: a copy if 'copy', else one way of a codec. */
struct work {
    void (*copy)(void *dst, const void *src, size_t nbytes);
    struct entrant *entrant;
    bool decode;
};

static bool do_once(struct bench *b, const struct work *work)
{
    struct entrant *e = work->entrant;
    if (work->copy) {
        work->copy(b->copy, b->src, b->nbytes);
        return true;
    }
    return work->decode
               ? e->codec.decode(e->state, &b->elements, b->wire, e->nwire, b->back)
               : e->codec.encode(e->state, &b->elements, b->src, b->wire, b->capacity, &e->nwire);
}

static void evict(const struct bench *b, const struct work *work)
{
    zipccl_evict(work->decode ? b->wire : b->src, work->decode ? work->entrant->nwire : b->nbytes);
    if (work->copy)
        zipccl_evict(b->copy, b->nbytes);
    else
        zipccl_evict(work->decode ? b->back : b->wire, work->decode ? b->nbytes : b->capacity);
}

/* Seconds of one call, over 'calls' of them; negative if the codec refuses. */
static double time_of(struct bench *b, const struct work *work, unsigned calls, double once_s)
{
    double sum = 0;
    bool fine = b->cold || once_s > LONG_CALL_S || do_once(b, work);
    double start = now_s(b);
    for (unsigned i = 0; i < calls && fine; i++) {
        if (b->cold) {
            evict(b, work);
            start = now_s(b);
        }
        fine = do_once(b, work);
        if (b->cold)
            sum += now_s(b) - start;
    }
    if (!b->cold)
        sum = now_s(b) - start;
    return fine ? sum / calls : -1;
}

static unsigned calls_for(double once_s)
{
    double calls = once_s > 0 ? BATCH_S / once_s : MOST_CALLS;
    return calls < 1 ? 1 : calls > MOST_CALLS ? MOST_CALLS : (unsigned)calls;
}

static void copy_by_memcpy(void *dst, const void *src, size_t nbytes)
{
    memcpy(dst, src, nbytes);
}

static zipccl_status refused(const struct entrant *e, struct zipccl_error *error)
{
    return zipccl_fail(error, ZIPCCL_ERR_INTERNAL, "%s %s: cannot code these elements",
                       e->codec.name, e->codec.isa);
}

/* Encode, decode over the inverse of every bit, and count what is not as it was. */
static zipccl_status verify(struct bench *b, struct entrant *e, struct zipccl_error *error)
{
    size_t size = b->elements.size;
    double start = now_s(b);
    if (!do_once(b, &(struct work){.entrant = e}))
        return refused(e, error);
    e->encode_once_s = now_s(b) - start;
    for (size_t i = 0; i < b->nbytes; i++)
        b->back[i] = (uint8_t)~b->src[i];
    start = now_s(b);
    bool decoded = do_once(b, &(struct work){.entrant = e, .decode = true});
    e->decode_once_s = now_s(b) - start;
    if (!decoded || memcmp(b->back, b->src, b->nbytes) != 0)
        for (size_t i = 0; i < b->nbytes; i += size)
            e->wrong += !decoded || memcmp(b->back + i, b->src + i, size) != 0;
    return ZIPCCL_OK;
}

static zipccl_status warm_up(struct bench *b, struct zipccl_error *error)
{
    struct work copy = {.copy = copy_by_memcpy};
    for (unsigned r = 0; r < b->options->warmup; r++)
        for (size_t i = 0; i < b->nentrants; i++)
            if (!do_once(b, &(struct work){.entrant = &b->entrants[i]}) ||
                !do_once(b, &(struct work){.entrant = &b->entrants[i], .decode = true}))
                return refused(&b->entrants[i], error);
    for (size_t i = 0; i < b->nentrants; i++) {
        struct entrant *e = &b->entrants[i];
        ZIPCCL_TRY(verify(b, e, error));
        e->encode_calls = calls_for(e->encode_once_s);
        e->decode_calls = calls_for(e->decode_once_s);
    }
    b->memcpy_calls = calls_for(time_of(b, &copy, 1, 0));
    return ZIPCCL_OK;
}

/* One repeat of everything. */
static zipccl_status repeat(struct bench *b, unsigned r, struct zipccl_error *error)
{
    struct work copy = {.copy = copy_by_memcpy};
    for (size_t i = 0; i < b->nentrants; i++) {
        struct entrant *e = &b->entrants[i];
        struct work encode = {.entrant = e}, decode = {.entrant = e, .decode = true};
        e->times.encode_s[r] = time_of(b, &encode, e->encode_calls, e->encode_once_s);
        e->times.memcpy_s[r] = time_of(b, &copy, b->memcpy_calls, 0);
        /* The wire is this codec's: encode has just written it. */
        e->times.decode_s[r] = time_of(b, &decode, e->decode_calls, e->decode_once_s);
        if (e->times.encode_s[r] < 0 || e->times.decode_s[r] < 0)
            return refused(e, error);
    }
    for (size_t i = 0; i < ZIPCCL_MAX_COPIES; i++)
        if (b->copies_s[i]) {
            copy.copy = b->copies[i].copy;
            b->copies_s[i][r] = time_of(b, &copy, b->memcpy_calls, 0);
        }
    return ZIPCCL_OK;
}

/* over[i] / x[i], then their spread; x [n] is overwritten. */
static struct zipccl_spread spread_over(const double *over, double one, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (over ? over[i] : one) / x[i];
    return zipccl_spread_of(x, n);
}

static void report_row(struct bench *b, struct entrant *e, double bound_bytes,
                       zipccl_bench_report_fn *report, void *context, double *work)
{
    size_t repeats = b->options->repeats, bytes = repeats * sizeof *work;
    double raw_GB = 1e-9 * (double)b->nbytes;
    struct zipccl_bench_row row = {
        .codec = e->codec,
        .dtype = b->elements.dtype,
        .cold = b->cold,
        .n = b->elements.n,
        .raw_bytes = b->nbytes,
        .wire_bytes = e->nwire,
        .bound_ratio = (double)b->nbytes / bound_bytes,
        .wrong = e->wrong,
    };
    memcpy(work, e->times.encode_s, bytes);
    row.encode_x = spread_over(e->times.memcpy_s, 0, work, repeats);
    memcpy(work, e->times.decode_s, bytes);
    row.decode_x = spread_over(e->times.memcpy_s, 0, work, repeats);
    row.encode_GBps = spread_over(NULL, raw_GB, e->times.encode_s, repeats);
    row.decode_GBps = spread_over(NULL, raw_GB, e->times.decode_s, repeats);
    row.memcpy_GBps = spread_over(NULL, raw_GB, e->times.memcpy_s, repeats);
    for (size_t i = 0; i < ZIPCCL_MAX_COPIES; i++)
        if (b->copies_s[i]) {
            memcpy(work, b->copies_s[i], bytes);
            double rate = spread_over(NULL, raw_GB, work, repeats).median;
            if (rate > row.best_copy_GBps) {
                row.best_copy_GBps = rate;
                row.best_copy = b->copies[i].name;
            }
        }
    if (b->copies_s[0] && row.memcpy_GBps.median > row.best_copy_GBps) {
        row.best_copy_GBps = row.memcpy_GBps.median;
        row.best_copy = "memcpy";
    }
    report(context, &row);
}

/* Buffers, all of them written to once. */
static void *room(size_t nbytes)
{
    void *p = aligned_alloc(64, (nbytes + 127) & ~(size_t)63);
    if (p)
        memset(p, 0xa5, nbytes);
    return p;
}

static void close_bench(struct bench *b)
{
    for (size_t i = 0; i < b->nentrants; i++)
        b->entrants[i].codec.destroy(b->entrants[i].state);
    free(b->wire);
    free(b->back);
    free(b->copy);
    free(b->all_times);
}

static bool enter(struct bench *b, const struct zipccl_bench_codec *codec)
{
    struct entrant *e = &b->entrants[b->nentrants];
    size_t capacity = codec->capacity(&b->elements);
    *e = (struct entrant){.codec = *codec};
    e->state = codec->create(codec, &b->elements);
    if (!e->state)
        return false;
    b->nentrants++;
    b->capacity = capacity > b->capacity ? capacity : b->capacity;
    return true;
}

/* Buffers and codecs for 'n' elements; close_bench() also after an error. */
static zipccl_status open_bench(struct bench *b, struct zipccl_error *error)
{
    const struct zipccl_bench_options *options = b->options;
    size_t npeers, repeats = options->repeats;
    const struct zipccl_bench_codec *peers = zipccl_bench_peers(&npeers);
    bool fine = true;
    for (int isa = ZIPCCL_NUM_ISAS - 1; isa >= 0; isa--)
        if (options->isa[isa]) {
            struct zipccl_bench_codec ours =
                zipccl_bench_ours((enum zipccl_isa)isa, options->threads);
            fine = fine && enter(b, &ours);
        }
    for (size_t i = 0; i < npeers && options->peers; i++)
        fine = fine && enter(b, &peers[i]);
    b->wire = room(b->capacity);
    b->back = room(b->nbytes);
    b->copy = room(b->nbytes);
    b->all_times = calloc((3 * b->nentrants + ZIPCCL_MAX_COPIES + 1) * repeats, sizeof(double));
    if (!fine || !b->wire || !b->back || !b->copy || !b->all_times)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory for %zu bytes", b->nbytes);
    double *times = b->all_times + repeats;
    for (size_t i = 0; i < b->nentrants; i++, times += 3 * repeats)
        b->entrants[i].times = (struct times){times, times + repeats, times + 2 * repeats};
    if (b->nbytes < ZIPCCL_BENCH_COLD_BYTES)
        return ZIPCCL_OK;
    size_t ncopies = zipccl_plain_copies(b->copies);
    for (size_t i = 0; i < ncopies; i++)
        b->copies_s[i] = times + i * repeats;
    return ZIPCCL_OK;
}

/* What is left to do, for the bar: bytes that are still to be measured. */
struct meter {
    zipccl_bench_progress_fn *progress;
    void *context;
    uint64_t done, total;
};

static void advance(struct meter *meter, uint64_t nbytes, const char *what)
{
    meter->done += nbytes;
    if (meter->progress)
        meter->progress(meter->context, meter->done, meter->total, what);
}

static bool is_cold(const struct zipccl_bench_options *options, size_t nbytes)
{
    if (options->cache != ZIPCCL_BENCH_BY_SIZE)
        return options->cache == ZIPCCL_BENCH_COLD;
    return nbytes >= ZIPCCL_BENCH_COLD_BYTES && zipccl_can_evict();
}

/* All codecs on the first 'n' elements of 'src'. */
static zipccl_status bench_size(const struct zipccl_bench_options *options, enum zipccl_dtype dtype,
                                const void *src, size_t n, zipccl_bench_report_fn *report,
                                void *context, struct meter *meter, struct zipccl_error *error)
{
    struct zipccl_exponent_histogram histogram;
    struct bench b = {.options = options,
                      .elements = {dtype, n, zipccl_dtype_size(dtype)},
                      .nbytes = n * zipccl_dtype_size(dtype),
                      .src = src};
    b.cold = is_cold(options, b.nbytes);
    b.clock = options->threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
    if (!zipccl_exponent_histogram_of(dtype, src, n, &histogram))
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "%s: no type of the codec",
                           zipccl_dtype_name(dtype));
    zipccl_status status = open_bench(&b, error);
    if (status == ZIPCCL_OK)
        status = warm_up(&b, error);
    for (unsigned r = 0; r < options->repeats && status == ZIPCCL_OK; r++) {
        status = repeat(&b, r, error);
        advance(meter, b.nbytes, zipccl_dtype_name(dtype));
    }
    for (size_t i = 0; i < b.nentrants && status == ZIPCCL_OK; i++)
        status = verify(&b, &b.entrants[i], error);
    for (size_t i = 0; i < b.nentrants && status == ZIPCCL_OK; i++)
        report_row(&b, &b.entrants[i], zipccl_histogram_bound_bytes(&histogram), report, context,
                   b.all_times);
    close_bench(&b);
    return status;
}

static uint64_t next_size(const struct zipccl_bench_options *options, uint64_t nbytes)
{
    return options->step_bytes ? nbytes + options->step_bytes : nbytes * options->factor;
}

/* Sizes of one type; without any, all of the elements. */
static zipccl_status bench_type(const struct zipccl_bench_options *options, enum zipccl_dtype dtype,
                                const void *src, uint64_t n, zipccl_bench_report_fn *report,
                                void *context, struct meter *meter, struct zipccl_error *error)
{
    size_t size = zipccl_dtype_size(dtype);
    uint64_t first = options->max_bytes ? options->min_bytes : n * size;
    uint64_t last = options->max_bytes ? options->max_bytes : n * size;
    meter->total = meter->done;
    for (uint64_t s = first; s <= last; s = next_size(options, s))
        meter->total += s / size * size * options->repeats;
    for (uint64_t s = first; s <= last; s = next_size(options, s))
        ZIPCCL_TRY(
            bench_size(options, dtype, src, (size_t)(s / size), report, context, meter, error));
    return ZIPCCL_OK;
}

/* The elements of a file; too few, too many or none are refused, but for none of several types. */
static zipccl_status read_elements(const struct zipccl_bench_options *options,
                                   enum zipccl_dtype dtype, void **src, uint64_t *n,
                                   struct zipccl_error *error)
{
    const char *type = zipccl_dtype_name(dtype);
    ZIPCCL_TRY(zipccl_bench_load(options->path, dtype, src, n, error));
    unsigned long long found = *n * zipccl_dtype_size(dtype), asked = options->max_bytes;
    if (found == 0 && options->ndtypes > 1)
        return ZIPCCL_OK;
    if (found > 0 && found >= asked && (asked > 0 || found <= ZIPCCL_BENCH_MAX_BYTES))
        return ZIPCCL_OK;
    free(*src);
    if (found == 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: expected elements of type %s, found none",
                           options->path, type);
    if (found < asked)
        return zipccl_fail(
            error, ZIPCCL_ERR_INPUT,
            "%s: found %llu bytes of %s, expected %llu for the largest size; -e sets it",
            options->path, found, type, asked);
    return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                       "%s: found %llu bytes of %s, expected at most %llu: give -b and -e",
                       options->path, found, type, (unsigned long long)ZIPCCL_BENCH_MAX_BYTES);
}

/* The elements of one type, generated or read. */
static zipccl_status get_elements(const struct zipccl_bench_options *options,
                                  enum zipccl_dtype dtype, void **src, uint64_t *n,
                                  struct zipccl_error *error)
{
    size_t size = zipccl_dtype_size(dtype);
    if (options->input == ZIPCCL_BENCH_FILE)
        return read_elements(options, dtype, src, n, error);
    *n = options->max_bytes / size;
    *src = aligned_alloc(64, (size_t)(options->max_bytes + 127) & ~(size_t)63);
    if (!*src)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory for %llu bytes",
                           (unsigned long long)options->max_bytes);
    zipccl_bench_fill(options->input, dtype, *src, *n);
    return ZIPCCL_OK;
}

zipccl_status zipccl_codec_bench(const struct zipccl_bench_options *options,
                                 zipccl_bench_report_fn *report, void *report_context,
                                 zipccl_bench_progress_fn *progress, void *progress_context,
                                 struct zipccl_error *error)
{
    struct meter meter = {progress, progress_context, 0, 0};
    size_t measured = 0;
    for (size_t t = 0; t < options->ndtypes; t++) {
        void *src;
        uint64_t n;
        ZIPCCL_TRY(get_elements(options, options->dtypes[t], &src, &n, error));
        if (n == 0)
            continue;
        zipccl_status status =
            bench_type(options, options->dtypes[t], src, n, report, report_context, &meter, error);
        free(src);
        ZIPCCL_TRY(status);
        measured++;
    }
    if (measured == 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%s: expected bf16, fp16, fp32 or fp8 elements, found none",
                           options->path);
    return ZIPCCL_OK;
}
