/*
 * generate_set.c - how a made-up step is run, set by the names that options have
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/trace/generate_set.h"

#include "models/units.h"

#include <inttypes.h>
#include <string.h>

const char *const zipccl_generate_names[] = {
    "tp",           "sp",        "pp",         "vpp",          "dp",       "cp",
    "ep",           "etp",       "sharding",   "shard",        "seq",      "micro-batch",
    "global-batch", "bucket",    "grad-dtype", "fp8-dispatch", "dispatch", "imbalance",
    "recompute",    "attention", "overlap",    "peak",         "mfu",      NULL};

/* One of 'words' (NULL ends them). */
static zipccl_status choose(const char *text, const char *const *words, int *out,
                            struct zipccl_error *error)
{
    char list[128] = "";
    size_t n = 0;

    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], text) == 0) {
            *out = i;
            return ZIPCCL_OK;
        }
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i > 0 ? ", " : "", words[i]);
    }
    return zipccl_fail(error, ZIPCCL_ERR_INPUT, "'%.60s': expected one of %s", text, list);
}

/* A list, "grad,p2p". */
static zipccl_status set_overlap(const char *list, struct zipccl_workload *w,
                                 struct zipccl_error *error)
{
    static const char *const words[] = {"grad", "param", "p2p",  "shared",
                                        "tp",   "a2a",   "none", NULL};
    bool on[7] = {false};

    for (size_t n; *list != '\0'; list += n + (list[n] == ',')) {
        char word[64];
        int which;

        n = strcspn(list, ",");
        snprintf(word, sizeof word, "%.*s", n < 60 ? (int)n : 60, list);
        if (n > 0)
            ZIPCCL_TRY(choose(word, words, &which, error));
        if (n > 0)
            on[which] = true;
    }
    w->overlap_grad = on[0];
    w->overlap_param = on[1];
    w->overlap_p2p = on[2];
    w->overlap_shared = on[3];
    w->overlap_tp = on[4];
    w->overlap_a2a = on[5];
    return ZIPCCL_OK;
}

/* What counts something; '*found' if 'name' does. */
static zipccl_status set_count(struct zipccl_workload *w, const char *name, const char *text,
                               bool *found, struct zipccl_error *error)
{
    const struct {
        const char *name;
        uint32_t *u32;
        uint64_t *u64;
        double max;
    } table[] = {
        {"tp", &w->tp, NULL, 1 << 20},
        {"pp", &w->pp, NULL, 1 << 20},
        {"dp", &w->dp, NULL, 1 << 20},
        {"cp", &w->cp, NULL, 1 << 20},
        {"ep", &w->ep, NULL, 1 << 20},
        {"etp", &w->etp, NULL, 1 << 20},
        {"shard", &w->shard, NULL, 1 << 20},
        {"vpp", &w->vpp, NULL, 1 << 20},
        {"seq", NULL, &w->seq, 1 << 26},
        {"micro-batch", NULL, &w->micro_batch, 1 << 20},
        {"global-batch", NULL, &w->global_batch, 1 << 30},
        {"bucket", NULL, &w->bucket, 1e12},
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        double value = 0;

        if (strcmp(table[i].name, name) != 0)
            continue;
        *found = true;
        ZIPCCL_TRY(zipccl_parse_quantity(text, ZIPCCL_UNIT_COUNT, 1, table[i].max, &value, error));
        if (table[i].u32 != NULL)
            *table[i].u32 = (uint32_t)value;
        else
            *table[i].u64 = (uint64_t)value;
    }
    return ZIPCCL_OK;
}

/* What is one of several words; '*found' if 'name' is. */
static zipccl_status set_word(struct zipccl_workload *w, const char *name, const char *text,
                              bool *found, struct zipccl_error *error)
{
    static const char *const choices[][7] = {
        {"ddp", "zero1", "zero2", "fsdp", "zero3", "fsdp-noreshard", NULL},
        {"none", "selective", "full", NULL},
        {"fused", "plain", NULL},
        {"bf16", "fp32", NULL},
        {"rank", "node", NULL},
        {"false", "true", NULL},
        {"false", "true", NULL},
    };
    static const char *const names[] = {"sharding", "recompute", "attention",    "grad-dtype",
                                        "dispatch", "sp",        "fp8-dispatch", NULL};
    static const enum zipccl_workload_sharding shardings[] = {
        ZIPCCL_SHARD_DDP,  ZIPCCL_SHARD_ZERO1, ZIPCCL_SHARD_ZERO2,
        ZIPCCL_SHARD_FSDP, ZIPCCL_SHARD_FSDP,  ZIPCCL_SHARD_NORESHARD};
    int which = 0, i = 0;

    while (names[which] != NULL && strcmp(names[which], name) != 0)
        which++;
    if (names[which] == NULL)
        return ZIPCCL_OK;
    *found = true;
    ZIPCCL_TRY(choose(text, choices[which], &i, error));
    switch (which) {
    case 0: w->sharding = shardings[i]; break;
    case 1: w->recompute = (enum zipccl_workload_recompute)i; break;
    case 2: w->plain_attention = i == 1; break;
    case 3: w->fp32_reduce = i == 1; break;
    case 4: w->node_dispatch = i == 1; break;
    case 5: w->sp = i == 1; break;
    default: w->fp8_dispatch = i == 1; break;
    }
    return ZIPCCL_OK;
}

zipccl_status zipccl_generate_set(struct zipccl_workload *w, const char *name, const char *text,
                                  struct zipccl_error *error)
{
    bool found = false;

    ZIPCCL_TRY(set_count(w, name, text, &found, error));
    if (!found)
        ZIPCCL_TRY(set_word(w, name, text, &found, error));
    if (found)
        return ZIPCCL_OK;
    if (strcmp(name, "overlap") == 0)
        return set_overlap(text, w, error);
    if (strcmp(name, "imbalance") == 0)
        return zipccl_parse_quantity(text, ZIPCCL_UNIT_NONE, 1, 1 << 20, &w->imbalance, error);
    if (strcmp(name, "peak") == 0)
        return zipccl_parse_quantity(text, ZIPCCL_UNIT_FLOPS, 1e9, 1e18, &w->peak_flops, error);
    if (strcmp(name, "mfu") == 0)
        return zipccl_parse_quantity(text, ZIPCCL_UNIT_NONE, 0.001, 1, &w->mfu, error);
    return zipccl_fail(error, ZIPCCL_ERR_ARG, "no option is named %.60s", name);
}

zipccl_status zipccl_generate_fill(struct zipccl_workload *w, uint64_t gpus,
                                   struct zipccl_error *error)
{
    uint64_t rest = (uint64_t)w->tp * w->pp * w->cp;

    if (gpus > 0 && (gpus < rest || gpus % rest != 0))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "--gpus %" PRIu64 " is no multiple of tp x pp x cp = %" PRIu64, gpus,
                           rest);
    if (gpus > 0)
        w->dp = (uint32_t)(gpus / rest);
    if (w->global_batch == 0)
        w->global_batch = w->micro_batch * w->dp * (w->pp > 1 ? 4 * w->pp : 1);
    if ((w->peak_flops > 0) != (w->mfu > 0))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "--peak and --mfu go together");
    return ZIPCCL_OK;
}

double zipccl_generate_peak(const char *gpu_name)
{
    static const struct {
        const char *name;
        double flops;
    } peaks[] = {{"A100", 312e12}, {"A800", 312e12}, {"H100", 989e12},  {"H800", 989e12},
                 {"H200", 989e12}, {"H20", 148e12},  {"B200", 2250e12}, {"MI300X", 1307e12}};

    for (size_t i = 0; i < sizeof peaks / sizeof *peaks; i++)
        if (strncmp(gpu_name, peaks[i].name, strlen(peaks[i].name)) == 0)
            return peaks[i].flops;
    return 0;
}
