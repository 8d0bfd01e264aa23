/*
 * device_check.c - zipccl-device-check: one GPU, its kernels and their speed, as a table and as JSON
 *
 * gpu/device_check.sh builds and runs it.  Linked with the emulator it says so everywhere, and its
 * times are the emulator's: of no meaning but that it ran.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/device/device_check.h"

#include "experiments/program/json_put.h"
#include "experiments/program/output.h"
#include "experiments/program/program.h"

#include <stdlib.h>
#include <string.h>

#ifndef ZIPCCL_DEVICE_EMULATED
#define ZIPCCL_DEVICE_EMULATED 0
#endif

enum { KEY_EMULATED = 256, KEY_TINY, KEY_NVCOMP, KEY_ONLY_PEERS, MOST_ROWS = 256 };

static const char program[] = "zipccl-device-check";

struct options {
    bool emulated, tiny, only_peers;
    const char *json, *nvcomp;
};

struct check {
    char device[256];
    int sms, runtime, driver;
    struct device_conform conform;
    struct device_row rows[MOST_ROWS];
    size_t nrows;
    struct device_nccl nccl;
    struct device_peers peers;
};

static const struct argp_option option_table[] = {
    {"json", 'J', "FILE", 0, "the result as JSON, schema zipccl.device_check", 0},
    {"tiny", KEY_TINY, NULL, 0, "few and small sizes", 0},
    {"nvcomp", KEY_NVCOMP, "FILE", 0,
     "nvCOMP's library, version 5, to be measured as well (default: libnvcomp.so.5 or "
     "libnvcomp.so, "
     "where the loader finds one)",
     0},
    {"only-peers", KEY_ONLY_PEERS, NULL, 0, "measure other libraries alone; no JSON then", 0},
    {"emulated", KEY_EMULATED, NULL, 0,
     "of the build on the emulator: agree that nothing here is of a GPU (tiny sizes)", 0},
    {0}};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;

    switch (key) {
    case 'J': o->json = arg; return 0;
    case KEY_ONLY_PEERS: o->only_peers = true; return 0;
    case KEY_NVCOMP: o->nvcomp = arg; return 0;
    case KEY_TINY: o->tiny = true; return 0;
    case KEY_EMULATED: o->emulated = o->tiny = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static zipccl_status look_at_device(struct check *c, struct zipccl_error *error)
{
    struct cudaDeviceProp properties;
    int n = 0;

    DEVICE_TRY(cudaGetDeviceCount(&n));
    if (n < 1)
        return zipccl_fail(error, ZIPCCL_ERR_UNSUPPORTED, "no GPU is here");
    DEVICE_TRY(cudaSetDevice(0));
    memset(&properties, 0, sizeof properties);
    DEVICE_TRY(cudaGetDeviceProperties(&properties, 0));
    snprintf(c->device, sizeof c->device, "%s", properties.name);
    DEVICE_TRY(cudaDeviceGetAttribute(&c->sms, cudaDevAttrMultiProcessorCount, 0));
    DEVICE_TRY(cudaRuntimeGetVersion(&c->runtime));
    (void)cudaDriverGetVersion(&c->driver);
    printf("device    %s, %d SMs, CUDA runtime %d, driver %d\n", c->device, c->sms, c->runtime,
           c->driver);
    return ZIPCCL_OK;
}

/* Programs of superblocks among 'modes'. */
static int programs_of(uint32_t modes)
{
    int n = 0;

    for (int p = 0; p < 10; p++)
        n += (int)(modes >> p & 1);
    return n;
}

static void print_conform(const struct device_conform *c)
{
    printf("kernels   %llu cases (types, kinds of data, odd sizes) against the scalar row: %llu "
           "messages, %llu elements, %llu sums, %llu overflows wrong; %d of 10 programs of "
           "superblocks and "
           "%s bitmap of zeros seen%s%s\n",
           (unsigned long long)c->cases, (unsigned long long)c->messages_wrong,
           (unsigned long long)c->elements_wrong, (unsigned long long)c->sums_wrong,
           (unsigned long long)c->overflows_wrong, programs_of(c->modes),
           c->modes >> 31 ? "a" : "no", c->first[0] != '\0' ? "; first: " : "", c->first);
}

static void print_row(const struct device_row *r)
{
    char sms[16] = "-", share[16] = "-", work[32];

    if (r->nsms > 0)
        snprintf(sms, sizeof sms, "%u", r->nsms);
    if (r->share > 0)
        snprintf(share, sizeof share, "%.1f%%", 100 * r->share);
    snprintf(work, sizeof work, "%s%s%s", r->peer != NULL ? r->peer : "",
             r->peer != NULL ? " " : "", device_work_names[r->work]);
    printf("%12zu  %-21s %4s %11.2f %11.2f %11.2f %9.1f %9.1f %8s %6.3f\n", r->nbytes, work, sms,
           r->median_s * 1e6, r->q1_s * 1e6, r->q3_s * 1e6, (double)r->nbytes / r->median_s / 1e9,
           r->moved_bytes / r->median_s / 1e9, share, r->ratio);
}

static zipccl_status run_speed(struct check *c, bool tiny, struct zipccl_error *error)
{
    size_t most = tiny ? (size_t)64 << 10 : (size_t)1 << 30;
    uint32_t few = c->sms > 16 ? 16 : 1, counts[] = {(uint32_t)c->sms, few};

    printf("\n%12s  %-21s %4s %11s %11s %11s %9s %9s %8s %6s\n", "raw bytes", "work", "SMs",
           "median us", "q1 us", "q3 us", "raw GB/s", "moved", "of copy", "ratio");
    for (size_t i = 0; i < 2 && (i == 0 || counts[1] != counts[0]); i++)
        for (size_t nbytes = (size_t)64 << 10; nbytes <= most; nbytes *= 4) {
            if (c->nrows + DEVICE_NUM_WORKS > MOST_ROWS)
                return ZIPCCL_OK;
            ZIPCCL_TRY(device_speed(nbytes, counts[i], tiny ? 3 : 21, &c->rows[c->nrows], error));
            for (size_t k = 0; k < DEVICE_NUM_WORKS; k++)
                print_row(&c->rows[c->nrows + k]);
            fflush(stdout);
            c->nrows += DEVICE_NUM_WORKS;
        }
    return ZIPCCL_OK;
}

/* Rows of peers, with the share of our copy of the same size. */
static void run_peers(struct check *c, const struct options *o)
{
    device_nvcomp(o->nvcomp, o->tiny ? (size_t)64 << 10 : (size_t)1 << 30, o->tiny ? 3 : 21,
                  &c->peers);
    for (size_t i = 0; i < c->peers.nrows; i++) {
        struct device_row *r = &c->peers.rows[i];

        for (size_t k = 0; k < c->nrows && r->share == 0; k++)
            if (c->rows[k].work == DEVICE_COPY && c->rows[k].nbytes == r->nbytes)
                r->share =
                    r->moved_bytes / r->median_s / (c->rows[k].moved_bytes / c->rows[k].median_s);
        print_row(r);
    }
    if (c->peers.version > 0)
        printf("\nnvCOMP    version number %u%s%s\n", c->peers.version,
               c->peers.why[0] != '\0' ? "; not measured: " : "", c->peers.why);
    else
        printf("\nnvCOMP    not measured: %s\n", c->peers.why);
}

/* A GPU that cannot is no fault. */
static bool gate_is_right(const struct zipccl_gate_check *g)
{
    return !g->able || (g->passes && g->resends && g->replays && g->aborts);
}

static void print_gate(const struct zipccl_gate_check *g)
{
    if (!g->able)
        printf("gate: not looked at: no stream memory operations, or no ncclCommSplit\n");
    else
        printf("gate: pass %s (%.1f us), raw resend %s (%.1f us), in a graph %s, abort %s\n",
               g->passes ? "right" : "WRONG", g->pass_us, g->resends ? "right" : "WRONG",
               g->resend_us, g->replays ? "right" : "WRONG", g->aborts ? "right" : "WRONG");
}

static void print_nccl(const struct device_nccl *n)
{
    if (n->version == 0)
        printf("NCCL      not run: %s\n", n->why);
    else
        printf("NCCL %d one rank: fixed messages %s; forced overflow %s, raw resend %s\n",
               n->version, n->fits_right ? "right" : "WRONG",
               n->overflow_seen ? "seen" : "NOT SEEN", n->overflow_right ? "right" : "WRONG");
}

static bool is_good(const struct check *c)
{
    const struct device_conform *k = &c->conform;

    return k->messages_wrong + k->elements_wrong + k->sums_wrong + k->overflows_wrong == 0 &&
           c->nccl.fits_right && c->nccl.overflow_seen && c->nccl.overflow_right &&
           gate_is_right(&c->nccl.gate);
}

static void put_rows(yajl_gen gen, const struct device_row *rows, size_t n)
{
    zipccl_put_key(gen, "rows");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < n; i++) {
        const struct device_row *r = &rows[i];

        yajl_gen_map_open(gen);
        if (r->peer != NULL)
            zipccl_put_string(gen, "peer", r->peer);
        zipccl_put_string(gen, "work", device_work_names[r->work]);
        zipccl_put_integer(gen, "raw_bytes", r->nbytes);
        zipccl_put_number(gen, "sms", r->nsms, r->nsms > 0);
        zipccl_put_number(gen, "median_s", r->median_s, true);
        zipccl_put_number(gen, "q1_s", r->q1_s, true);
        zipccl_put_number(gen, "q3_s", r->q3_s, true);
        zipccl_put_number(gen, "moved_bytes", r->moved_bytes, true);
        zipccl_put_number(gen, "share_of_copy", r->share, r->share > 0);
        zipccl_put_number(gen, "ratio", r->ratio, true);
        yajl_gen_map_close(gen);
    }
    yajl_gen_array_close(gen);
}

static void put_bool(yajl_gen gen, const char *key, bool value)
{
    zipccl_put_key(gen, key);
    yajl_gen_bool(gen, value);
}

static void put_gate(yajl_gen gen, const struct zipccl_gate_check *g)
{
    zipccl_put_key(gen, "gate");
    yajl_gen_map_open(gen);
    put_bool(gen, "able", g->able);
    put_bool(gen, "passes", g->passes);
    put_bool(gen, "resends", g->resends);
    put_bool(gen, "replays", g->replays);
    put_bool(gen, "aborts", g->aborts);
    zipccl_put_number(gen, "pass_us", g->pass_us, g->able);
    zipccl_put_number(gen, "resend_us", g->resend_us, g->able);
    yajl_gen_map_close(gen);
}

static void put_parts(yajl_gen gen, const struct check *c)
{
    zipccl_put_key(gen, "conformance");
    yajl_gen_map_open(gen);
    zipccl_put_integer(gen, "cases", c->conform.cases);
    zipccl_put_integer(gen, "messages_wrong", c->conform.messages_wrong);
    zipccl_put_integer(gen, "elements_wrong", c->conform.elements_wrong);
    zipccl_put_integer(gen, "sums_wrong", c->conform.sums_wrong);
    zipccl_put_integer(gen, "overflows_wrong", c->conform.overflows_wrong);
    zipccl_put_integer(gen, "programs_seen", (unsigned)programs_of(c->conform.modes));
    yajl_gen_map_close(gen);
    zipccl_put_key(gen, "nccl");
    yajl_gen_map_open(gen);
    zipccl_put_integer(gen, "version", (unsigned long long)c->nccl.version);
    put_bool(gen, "fixed_right", c->nccl.fits_right);
    put_bool(gen, "overflow_seen", c->nccl.overflow_seen);
    put_bool(gen, "overflow_right", c->nccl.overflow_right);
    put_gate(gen, &c->nccl.gate);
    yajl_gen_map_close(gen);
    zipccl_put_key(gen, "nvcomp");
    yajl_gen_map_open(gen);
    zipccl_put_number(gen, "version", c->peers.version, c->peers.version > 0);
    zipccl_put_string(gen, "not_measured", c->peers.why);
    put_rows(gen, c->peers.rows, c->peers.nrows);
    yajl_gen_map_close(gen);
}

static zipccl_status write_json(const struct check *c, FILE *out, struct zipccl_error *error)
{
    yajl_gen gen;

    ZIPCCL_TRY(zipccl_json_start("JSON", out, &gen, error));
    yajl_gen_map_open(gen);
    zipccl_put_schema(gen, "zipccl.device_check", 1);
    zipccl_put_string(gen, "kind",
                      ZIPCCL_DEVICE_EMULATED ? "emulated, not run on a GPU" : "measured");
    put_bool(gen, "emulated", ZIPCCL_DEVICE_EMULATED);
    put_bool(gen, "good", is_good(c));
    zipccl_put_string(gen, "device", c->device);
    zipccl_put_integer(gen, "sms", (unsigned long long)c->sms);
    zipccl_put_integer(gen, "cuda_runtime", (unsigned long long)c->runtime);
    zipccl_put_integer(gen, "cuda_driver", (unsigned long long)c->driver);
    put_parts(gen, c);
    put_rows(gen, c->rows, c->nrows);
    yajl_gen_map_close(gen);
    return zipccl_json_end(gen, "JSON", out, error);
}

static zipccl_status run(const struct options *o, struct check *c, struct zipccl_output *output,
                         struct zipccl_error *error)
{
    ZIPCCL_TRY(zipccl_output_check(output, o->json, error));
    if (ZIPCCL_DEVICE_EMULATED)
        puts("EMULATED: kernels, CUDA and NCCL are doubles on this CPU.  NOT RUN ON A GPU: no time "
             "below means anything.");
    ZIPCCL_TRY(look_at_device(c, error));
    if (o->only_peers) {
        run_peers(c, o);
        return ZIPCCL_OK;
    }
    ZIPCCL_TRY(device_conform(o->tiny, (uint32_t)c->sms, &c->conform, error));
    print_conform(&c->conform);
    ZIPCCL_TRY(device_nccl((uint32_t)c->sms, o->tiny ? 20000 : 5000001, &c->nccl, error));
    print_nccl(&c->nccl);
    print_gate(&c->nccl.gate);
    ZIPCCL_TRY(run_speed(c, o->tiny, error));
    run_peers(c, o);
    ZIPCCL_TRY(zipccl_output_open(output, error));
    if (output->file != NULL)
        ZIPCCL_TRY(zipccl_output_told(output, write_json(c, output->file, error), error));
    ZIPCCL_TRY(zipccl_output_close(output, error));
    return zipccl_output_commit(output, error);
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        option_table,
        parse_option,
        "",
        "Look at one GPU: kernels against the scalar row, speed against a copy, NCCL of one rank.",
        NULL,
        NULL,
        NULL};
    static struct check check;
    struct zipccl_output output = {.path = NULL};
    struct options options = {0};
    struct zipccl_error error = {""};
    bool helped;
    int code = zipccl_parse_options(&argp, argc, argv, program, program, &options, &helped);

    if (code != ZIPCCL_EXIT_OK || helped)
        return zipccl_finish_output(program, code);
    if (options.emulated != (bool)ZIPCCL_DEVICE_EMULATED)
        return zipccl_usage_error(program, ZIPCCL_DEVICE_EMULATED
                                               ? "this build is emulated: say --emulated"
                                               : "--emulated: this build is for a GPU");
    if (options.only_peers && options.json != NULL)
        return zipccl_usage_error(program, "--only-peers writes no JSON");
    zipccl_status status = run(&options, &check, &output, &error);

    zipccl_output_discard(&output);
    if (status != ZIPCCL_OK)
        code = zipccl_print_error(program, status, &error);
    else if (!options.only_peers && !is_good(&check))
        code = ZIPCCL_EXIT_FAILED;
    return zipccl_finish_output(program, code);
}
