/*
 * perf_measure.c - times and checks one call in all modes, and makes its rows
 *
 * The modes take turns, in another order in each iteration, so that what else the machine does, and
 * what the mode before left in the caches, falls on all of them alike, and iterations can be compared
 * in pairs.  A barrier comes before each timed iteration.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/perf/perf_rank.h"

#include "experiments/perf/perf_check.h"
#include "experiments/perf/perf_report.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What a rank tells the others of its calls in one mode. */
struct told {
    double raw_bytes, wire_bytes, coded_raw, coded_wire, encode_s, decode_s, wrong;
};

/* One mode of a call, out of place or in place. */
struct lane {
    enum zipccl_perf_mode mode;
    double *times; /* [iters] this rank's */
    struct told told;
};

/* A call, out of place or in place, in the modes that serve it. */
struct trial {
    struct perf_rank *rank;
    const struct zipccl_perf_call *call;
    bool in_place;
    uint32_t nlanes, iters;
    struct lane lanes[ZIPCCL_NUM_PERF_MODES];
};

static zipccl_status barrier(struct perf_rank *rank, unsigned char *all)
{
    unsigned char one = 1;
    zipccl_status status = zipccl_world_gather(rank->whole, &one, 1, all);

    return status == ZIPCCL_OK ? status : perf_fail_world(rank, status, "a barrier failed");
}

/* Reductions in place eat what they were given. */
static bool eats_input(const struct trial *t)
{
    return t->in_place && zipccl_is_reduction(t->call->op);
}

/* Processor time of this process, shared by its ranks. */
static double processor_s(const struct perf_job *job)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return ((double)now.tv_sec + 1e-9 * (double)now.tv_nsec) / job->world->nlocal;
}

static zipccl_status run_iteration(struct trial *t, struct lane *lane, double *time)
{
    const struct zipccl_perf_options *o = t->rank->job->options;
    double start = o->cputime ? processor_s(t->rank->job) : zipccl_now_s();

    for (uint32_t k = 0; k < o->agg_iters; k++)
        ZIPCCL_TRY(perf_rank_call(t->rank, t->call, lane->mode, t->in_place));
    ZIPCCL_TRY(perf_rank_wait(t->rank));
    *time = ((o->cputime ? processor_s(t->rank->job) : zipccl_now_s()) - start) / o->agg_iters;
    return ZIPCCL_OK;
}

/* Where its pinned strategy does not serve a call a communicator takes another one: not asked for. */
static bool is_as_pinned(const struct trial *t, enum zipccl_perf_mode mode)
{
    const struct zipccl_strategy *pinned = perf_pinned(t->rank->job->options, mode);
    const struct zipccl_plan *plan = zipccl_comm_last_plan(t->rank->comms[mode]);

    return pinned == NULL || plan == NULL || t->call->count == 0 ||
           strncmp(plan->strategy, pinned->name, strlen(pinned->name)) == 0;
}

/* The first call in each mode tells whether something serves it. */
static zipccl_status find_lanes(struct trial *t)
{
    struct perf_rank *rank = t->rank;

    t->nlanes = 0;
    for (int m = 0; m < ZIPCCL_NUM_PERF_MODES; m++) {
        enum zipccl_perf_mode mode = (enum zipccl_perf_mode)m;
        zipccl_status status;

        if (rank->comms[m] == NULL ||
            (mode == ZIPCCL_PERF_NATIVE && !perf_rank_has_native(rank, t->call)))
            continue;
        status = perf_rank_call(rank, t->call, mode, t->in_place);
        if (status == ZIPCCL_OK && is_as_pinned(t, mode))
            t->lanes[t->nlanes++].mode = mode;
        else if (status != ZIPCCL_OK && status != ZIPCCL_ERR_UNSUPPORTED)
            return status;
    }
    return ZIPCCL_OK;
}

/* Calls before the timed ones: an adaptive communicator finds out in the first four what pays. */
static uint32_t warmup_of(const struct trial *t, enum zipccl_perf_mode mode)
{
    const struct zipccl_perf_options *o = t->rank->job->options;
    bool opens = mode == ZIPCCL_PERF_ADAPTIVE && !o->state.freeze;

    return opens && o->warmup < ZIPCCL_TRIAL_OPENING_CALLS ? ZIPCCL_TRIAL_OPENING_CALLS : o->warmup;
}

static zipccl_status warm_up(struct trial *t)
{
    bool more = true;

    /* A first call has been. */
    for (uint32_t i = 1; more; i++) {
        more = false;
        for (uint32_t k = 0; k < t->nlanes; k++) {
            if (i >= warmup_of(t, t->lanes[k].mode))
                continue;
            more = true;
            ZIPCCL_TRY(perf_rank_call(t->rank, t->call, t->lanes[k].mode, t->in_place));
        }
    }
    return ZIPCCL_OK;
}

/* Add what a communicator and the codec's clock count from here on, or have counted until now. */
static zipccl_status count(struct trial *t, struct lane *lane, double sign)
{
    const struct zipccl_world_device *device = t->rank->device;
    struct zipccl_comm_stats stats;

    if (device != NULL)
        ZIPCCL_TRY(device->codec(t->rank->exec, &t->rank->timed));
    zipccl_comm_get_stats(t->rank->comms[lane->mode], &stats);
    lane->told.raw_bytes += sign * (double)stats.raw_bytes;
    lane->told.wire_bytes += sign * (double)stats.wire_bytes;
    lane->told.coded_raw += sign * t->rank->timed.coded_raw;
    lane->told.coded_wire += sign * t->rank->timed.coded_wire;
    lane->told.encode_s += sign * t->rank->timed.encode_s;
    lane->told.decode_s += sign * t->rank->timed.decode_s;
    return ZIPCCL_OK;
}

/* An order of the lanes for iteration 'i', the same on all ranks: Fisher and Yates' shuffle. */
static void shuffle(const struct trial *t, uint32_t i, uint32_t order[ZIPCCL_NUM_PERF_MODES])
{
    uint64_t x = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);

    for (uint32_t k = 0; k < t->nlanes; k++) {
        x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        uint32_t other = (uint32_t)((x >> 33) % (k + 1));

        order[k] = order[other];
        order[other] = k;
    }
}

static zipccl_status time_lanes(struct trial *t, unsigned char *all)
{
    struct perf_rank *rank = t->rank;
    uint32_t order[ZIPCCL_NUM_PERF_MODES] = {0};

    for (uint32_t i = 0; i < t->iters; i++) {
        shuffle(t, i, order);
        for (uint32_t k = 0; k < t->nlanes; k++) {
            struct lane *lane = &t->lanes[order[k]];

            if (eats_input(t))
                ZIPCCL_TRY(perf_rank_fill(rank, t->call, t->in_place, 0, false));
            ZIPCCL_TRY(barrier(rank, all));
            ZIPCCL_TRY(count(t, lane, -1));
            ZIPCCL_TRY(run_iteration(t, lane, &lane->times[i]));
            ZIPCCL_TRY(count(t, lane, 1));
        }
    }
    return ZIPCCL_OK;
}

/* What the ranks sent in call number 'salt'. */
struct sent {
    const struct zipccl_perf_pool *pool;
    uint32_t salt;
};

static void copy_sent(const void *context, uint32_t rank, size_t first, size_t n, void *out)
{
    const struct sent *sent = context;

    zipccl_perf_pool_copy(sent->pool, rank, sent->salt, first, n, out);
}

static zipccl_status check_one(struct trial *t, struct lane *lane, uint32_t salt)
{
    struct perf_rank *rank = t->rank;
    struct perf_job *job = rank->job;
    struct sent sent = {&job->pools[t->call->dtype], salt};
    struct zipccl_perf_check check = {.call = t->call,
                                      .sent = copy_sent,
                                      .context = &sent,
                                      .topology = rank->transport->topology,
                                      .rank = rank->transport->rank,
                                      .rank_order = job->world->kind == ZIPCCL_WORLD_THREADS};
    const void *result;
    uint64_t wrong = 0;
    zipccl_status status;

    ZIPCCL_TRY(perf_rank_fill(rank, t->call, t->in_place, salt, true));
    ZIPCCL_TRY(perf_rank_call(rank, t->call, lane->mode, t->in_place));
    check.plan = zipccl_comm_last_plan(rank->comms[lane->mode]);
    if (t->call->count == 0)
        return ZIPCCL_OK;
    result = perf_rank_result(rank, t->call, t->in_place);
    if (result == NULL)
        return ZIPCCL_ERR_IO;
    status = zipccl_perf_check(&check, result, &wrong);
    lane->told.wrong += (double)wrong;
    return status == ZIPCCL_OK ? status : perf_fail(job, status, "the result cannot be checked");
}

static zipccl_status check_lanes(struct trial *t)
{
    for (uint32_t i = 0; i < t->rank->job->options->check_iters; i++)
        for (uint32_t k = 0; k < t->nlanes; k++)
            ZIPCCL_TRY(check_one(t, &t->lanes[k], 1 + i));
    return ZIPCCL_OK;
}

/* One time of an iteration from those of all ranks, 'stride' apart. */
static double average(enum zipccl_perf_average how, const double *times, uint32_t nranks,
                      size_t stride)
{
    double sum = 0, least = times[0], most = times[0];

    for (uint32_t r = 0; r < nranks; r++) {
        double x = times[r * stride];

        sum += x;
        least = x < least ? x : least;
        most = x > most ? x : most;
    }
    switch (how) {
    case ZIPCCL_AVERAGE_RANK0: return times[0];
    case ZIPCCL_AVERAGE_MEAN: return sum / nranks;
    case ZIPCCL_AVERAGE_MIN: return least;
    default: return most;
    }
}

/* The times of all ranks become one of each iteration, in lane->times. */
static zipccl_status join_times(struct trial *t, struct lane *lane)
{
    struct perf_job *job = t->rank->job;
    uint32_t nranks = job->world->nranks;
    double *all = malloc((size_t)nranks * t->iters * sizeof *all);
    zipccl_status status;

    if (all == NULL)
        return perf_fail(job, ZIPCCL_ERR_NOMEM, "no memory for the ranks' times");
    status = zipccl_world_gather(t->rank->whole, lane->times, t->iters * sizeof *all, all);
    for (uint32_t i = 0; i < t->iters && status == ZIPCCL_OK; i++)
        lane->times[i] = average(job->options->average, all + i, nranks, t->iters);
    free(all);
    return status == ZIPCCL_OK
               ? status
               : perf_fail_world(t->rank, status, "the ranks' times cannot be gathered");
}

/* Bytes are means over ranks, codec times those of the busiest, wrong elements those of all. */
static zipccl_status join_told(struct trial *t, struct lane *lane, struct zipccl_perf_row *row)
{
    struct perf_job *job = t->rank->job;
    uint32_t nranks = job->world->nranks;
    double ncalls = (double)t->iters * job->options->agg_iters, busiest = -1, wrong = 0;
    struct told *all = malloc(nranks * sizeof *all);
    zipccl_status status;

    if (all == NULL)
        return perf_fail(job, ZIPCCL_ERR_NOMEM, "no memory for the ranks' figures");
    status = zipccl_world_gather(t->rank->whole, &lane->told, sizeof lane->told, all);
    for (uint32_t r = 0; r < nranks && status == ZIPCCL_OK; r++) {
        row->raw_bytes += all[r].raw_bytes / ncalls / nranks;
        row->wire_bytes += all[r].wire_bytes / ncalls / nranks;
        row->coded_raw += all[r].coded_raw / ncalls / nranks;
        row->coded_wire += all[r].coded_wire / ncalls / nranks;
        wrong += all[r].wrong;
        if (all[r].encode_s + all[r].decode_s > busiest) {
            busiest = all[r].encode_s + all[r].decode_s;
            row->encode_s = all[r].encode_s / ncalls;
            row->decode_s = all[r].decode_s / ncalls;
        }
    }
    row->wrong = job->options->check_iters > 0 ? (int64_t)wrong : -1;
    free(all);
    return status == ZIPCCL_OK
               ? status
               : perf_fail_world(t->rank, status, "the ranks' figures cannot be gathered");
}

static void note_plan(const struct trial *t, const struct lane *lane, struct zipccl_perf_row *row)
{
    const struct zipccl_plan *plan = zipccl_comm_last_plan(t->rank->comms[lane->mode]);
    bool pairs = zipccl_is_uneven(t->call->op);

    row->capacity_class = ZIPCCL_NO_CLASS;
    if (plan == NULL || t->call->count == 0)
        return;
    snprintf(row->strategy, sizeof row->strategy, "%s", plan->strategy);
    row->nchunks = plan->nchunks;
    row->effort = (enum zipccl_effort)plan->effort;
    if (!pairs && zipccl_plan_is_fixed(plan)) /* pairs have classes of their own */
        row->capacity_class = (int)plan->capacity_class;
}

static void note_date(char *text, size_t size)
{
    time_t now = time(NULL);
    struct tm local;

    text[0] = '\0';
    if (localtime_r(&now, &local) != NULL)
        strftime(text, size, "%Y-%m-%d %H:%M:%S", &local);
}

/* The row of one lane; collective. */
static zipccl_status make_row(struct trial *t, struct lane *lane, const double *raw,
                              double *scratch, struct zipccl_perf_row *row)
{
    struct perf_job *job = t->rank->job;

    *row = (struct zipccl_perf_row){.call = *t->call,
                                    .nranks = job->nranks,
                                    .nodes = job->nodes,
                                    .mode = lane->mode,
                                    .in_place = t->in_place};
    note_plan(t, lane, row);
    ZIPCCL_TRY(join_told(t, lane, row));
    if (t->rank->whole->rank != 0)
        return ZIPCCL_OK;
    note_date(row->date, sizeof row->date);
    if (raw != NULL && raw != lane->times)
        zipccl_perf_row_pairs(row, raw, lane->times, t->iters, scratch);
    if (job->options->all_iterations) {
        row->times_s = malloc(t->iters * sizeof *row->times_s);
        if (row->times_s == NULL)
            return perf_fail(job, ZIPCCL_ERR_NOMEM, "no memory for the iterations' times");
        memcpy(row->times_s, lane->times, t->iters * sizeof *row->times_s);
    }
    memcpy(scratch, lane->times, t->iters * sizeof *scratch);
    zipccl_perf_row_times(row, scratch, t->iters);
    return ZIPCCL_OK;
}

static zipccl_status make_rows(struct trial *t, double *scratch,
                               struct zipccl_perf_row rows[ZIPCCL_NUM_PERF_MODES])
{
    const double *raw = NULL;

    for (uint32_t k = 0; k < t->nlanes; k++) {
        ZIPCCL_TRY(join_times(t, &t->lanes[k]));
        if (t->lanes[k].mode == ZIPCCL_PERF_RAW)
            raw = t->lanes[k].times;
    }
    for (uint32_t k = 0; k < t->nlanes; k++)
        ZIPCCL_TRY(make_row(t, &t->lanes[k], raw, scratch, &rows[k]));
    return ZIPCCL_OK;
}

static zipccl_status run_phases(struct trial *t, unsigned char *all, double *scratch,
                                struct zipccl_perf_row rows[ZIPCCL_NUM_PERF_MODES])
{
    ZIPCCL_TRY(perf_rank_fill(t->rank, t->call, t->in_place, 0, true));
    ZIPCCL_TRY(find_lanes(t));
    ZIPCCL_TRY(warm_up(t));
    ZIPCCL_TRY(time_lanes(t, all));
    ZIPCCL_TRY(check_lanes(t));
    return make_rows(t, scratch, rows);
}

/* Measure 'call' out of place or in place; '*nrows' rows, in the order of the modes. */
static zipccl_status run_trial(struct perf_rank *rank, const struct zipccl_perf_call *call,
                               bool in_place, struct zipccl_perf_row *rows, uint32_t *nrows)
{
    struct trial t = {
        .rank = rank, .call = call, .in_place = in_place, .iters = rank->job->options->iters};
    size_t n = t.iters;
    double *times = malloc((ZIPCCL_NUM_PERF_MODES + 1) * n * sizeof *times);
    unsigned char *all = malloc(rank->whole->nranks);
    zipccl_status status = ZIPCCL_ERR_NOMEM;

    for (uint32_t k = 0; k < ZIPCCL_NUM_PERF_MODES && times != NULL; k++)
        t.lanes[k].times = times + k * n;
    if (times != NULL && all != NULL)
        status = run_phases(&t, all, times + ZIPCCL_NUM_PERF_MODES * n, rows);
    else
        perf_fail(rank->job, status, "no memory for the times");
    *nrows = t.nlanes;
    free(all);
    free(times);
    return status;
}

/* Only the process with rank 0. */
static zipccl_status keep_rows(struct perf_job *job, const struct zipccl_perf_row *out,
                               const struct zipccl_perf_row *in, uint32_t nrows)
{
    for (uint32_t k = 0; k < nrows; k++) {
        FILE *table = perf_table(job);

        if (table != NULL)
            zipccl_perf_print_row(job->options, &out[k], in != NULL ? &in[k] : NULL, table);
        if (zipccl_perf_add(job->result, &out[k]) != ZIPCCL_OK ||
            (in != NULL && zipccl_perf_add(job->result, &in[k]) != ZIPCCL_OK))
            return perf_fail(job, ZIPCCL_ERR_NOMEM, "no memory for the rows");
    }
    return ZIPCCL_OK;
}

zipccl_status perf_measure(struct perf_rank *rank, const struct zipccl_perf_call *call,
                           bool *served)
{
    struct zipccl_perf_row out[ZIPCCL_NUM_PERF_MODES], in[ZIPCCL_NUM_PERF_MODES];
    uint32_t nout = 0, nin = 0;

    perf_rank_prepare(rank, call);
    ZIPCCL_TRY(run_trial(rank, call, false, out, &nout));
    *served = nout > 0;
    if (call->has_in_place && nout > 0)
        ZIPCCL_TRY(run_trial(rank, call, true, in, &nin));
    if (rank->whole->rank != 0 || nout == 0)
        return ZIPCCL_OK;
    return keep_rows(rank->job, out, nin == nout ? in : NULL, nout);
}
