/*
 * comm_learn.c - what even calls teach besides capacity classes: ratios, and which kind of plan is faster
 *
 * Ranks contribute whole numbers, bytes and nanoseconds, which they exchange with what they saw of
 * classes (comm_classes.c): sums give the ratio, the longest times decide a trial (trials.h).  What
 * follows from a rank's own numbers is never used before.
 *
 * Pairs of uneven calls learn neither.  How long a message took only one end knows, and a strategy is
 * settled once for all pairs, so there is nothing that the two ends could decide from their ratio.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/comm_state.h"

#include "core/strategies/reductions.h"

#include <string.h>

/* Ratios in use are rounded to so many parts of a million, and change only by more than so many
 * percent, so that few plans are made. */
#define RATIO_STEP_PPM       10000u
#define RATIO_CHANGE_PERCENT 3u
#define RATIO_MOST_PPM       2000000u

int zipccl_comm_kind_of(const struct zipccl_plan *plan)
{
    return plan->compressed                                           ? ZIPCCL_PLAN_COMPRESSED
           : strncmp(plan->strategy, "native", strlen("native")) == 0 ? ZIPCCL_PLAN_NATIVE
                                                                      : ZIPCCL_PLAN_RAW;
}

static size_t part_of(size_t nbytes, uint32_t ppm)
{
    return nbytes / 1000000 * ppm + nbytes % 1000000 * ppm / 1000000;
}

static size_t seen_bytes(const struct zipccl_seen_sizes *seen, size_t n, enum zipccl_effort effort)
{
    size_t bytes = part_of(n * zipccl_dtype_size(seen->dtype), seen->coded_ppm);
    size_t saved = n / ZIPCCL_RATIO_SAVES_ONE_OF, bound = zipccl_bound(seen->dtype, n);

    if (effort == ZIPCCL_EFFORT_RATIO && seen->effort == ZIPCCL_EFFORT_FAST)
        bytes = bytes > saved ? bytes - saved : 0;
    if (effort == ZIPCCL_EFFORT_FAST && seen->effort == ZIPCCL_EFFORT_RATIO)
        bytes += saved;
    bytes =
        bytes > ZIPCCL_MESSAGE_HEADER_BYTES || n == 0 ? bytes : (size_t)ZIPCCL_MESSAGE_HEADER_BYTES;
    return bytes < bound ? bytes : bound;
}

static size_t fast_bytes(void *context, uint32_t src, uint32_t dst, size_t n)
{
    (void)src;
    (void)dst;
    return seen_bytes(context, n, ZIPCCL_EFFORT_FAST);
}

static size_t ratio_bytes(void *context, uint32_t src, uint32_t dst, size_t n)
{
    (void)src;
    (void)dst;
    return seen_bytes(context, n, ZIPCCL_EFFORT_RATIO);
}

const struct zipccl_wire_sizes *zipccl_comm_seen_sizes(struct zipccl_seen_sizes *context,
                                                       const struct zipccl_call *call,
                                                       const struct zipccl_learnt_key *key,
                                                       struct zipccl_wire_sizes *out)
{
    if (key->coded_ppm == 0)
        return NULL;
    *context = (struct zipccl_seen_sizes){call->dtype, key->coded_ppm, key->effort};
    *out = (struct zipccl_wire_sizes){
        .bytes = fast_bytes, .ratio_bytes = ratio_bytes, .context = context, .by_n = true};
    return out;
}

/* The cheapest candidates of each kind, on one path if that matters. */
struct search {
    const char *path; /* NULL: any */
    struct zipccl_candidate best[ZIPCCL_NUM_KINDS];
};

/* "direct" of "fixed direct"; all that a reduction's order of sums and roundings depends on. */
static const char *path_of(const char *strategy)
{
    const char *space = strchr(strategy, ' ');

    return space != NULL ? space + 1 : "";
}

static void keep_best(void *context, struct zipccl_candidate *candidate)
{
    struct search *search = context;
    struct zipccl_candidate *best = &search->best[zipccl_comm_kind_of(candidate->plan)];
    struct zipccl_plan *worse = best->plan;

    if (search->path != NULL && strcmp(path_of(candidate->strategy->name), search->path) != 0)
        return;
    if (worse != NULL && !(candidate->cost.total_s < best->cost.total_s))
        return;
    *best = *candidate;
    candidate->plan = worse; /* goes away */
}

static void release(struct search *search, int but)
{
    for (int k = 0; k < ZIPCCL_NUM_KINDS; k++)
        if (k != but)
            zipccl_plan_destroy(search->best[k].plan);
}

/*
 * Find the cheapest plan of each kind.  The bits of a reduction are those of the path that it took
 * first, or of the transport, whatever has been seen since: '*none' if it is the transport's.
 */
static zipccl_status find_kinds(const struct zipccl_comm *comm, const struct zipccl_call *any,
                                const struct zipccl_learnt_key *key, enum zipccl_mode mode,
                                struct search *search, bool *none)
{
    struct zipccl_call call = *any;
    struct zipccl_seen_sizes seen;
    struct zipccl_wire_sizes sizes;
    char first[sizeof((struct zipccl_plan *)NULL)->strategy] = "";
    zipccl_status status;

    call.effort = comm->config.effort;
    *none = false;
    if (zipccl_is_reduction(call.op)) {
        struct zipccl_plan *plan;

        ZIPCCL_TRY(zipccl_choose(&call, &comm->placement, &comm->config.params, NULL,
                                 comm->config.mode, ZIPCCL_CLASS_SETTLED,
                                 comm->config.max_staging_bytes, &plan, NULL));
        *none = zipccl_comm_kind_of(plan) == ZIPCCL_PLAN_NATIVE;
        memcpy(first, plan->strategy, sizeof first);
        zipccl_plan_destroy(plan);
        search->path = path_of(first);
        if (*none)
            return ZIPCCL_OK;
    }
    status = zipccl_candidates(&call, &comm->placement, &comm->config.params,
                               zipccl_comm_seen_sizes(&seen, &call, key, &sizes), mode,
                               (uint32_t)(key->ceiling < 0 ? ZIPCCL_CLASS_WIDE : key->ceiling),
                               comm->config.max_staging_bytes, keep_best, search);
    search->path = NULL;
    if (status != ZIPCCL_OK)
        release(search, ZIPCCL_NO_KIND);
    return status;
}

zipccl_status zipccl_comm_best_of_kind(const struct zipccl_comm *comm,
                                       const struct zipccl_call *call,
                                       const struct zipccl_learnt_key *key,
                                       struct zipccl_candidate *out)
{
    enum zipccl_mode mode =
        key->kind == ZIPCCL_PLAN_COMPRESSED ? ZIPCCL_MODE_COMPRESSED : ZIPCCL_MODE_RAW;
    struct search search = {0};
    bool none;

    ZIPCCL_TRY(find_kinds(comm, call, key, mode, &search, &none));
    release(&search, key->kind);
    if (none || search.best[key->kind].plan == NULL)
        return ZIPCCL_ERR_UNSUPPORTED;
    *out = search.best[key->kind];
    return ZIPCCL_OK;
}

/* Predicted times of the best plans of a mode by kind, all 0 if there is nothing to compare. */
static zipccl_status predict(const struct zipccl_comm *comm, const struct zipccl_call *call,
                             const struct zipccl_learnt_key *key, enum zipccl_mode mode,
                             double predicted_s[ZIPCCL_NUM_KINDS], double *raw_wire_s)
{
    struct search search = {0};
    double raw_s = 0;
    bool none;

    memset(predicted_s, 0, ZIPCCL_NUM_KINDS * sizeof *predicted_s);
    *raw_wire_s = 0;
    ZIPCCL_TRY(find_kinds(comm, call, key, mode, &search, &none));
    for (int k = 0; k < ZIPCCL_NUM_KINDS && !none; k++) {
        const struct zipccl_candidate *best = &search.best[k];

        if (best->plan == NULL)
            continue;
        predicted_s[k] = best->cost.total_s;
        if (k != ZIPCCL_PLAN_COMPRESSED && (raw_s == 0 || predicted_s[k] < raw_s)) {
            raw_s = predicted_s[k];
            *raw_wire_s = best->cost.wire_s;
        }
    }
    release(&search, ZIPCCL_NO_KIND);
    return ZIPCCL_OK;
}

zipccl_status zipccl_comm_learn_start(const struct zipccl_comm *comm,
                                      const struct zipccl_call *call, struct zipccl_even_class *cls)
{
    struct zipccl_learnt_key key = {.ceiling = cls->state.narrowest, .kind = ZIPCCL_NO_KIND};
    double predicted_s[ZIPCCL_NUM_KINDS] = {0}, wire_s = 0;

    /* First what is cheap to price: small messages, of which there may be many kinds, end here. */
    if (comm->times)
        ZIPCCL_TRY(predict(comm, call, &key, ZIPCCL_MODE_RAW, predicted_s, &wire_s));
    if (zipccl_trials_worth(predicted_s, wire_s))
        ZIPCCL_TRY(predict(comm, call, &key, ZIPCCL_MODE_ADAPTIVE, predicted_s, &wire_s));
    zipccl_trials_init(&cls->trials, predicted_s, wire_s);
    return ZIPCCL_OK;
}

static uint32_t ppm_of(uint64_t raw, uint64_t coded)
{
    uint64_t ppm;

    for (; coded > UINT64_MAX / 1000000; coded >>= 1)
        raw >>= 1;
    ppm = raw == 0 ? RATIO_MOST_PPM : coded * 1000000 / raw;
    ppm = (ppm + RATIO_STEP_PPM / 2) / RATIO_STEP_PPM * RATIO_STEP_PPM;
    return ppm < RATIO_STEP_PPM ? RATIO_STEP_PPM
                                : (uint32_t)(ppm < RATIO_MOST_PPM ? ppm : RATIO_MOST_PPM);
}

void zipccl_comm_learn_decide(const struct zipccl_comm *comm, struct zipccl_even_class *cls,
                              struct zipccl_trial_seen seen, uint64_t raw, uint64_t coded)
{
    uint32_t ppm = ppm_of(raw, coded), now = cls->coded_ppm;

    if (raw > 0 && (now == 0 || cls->effort != cls->effort_seen ||
                    (ppm > now ? ppm - now : now - ppm) * 100 > now * RATIO_CHANGE_PERCENT)) {
        cls->coded_ppm = ppm;
        cls->effort = cls->effort_seen;
    }
    cls->raw_seen = cls->coded_seen = 0;
    if (comm->times) /* else a kind that was loaded stays */
        zipccl_trials_decide(&cls->trials, seen, cls->state.now != ZIPCCL_NO_CLASS);
}

uint64_t zipccl_comm_learn_digest(const struct zipccl_even_class *cls)
{
    uint64_t hash = zipccl_class_digest(&cls->state);

    hash = zipccl_trials_digest(&cls->trials, hash);
    hash = zipccl_comm_hash_u64(hash, cls->coded_ppm);
    return zipccl_comm_hash_u64(hash, (uint64_t)cls->effort);
}

struct zipccl_learnt_key zipccl_comm_learnt_key(const struct zipccl_comm *comm,
                                                const struct zipccl_even_class *cls)
{
    struct zipccl_learnt_key key = {.cls = cls->state.now,
                                    .ceiling = zipccl_class_ceiling(&cls->state),
                                    .kind = ZIPCCL_NO_KIND,
                                    .coded_ppm = cls->coded_ppm,
                                    .effort = cls->effort};

    if (cls->trials.on)
        key.kind = comm->times
                       ? zipccl_trials_kind(&cls->trials,
                                            (uint32_t)(cls->state.calls % ZIPCCL_CLASS_PERIOD))
                       : cls->trials.now;
    /* Compressed, which too many messages did not fit: as without trials. */
    if (key.kind == ZIPCCL_PLAN_COMPRESSED && key.cls == ZIPCCL_NO_CLASS)
        key.kind = ZIPCCL_NO_KIND;
    return key;
}

bool zipccl_comm_get_learnt(const struct zipccl_comm *comm, size_t index,
                            struct zipccl_comm_learnt *out)
{
    const struct zipccl_cache_node *node = comm->classes.newest;
    const struct zipccl_even_class *c;

    for (; node != NULL && index > 0; node = node->older)
        index--;
    if (node == NULL)
        return false;
    c = (const struct zipccl_even_class *)node;
    *out = (struct zipccl_comm_learnt){.op = c->op,
                                       .dtype = c->dtype,
                                       .count = c->count,
                                       .ratio = c->coded_ppm > 0 ? 1e6 / c->coded_ppm : 0,
                                       .times = c->trials.on,
                                       .kind = c->trials.on ? c->trials.now : ZIPCCL_NO_KIND,
                                       .ntrials = c->trials.ntrials,
                                       .changes = c->trials.changes};
    for (int k = 0; k < ZIPCCL_NUM_KINDS; k++) {
        out->predicted_s[k] = (double)c->trials.kinds[k].predicted_ns * 1e-9;
        out->seen_s[k] = (double)c->trials.kinds[k].ns * 1e-9;
    }
    return true;
}
