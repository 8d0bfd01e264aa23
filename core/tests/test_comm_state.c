/*
 * test_comm_state.c - what was learnt, saved and loaded: by all ranks or by none
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/comm_state.h"
#include "core/state.h"
#include "core/state_words.h"
#include "core/tests/coll_world.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NRANKS 4u
#define COUNT  8192u
#define NCALLS (4 * ZIPCCL_CLASS_PERIOD + 5)

#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "line %d: %s\n", __LINE__, #x);                                        \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

struct text {
    char *bytes;
    size_t nbytes;
};

struct job {
    struct world w;
    struct zipccl_exec_ops ops;
    struct zipccl_comm_config config;
    struct zipccl_comm *comms[NRANKS];
    struct text saved[NRANKS], given[NRANKS], again[NRANKS];
    zipccl_status status[NRANKS];
    uint64_t plan[NRANKS], first_plan[NRANKS];
    uint64_t now[NRANKS];
    char folder[64];
};

/* Each reading comes a little later, twice as much later after compressed calls. */
static uint64_t slow_codec_clock(struct zipccl_exec *e)
{
    const struct job *job = (const struct job *)((uintptr_t)e->ops - offsetof(struct job, ops));
    uint32_t rank = 0;

    while (job->w.exec[rank] != e)
        rank++;
    return ((struct job *)(uintptr_t)job)->now[rank] +=
           1000 * (uint64_t)(1 + 2 * (job->comms[rank]->last->compressed != 0));
}

static void fill(uint32_t rank, size_t n, uint16_t *out)
{
    struct coll_case c = {.kind = KIND_GAUSS};

    case_block(&c, rank, 1, 0, n, out);
}

static zipccl_status calls(struct zipccl_comm *comm, uint32_t rank, uint32_t ncalls)
{
    uint16_t *send = malloc(COUNT * NRANKS * sizeof *send);
    uint16_t *recv = malloc(COUNT * NRANKS * sizeof *recv);
    size_t counts[NRANKS], displs[NRANKS];
    zipccl_status status = send == NULL || recv == NULL ? ZIPCCL_ERR_NOMEM : ZIPCCL_OK;

    fill(rank, COUNT * NRANKS, send);
    for (uint32_t p = 0; p < NRANKS; p++) {
        counts[p] = 2000 + 64 * (p + rank);
        displs[p] = p * COUNT;
    }
    for (uint32_t k = 0; k < ncalls && status == ZIPCCL_OK; k++) {
        status = zipccl_all_gather(send, recv, COUNT, ZIPCCL_BFLOAT16, comm, NULL);
        if (status == ZIPCCL_OK)
            status = zipccl_all_reduce(send, recv, COUNT, ZIPCCL_BFLOAT16, ZIPCCL_SUM, comm, NULL);
        if (status == ZIPCCL_OK && k % 2 == 0)
            status = zipccl_alltoallv(send, counts, displs, recv, counts, displs, ZIPCCL_BFLOAT16,
                                      comm, NULL);
    }
    free(send);
    free(recv);
    return status;
}

static bool open_one(void *context, uint32_t rank)
{
    struct job *job = context;

    return zipccl_comm_create(job->w.t[rank], job->w.exec[rank], &job->config, &job->comms[rank],
                              NULL) == ZIPCCL_OK;
}

static bool close_one(void *context, uint32_t rank)
{
    struct job *job = context;

    zipccl_comm_destroy(job->comms[rank]);
    job->comms[rank] = NULL;
    return true;
}

static uint64_t plan_now(const struct job *job, uint32_t rank)
{
    return zipccl_plan_digest(zipccl_comm_last_plan(job->comms[rank]));
}

/* One call and the plan that it had. */
static bool one_gather(struct job *job, uint32_t rank, uint64_t *plan)
{
    uint16_t *x = calloc(COUNT * (NRANKS + 1), sizeof *x);
    bool ok = x != NULL && zipccl_all_gather(x, x + COUNT, COUNT, ZIPCCL_BFLOAT16, job->comms[rank],
                                             NULL) == ZIPCCL_OK;

    free(x);
    *plan = ok ? plan_now(job, rank) : 0;
    return ok;
}

static bool learn_and_save(void *context, uint32_t rank)
{
    struct job *job = context;

    return open_one(job, rank) && one_gather(job, rank, &job->first_plan[rank]) &&
           calls(job->comms[rank], rank, NCALLS) == ZIPCCL_OK &&
           one_gather(job, rank, &job->plan[rank]) &&
           zipccl_comm_save_state(job->comms[rank], &job->saved[rank].bytes,
                                  &job->saved[rank].nbytes) == ZIPCCL_OK;
}

static bool load_given(void *context, uint32_t rank)
{
    struct job *job = context;

    job->status[rank] =
        zipccl_comm_load_state(job->comms[rank], job->given[rank].bytes, job->given[rank].nbytes);
    return true;
}

static bool save_again(void *context, uint32_t rank)
{
    struct job *job = context;

    return zipccl_comm_save_state(job->comms[rank], &job->again[rank].bytes,
                                  &job->again[rank].nbytes) == ZIPCCL_OK;
}

static bool use(void *context, uint32_t rank)
{
    struct job *job = context;

    return one_gather(job, rank, &job->plan[rank]) &&
           calls(job->comms[rank], rank, ZIPCCL_CLASS_PERIOD + 1) == ZIPCCL_OK &&
           one_gather(job, rank, &(uint64_t){0}); /* the last one, as when it was saved */
}

static bool use_once(void *context, uint32_t rank)
{
    struct job *job = context;

    return one_gather(job, rank, &job->plan[rank]);
}

static bool same_text(struct text a, struct text b)
{
    return a.nbytes == b.nbytes && memcmp(a.bytes, b.bytes, a.nbytes) == 0;
}

/* A frozen communicator has the plans that were learnt, from its first call on, and stays there. */
static bool test_frozen(struct job *job)
{
    uint64_t learnt = job->plan[0];

    CHECK(learnt != job->first_plan[0]);
    job->config.learning = ZIPCCL_LEARN_NOTHING;
    memcpy(job->given, job->saved, sizeof job->given);
    CHECK(world_run(&job->w, open_one, job) && world_run(&job->w, load_given, job));
    CHECK(world_run(&job->w, use, job) && world_run(&job->w, save_again, job));
    for (uint32_t r = 0; r < NRANKS; r++) {
        bool same = same_text(job->saved[r], job->again[r]);

        CHECK(job->status[r] == ZIPCCL_OK);
        CHECK(job->plan[r] == learnt);
        free(job->again[r].bytes);
        CHECK(same);
    }
    world_run(&job->w, close_one, job);
    job->config.learning = ZIPCCL_LEARN_TIMES;
    return true;
}

/* One that goes on learning starts there. */
static bool test_goes_on(struct job *job)
{
    struct zipccl_comm_class before, after;
    uint64_t learnt = job->plan[0];

    memcpy(job->given, job->saved, sizeof job->given);
    CHECK(world_run(&job->w, open_one, job) && world_run(&job->w, load_given, job));
    CHECK(zipccl_comm_get_class(job->comms[0], 0, &before));
    CHECK(world_run(&job->w, use, job));
    CHECK(zipccl_comm_get_class(job->comms[0], 0, &after));
    CHECK(after.op == before.op && after.calls >= before.calls + ZIPCCL_CLASS_PERIOD);
    for (uint32_t r = 0; r < NRANKS; r++)
        CHECK(job->status[r] == ZIPCCL_OK && job->plan[r] == learnt);
    world_run(&job->w, close_one, job);
    return true;
}

static bool nothing_loaded(const struct job *job)
{
    struct zipccl_comm_class c;

    for (uint32_t r = 0; r < NRANKS; r++)
        if (zipccl_comm_get_class(job->comms[r], 0, &c))
            return false;
    return true;
}

/* Load what is given; 'rank' fails for 'reason', NRANKS: all do; the others name it or that text. */
static bool refused(struct job *job, uint32_t rank, zipccl_status status, const char *reason,
                    const char *others)
{
    CHECK(world_run(&job->w, open_one, job) && world_run(&job->w, load_given, job));
    for (uint32_t r = 0; r < NRANKS; r++) {
        bool own = rank == NRANKS || r == rank;
        const char *text = zipccl_comm_error(job->comms[r]);

        if (job->status[r] != (own ? status : ZIPCCL_ERR_MISMATCH) ||
            strstr(text, own ? reason : others) == NULL) {
            fprintf(stderr, "rank %u: %s: %s\n", r, zipccl_status_string(job->status[r]), text);
            return false;
        }
    }
    CHECK(nothing_loaded(job));
    CHECK(world_run(&job->w, use_once, job)); /* all is well with the communicators */
    world_run(&job->w, close_one, job);
    return true;
}

/* 'text' with 'old' replaced by 'new', of which 'n' come first, and the digest put right. */
static struct text changed(struct text text, const char *old, const char *new)
{
    struct text out = {calloc(1, text.nbytes + strlen(new) + 1), 0};
    char *copy = calloc(1, text.nbytes + 1), *at;
    size_t before;

    if (out.bytes == NULL || copy == NULL)
        abort();
    memcpy(copy, text.bytes, text.nbytes);
    at = strstr(copy, old);
    if (at == NULL)
        abort();
    before = (size_t)(at - copy);
    memcpy(out.bytes, copy, before);
    strcpy(out.bytes + before, new);
    strcat(out.bytes, at + strlen(old));
    at = strstr(out.bytes, "\nend ") + 1;
    snprintf(strchr(at + 4, ' ') + 1, 18, "%016" PRIx64 "\n",
             zipccl_state_digest(out.bytes, (size_t)(at - out.bytes)));
    out.nbytes = strlen(out.bytes);
    free(copy);
    return out;
}

static bool refused_change(struct job *job, uint32_t rank, const char *old, const char *new,
                           zipccl_status status, const char *reason, const char *others)
{
    bool all = status == ZIPCCL_ERR_MISMATCH, ok;

    memcpy(job->given, job->saved, sizeof job->given);
    job->given[rank] = changed(job->saved[rank], old, new);
    ok = refused(job, all ? NRANKS : rank, status, reason, others);
    free(job->given[rank].bytes);
    if (!ok)
        fprintf(stderr, "'%s' for '%s'\n", new, old);
    return ok;
}

static bool test_refused(struct job *job)
{
    static const char rank2[] = "rank 2 cannot load";

    CHECK(refused_change(job, 2, "zipccl-state 3", "zipccl-state 2", ZIPCCL_ERR_INPUT,
                         "line 1: found '2', expected version 3", rank2));
    CHECK(refused_change(job, 2, "rank 2 of", "rank 1 of", ZIPCCL_ERR_INPUT, "is the rank itself",
                         rank2));
    CHECK(refused_change(job, 2, "of 4", "of 5", ZIPCCL_ERR_INPUT, "rank 2 of 5, not of", rank2));
    CHECK(refused_change(job, 2, "settings ", "settings 9", ZIPCCL_ERR_INPUT, "another version",
                         rank2));
    CHECK(refused_change(job, 2, " fast trials", " quick trials", ZIPCCL_ERR_INPUT,
                         "found 'quick', expected an effort", rank2));
    CHECK(refused_change(job, 2, "even all_gather", "even all_reduce", ZIPCCL_ERR_INPUT,
                         "is there twice", rank2));
    CHECK(refused_change(job, 2, "even all_gather", "even alltoallv", ZIPCCL_ERR_INPUT,
                         "expected one with equal counts", rank2));
    CHECK(refused_change(job, 2, "pair alltoallv bf16 0 out calls 64",
                         "pair alltoallv bf16 0 out calls 65", ZIPCCL_ERR_INPUT,
                         "expected a multiple of 32", rank2));
    CHECK(refused_change(job, 2, "even all_gather bf16 8192 calls 1",
                         "even broadcast bf16 8192 calls 1", ZIPCCL_ERR_MISMATCH,
                         "rank 2 had learnt something else", ""));
    CHECK(refused_change(job, 2, "pair alltoallv bf16 0 out calls 64",
                         "pair alltoallv bf16 0 out calls 32", ZIPCCL_ERR_MISMATCH, "from 2 to 0",
                         ""));
    memcpy(job->given, job->saved, sizeof job->given);
    job->given[2] = job->saved[3];
    CHECK(refused(job, 2, ZIPCCL_ERR_INPUT, "rank 3 of 4, not of rank 2", rank2));
    job->given[2] = (struct text){job->saved[2].bytes, job->saved[2].nbytes - 1};
    CHECK(refused(job, 2, ZIPCCL_ERR_INPUT, "expected the end of the line", rank2));
    return true;
}

/* Settings that are not those of the run that learnt. */
static bool test_other_settings(struct job *job)
{
    struct zipccl_comm_config learnt = job->config;

    memcpy(job->given, job->saved, sizeof job->given);
    job->config.max_staging_bytes /= 2;
    CHECK(refused(job, NRANKS, ZIPCCL_ERR_INPUT, "other options", ""));
    job->config = learnt;
    job->config.params.nic_Bps *= 2;
    CHECK(refused(job, NRANKS, ZIPCCL_ERR_INPUT, "other rates", ""));
    job->config = learnt;
    return true;
}

static bool files(void *context, uint32_t rank)
{
    struct job *job = context;
    char path[128];

    snprintf(path, sizeof path, "%s/%u", job->folder, rank);
    if (zipccl_comm_save_state_file(job->comms[rank], path) != ZIPCCL_OK)
        return false;
    zipccl_comm_destroy(job->comms[rank]);
    if (!open_one(job, rank) || zipccl_comm_load_state_file(job->comms[rank], path) != ZIPCCL_OK)
        return false;
    remove(path);
    return zipccl_comm_save_state_file(job->comms[rank], "/nowhere/at/all") == ZIPCCL_ERR_IO &&
           strstr(zipccl_comm_error(job->comms[rank]), "/nowhere/at/all") != NULL;
}

static bool one_without_file(void *context, uint32_t rank)
{
    struct job *job = context;
    char path[128];

    zipccl_comm_destroy(job->comms[rank]);
    if (!open_one(job, rank))
        return false;
    snprintf(path, sizeof path, "%s/%s", job->folder, rank == 1 ? "none" : "given");
    job->status[rank] = zipccl_comm_load_state_file(job->comms[rank], path);
    return true;
}

static bool test_files(struct job *job)
{
    char path[128];
    FILE *file;

    strcpy(job->folder, "/tmp/zipccl-state-XXXXXX");
    CHECK(mkdtemp(job->folder) != NULL);
    memcpy(job->given, job->saved, sizeof job->given);
    CHECK(world_run(&job->w, open_one, job) && world_run(&job->w, load_given, job));
    CHECK(world_run(&job->w, files, job));
    snprintf(path, sizeof path, "%s/given", job->folder);
    file = fopen(path, "w");
    CHECK(file != NULL);
    fwrite(job->saved[0].bytes, 1, job->saved[0].nbytes, file);
    fclose(file);
    CHECK(world_run(&job->w, one_without_file, job));
    CHECK(job->status[1] == ZIPCCL_ERR_IO && job->status[0] == ZIPCCL_ERR_MISMATCH &&
          job->status[2] == ZIPCCL_ERR_INPUT);
    CHECK(strstr(zipccl_comm_error(job->comms[0]), "rank 1 cannot") != NULL);
    CHECK(strstr(zipccl_comm_error(job->comms[1]), "/none: ") != NULL);
    CHECK(strstr(zipccl_comm_error(job->comms[2]), "/given: what was learnt is of rank 0") != NULL);
    world_run(&job->w, close_one, job);
    remove(path);
    CHECK(rmdir(job->folder) == 0);
    return true;
}

static bool freeze_one(void *context, uint32_t rank)
{
    struct job *job = context;
    uint64_t plan;

    if (!open_one(job, rank) || calls(job->comms[rank], rank, NCALLS - 2) != ZIPCCL_OK ||
        zipccl_comm_freeze(job->comms[rank]) != ZIPCCL_OK || !one_gather(job, rank, &plan))
        return false;
    for (uint32_t k = 0; k < 2 * ZIPCCL_CLASS_PERIOD; k++)
        if (!one_gather(job, rank, &job->plan[rank]) || job->plan[rank] != plan)
            return false;
    return !job->comms[rank]->times;
}

static bool freeze_unequal(void *context, uint32_t rank)
{
    struct job *job = context;
    struct zipccl_comm *comm = job->comms[rank];

    if (rank == 3)
        ((struct zipccl_even_class *)comm->classes.newest)->coded_ppm++;
    return zipccl_comm_freeze(comm) == ZIPCCL_ERR_MISMATCH &&
           strstr(zipccl_comm_error(comm), "rank 3 has") != NULL;
}

static bool test_freeze(struct job *job)
{
    CHECK(world_run(&job->w, freeze_one, job));
    CHECK(world_run(&job->w, freeze_unequal, job));
    world_run(&job->w, close_one, job);
    return true;
}

/* 'text' with the number behind 'before' replaced and its digest made again; the caller frees it. */
static struct text with_number(struct text text, const char *before, const char *number)
{
    const char *at = strstr(text.bytes, before) + strlen(before), *end = strstr(at, "\nend ") + 1;
    struct text out = {malloc(text.nbytes + 64), 0};
    unsigned nlines;

    if (out.bytes == NULL || sscanf(end, "end %u", &nlines) != 1)
        abort();
    out.nbytes = (size_t)sprintf(out.bytes, "%.*s%s%.*s", (int)(at - text.bytes), text.bytes,
                                 number, (int)(end - (at + strspn(at, "0123456789"))),
                                 at + strspn(at, "0123456789"));
    out.nbytes += (size_t)sprintf(out.bytes + out.nbytes, "end %u %016" PRIx64 "\n", nlines,
                                  zipccl_state_digest(out.bytes, out.nbytes));
    return out;
}

/* Classes as they start are not told, and others in their order. */
static bool test_bars(struct text text)
{
    static const struct {
        const char *bars, *why; /* NULL: it is read */
    } cases[] = {
        {"2 wide 4160 8192 settled-16 96 512", NULL},
        {"1 loose 0 256", "expected a class that has been barred"},
        {"2 settled 96 512 loose 96 512", "expected a narrower class"},
        {"1 loosest 96 512", "found 'loosest', expected a capacity class"},
        {"34", "expected a number of classes"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct text given = with_number(text, "barred ", cases[i].bars), saved = {NULL, 0};
        struct zipccl_error error = {""};
        struct zipccl_state state;
        zipccl_status status = zipccl_state_read(given.bytes, given.nbytes, &state, &error);

        if (cases[i].why != NULL)
            CHECK(status == ZIPCCL_ERR_INPUT && strstr(error.text, cases[i].why) != NULL);
        else
            CHECK(status == ZIPCCL_OK &&
                  zipccl_state_write(&state, &saved.bytes, &saved.nbytes) == ZIPCCL_OK &&
                  saved.nbytes == given.nbytes &&
                  memcmp(saved.bytes, given.bytes, saved.nbytes) == 0);
        zipccl_state_release(&state);
        free(given.bytes);
        free(saved.bytes);
    }
    return true;
}

/* Every part of a text is refused, and every text with one byte changed. */
static bool test_reader(struct text text)
{
    struct zipccl_error error;
    struct zipccl_state state;
    char *copy = malloc(text.nbytes + 1);

    if (copy == NULL)
        abort();
    for (size_t n = 0; n < text.nbytes; n += SANITIZED ? 7 : 1) {
        CHECK(zipccl_state_read(text.bytes, n, &state, &error) == ZIPCCL_ERR_INPUT);
        zipccl_state_release(&state);
        memcpy(copy, text.bytes, text.nbytes);
        copy[n] ^= 1 << n % 7;
        CHECK(zipccl_state_read(copy, text.nbytes, &state, &error) == ZIPCCL_ERR_INPUT);
        zipccl_state_release(&state);
    }
    copy[text.nbytes] = '\n';
    memcpy(copy, text.bytes, text.nbytes);
    CHECK(zipccl_state_read(copy, text.nbytes + 1, &state, &error) == ZIPCCL_ERR_INPUT);
    zipccl_state_release(&state);
    free(copy);
    return true;
}

/* 2^53 is refused; what is one too large is written as a number that is read again. */
static bool test_large_numbers(struct text text)
{
    static const struct {
        const char *before, *too_large, *largest;
    } places[] = {{"bf16 8192 calls ", "9007199254740992", "9007199254740960"},
                  {"barred ", "1 loose 9007199254740992 512", "1 loose 9007199254740991 512"},
                  {"trials off none none 0 ", "9007199254740992", "9007199254740991"}};
    struct zipccl_state state;
    struct zipccl_error error;

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct text large = with_number(text, places[i].before, places[i].too_large);
        struct text below = with_number(text, places[i].before, places[i].largest);
        struct text saved = {NULL, 0};

        CHECK(zipccl_state_read(large.bytes, large.nbytes, &state, &error) == ZIPCCL_ERR_INPUT);
        CHECK(strstr(error.text, "9007199254740992") != NULL);
        zipccl_state_release(&state);
        CHECK(zipccl_state_read(below.bytes, below.nbytes, &state, &error) == ZIPCCL_OK);
        state.even[0].state.decided += i == 0 ? ZIPCCL_CLASS_PERIOD : 0;
        for (int c = 0; c < ZIPCCL_NUM_CLASSES && i == 1; c++)
            state.even[0].state.barred_until[c] += strcmp(zipccl_class_name(c), "loose") == 0;
        state.even[0].trials.period += i == 2;
        CHECK(zipccl_state_write(&state, &saved.bytes, &saved.nbytes) == ZIPCCL_OK);
        zipccl_state_release(&state);
        CHECK(saved.nbytes == below.nbytes && memcmp(saved.bytes, below.bytes, saved.nbytes) == 0);
        free(large.bytes);
        free(below.bytes);
        free(saved.bytes);
    }
    return true;
}

/* The ratio in use changes by steps, and only if what is seen is far enough from it. */
static bool test_ratio_steps(void)
{
    static const struct {
        uint64_t raw, coded;
        enum zipccl_effort effort;
        uint32_t ppm;
    } periods[] = {{0, 0, ZIPCCL_EFFORT_FAST, 0}, /* nothing was coded */
                   {3000000, 2000000, ZIPCCL_EFFORT_FAST, 670000},
                   {3000000, 1950000, ZIPCCL_EFFORT_FAST, 670000},
                   {3000000, 2040000, ZIPCCL_EFFORT_FAST, 670000},
                   {3000000, 1930000, ZIPCCL_EFFORT_FAST, 640000},
                   {0, 0, ZIPCCL_EFFORT_FAST, 640000},
                   {3000000, 1925000, ZIPCCL_EFFORT_RATIO, 640000},
                   {3000000, 0, ZIPCCL_EFFORT_RATIO, 10000},
                   {UINT64_MAX, UINT64_MAX / 2, ZIPCCL_EFFORT_FAST, 500000},
                   {1, UINT64_MAX, ZIPCCL_EFFORT_FAST, 2000000}};
    static const struct zipccl_comm comm;
    struct zipccl_even_class cls = {.state = {.now = ZIPCCL_CLASS_WIDE}};

    for (unsigned i = 0; i < sizeof periods / sizeof *periods; i++) {
        cls.effort_seen = periods[i].effort;
        zipccl_comm_learn_decide(&comm, &cls, (struct zipccl_trial_seen){{0, 0}}, periods[i].raw,
                                 periods[i].coded);
        if (cls.coded_ppm != periods[i].ppm || (i > 0 && cls.effort != periods[i].effort)) {
            fprintf(stderr, "period %u: %u parts of a million\n", i, cls.coded_ppm);
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct job job;
    bool ok;

    world_open_even(&job.w, 2, 2);
    job.ops = *job.w.exec[0]->ops;
    job.ops.clock_ns = slow_codec_clock;
    for (uint32_t r = 0; r < NRANKS; r++)
        job.w.exec[r]->ops = &job.ops;
    zipccl_comm_config_init(&job.config);
    job.config.params.nvlink_Bps = job.config.params.nic_Bps = 1e9;
    job.config.params.nvlink_alpha_s = job.config.params.nic_alpha_s = 1e-7;
    job.config.params.codec_launch_s = 1e-7;
    job.config.params.fence_s = 1e-3; /* no exact sizes */
    job.config.params.encode_Bps = job.config.params.decode_Bps = 6e9;
    ok = world_run(&job.w, learn_and_save, &job);
    world_run(&job.w, close_one, &job);
    if (ok && argc > 1 && strcmp(argv[1], "print") == 0) /* for the fuzzer's seeds */
        fwrite(job.saved[0].bytes, 1, job.saved[0].nbytes, stdout);
    ok = ok && test_frozen(&job);
    ok = ok && test_goes_on(&job);
    ok = ok && test_refused(&job);
    ok = ok && test_other_settings(&job);
    ok = ok && test_files(&job);
    ok = ok && test_freeze(&job);
    ok = ok && test_reader(job.saved[1]);
    ok = ok && test_bars(job.saved[1]);
    ok = ok && test_large_numbers(job.saved[1]);
    ok = ok && test_ratio_steps();
    for (uint32_t r = 0; r < NRANKS; r++)
        free(job.saved[r].bytes);
    world_close(&job.w);
    fprintf(stderr, "saved state: %s\n", ok ? "ok" : "FAILED");
    return ok ? 0 : 1;
}
