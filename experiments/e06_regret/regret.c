/*
 * regret.c - the grid of e06: how far the chooser's plans are from the best candidates
 *
 * usage: regret [EVERY] > FILE.csv   one point in EVERY (default 1: all), one line each; progress goes to
 * the error output.  Simulated (T2), nothing is measured.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/regret.h"

#include <stdio.h>
#include <stdlib.h>

#define KI ((size_t)1 << 10)
#define MI ((size_t)1 << 20)

#define LENGTH(a) (sizeof(a) / sizeof *(a))

static const struct shape {
    uint32_t nodes, gpus, nics, channels;
} shapes[] = {{8, 1, 1, 1}, {2, 4, 4, 4}, {4, 2, 1, 1}, {4, 4, 1, 4}};

static const struct link {
    double Bps, alpha_s;
} links[] = {{0.1e9, 30e-6}, {2.5e9, 10e-6}, {25e9, 5e-6}};

/* On CPU cores, and on GPUs. */
static const struct machine {
    double Bps, launch_s, fence_s, nvlink_Bps, nvlink_alpha_s, copy_Bps;
} machines[] = {{4e9, 1e-6, 1e-6, 5e9, 1e-6, 10e9}, {100e9, 5e-6, 10e-6, 200e9, 2e-6, 2000e9}};

static const size_t sizes[] = {16 * KI, 256 * KI, 2 * MI, 16 * MI};
static const double ratios[] = {1.25, 1.5};

enum { MOST_CASES = ZIPCCL_NUM_OPS * LENGTH(sizes) * LENGTH(ratios) };

static struct zipccl_cluster cluster_of(const struct shape *s, const struct link *l,
                                        const struct machine *m)
{
    return (struct zipccl_cluster){.name = "grid",
                                   .gpu_name = "grid",
                                   .nodes = s->nodes,
                                   .gpus_per_node = s->gpus,
                                   .gpu_sms = 100,
                                   .gpu_hbm_Bps = m->copy_Bps,
                                   .gpu_memory_bytes = 80e9,
                                   .gpu_flops = 1e14,
                                   .nvlink_Bps = m->nvlink_Bps,
                                   .nvlink_alpha_s = m->nvlink_alpha_s,
                                   .nics_per_node = s->nics,
                                   .nic_Bps = l->Bps,
                                   .nic_alpha_s = l->alpha_s,
                                   .fabric_oversubscription = 1,
                                   .channels = s->channels,
                                   .encode_Bps = m->Bps,
                                   .decode_Bps = m->Bps,
                                   .ratio_encode_Bps = m->Bps / 10,
                                   .ratio_decode_Bps = m->Bps / 10,
                                   .codec_sms = 30,
                                   .codec_launch_s = m->launch_s,
                                   .fence_s = m->fence_s};
}

/* '*next' counts the points of the grid. */
static uint32_t fill_cases(struct zipccl_regret_case *cases, uint32_t every, uint32_t *next)
{
    uint32_t n = 0;

    for (unsigned op = 0; op < ZIPCCL_NUM_OPS; op++)
        for (unsigned s = 0; s < LENGTH(sizes); s++)
            for (unsigned r = 0; r < LENGTH(ratios); r++)
                if ((*next)++ % every == 0)
                    cases[n++] = (struct zipccl_regret_case){.call = {.op = (enum zipccl_op)op,
                                                                      .dtype = ZIPCCL_BFLOAT16,
                                                                      .redop = ZIPCCL_SUM,
                                                                      .count = sizes[s] / 2,
                                                                      .has_native = true},
                                                             .ratio = ratios[r],
                                                             .ratio_gain = 1.009};
    return n;
}

static void print_plan(const struct zipccl_regret_plan *p)
{
    printf(",%s,%u,%.6f,%.6f", p->name, p->nchunks, 1e3 * p->t0_s, 1e3 * p->t2_s);
}

static void print_row(const struct shape *s, const struct link *l, const struct machine *m,
                      const struct zipccl_regret_case *c, const struct zipccl_regret *r)
{
    printf("%s,%zu,%u,%u,%u,%u,%g,%g,%g", zipccl_op_name(c->call.op), 2 * c->call.count, s->nodes,
           s->gpus, s->nics, s->channels, l->Bps / 1e9, m->Bps / 1e9, c->ratio);
    print_plan(&r->chosen);
    print_plan(&r->best);
    print_plan(&r->raw);
    print_plan(&r->unsplit);
    printf(",%.4f,%u,%u\n", 100 * r->regret, r->ncandidates, r->nrun);
}

int main(int argc, char **argv)
{
    char *end = NULL;
    unsigned long every = argc == 2 ? strtoul(argv[1], &end, 10) : 1;
    uint32_t done = 0, next = 0;
    struct zipccl_regret_case *cases = calloc(MOST_CASES, sizeof(*cases));
    struct zipccl_regret *found = calloc(MOST_CASES, sizeof(*found));
    struct zipccl_error error = {""};

    if (cases == NULL || found == NULL || argc > 2 || every < 1 || every > 1000 ||
        (end != NULL && *end != 0)) {
        fprintf(stderr, "usage: regret [EVERY] > FILE.csv, one point in EVERY, 1 to 1000\n");
        return 2;
    }
    printf("op,bytes,nodes,gpus_per_node,nics_per_node,rings,nic_GBps,codec_GBps,ratio");
    for (unsigned i = 0; i < 4; i++) {
        static const char *const whose[] = {"chosen", "best", "raw", "unsplit"};

        printf(",%s,%s_chunks,%s_t0_ms,%s_t2_ms", whose[i], whose[i], whose[i], whose[i]);
    }
    printf(",regret_percent,candidates,run\n");
    for (unsigned i = 0; i < LENGTH(shapes) * LENGTH(links) * LENGTH(machines); i++) {
        const struct shape *s = &shapes[i % LENGTH(shapes)];
        const struct link *l = &links[i / LENGTH(shapes) % LENGTH(links)];
        const struct machine *m = &machines[i / LENGTH(shapes) / LENGTH(links)];
        struct zipccl_cluster c = cluster_of(s, l, m);
        uint32_t n = fill_cases(cases, (uint32_t)every, &next);

        if (zipccl_regret_measure(&c, cases, n, found, &error) != ZIPCCL_OK) {
            fprintf(stderr, "regret: %s\n", error.text);
            return 1;
        }
        for (uint32_t k = 0; k < n; k++)
            print_row(s, l, m, &cases[k], &found[k]);
        fflush(stdout);
        fprintf(stderr, "%u points\n", done += n);
    }
    free(cases);
    free(found);
    return 0;
}
