/*
 * generate_print.c - what 'zipccl trace generate' tells of a step it made up
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/trace/generate_print.h"

#include "experiments/trace/generate_set.h"

#include <inttypes.h>
#include <string.h>

/* 1234567 as 1,234,567. */
static const char *grouped(uint64_t n, char out[32])
{
    char digits[24];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, n), k = 0;

    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            out[k++] = ',';
        out[k++] = digits[i];
    }
    out[k] = '\0';
    return out;
}

static void print_memory(const struct zipccl_workload_estimate *e,
                         const struct zipccl_generate_place *place, FILE *out)
{
    fprintf(out,
            "memory   GB of the fullest GPU%s: parameters %.1f, gradients %.1f, optimizer %.1f, "
            "activations %.1f",
            e->stage > 0 ? " (a later stage)" : "", e->parameters / 1e9, e->gradients / 1e9,
            e->optimizer / 1e9, e->activations / 1e9);
    if (e->gathered > 0)
        fprintf(out, ", gathered %.1f", e->gathered / 1e9);
    fprintf(out, "\n         in all %.1f", e->total / 1e9);
    if (place->gpu_memory > 0)
        fprintf(out, " of %.1f: %s", place->gpu_memory / 1e9,
                e->total > place->gpu_memory         ? "DOES NOT FIT"
                : e->total > 0.9 * place->gpu_memory ? "tight"
                                                     : "fits");
    fprintf(out, "; what allocators, NCCL and kernels need besides is not in it\n");
}

void zipccl_generate_print(const struct zipccl_workload *w,
                           const struct zipccl_workload_estimate *e,
                           const struct zipccl_generate_place *place, FILE *out)
{
    struct zipccl_workload_counts n;
    char a[32], b[32];

    zipccl_workload_count(&w->model, &n);
    fprintf(out, "model    %s: %s parameters", w->model.description, grouped(n.total, a));
    if (w->model.experts > 0)
        fprintf(out, ", %s active", grouped(n.active, b));
    fprintf(out, "\n         %s\n", w->model.source);
    fprintf(out, "ranks    %" PRIu64 " = TP %u%s x PP %u x CP %u x DP %u",
            zipccl_workload_nranks(w), w->tp, w->sp ? " with SP" : "", w->pp, w->cp, w->dp);
    if (w->ep > 1)
        fprintf(out, "; EP %u", w->ep);
    if (w->etp > 1)
        fprintf(out, " x ETP %u", w->etp);
    if (w->node_dispatch)
        fprintf(out, ", a token to at most %u nodes", zipccl_workload_nodes_of_token(w));
    fprintf(out, "; %s parameters on a GPU before sharding over DP\n",
            grouped(e->parameters_on_rank, a));
    if (w->kind != ZIPCCL_WORKLOAD_TRAIN)
        return;
    fprintf(out,
            "step     %" PRIu64 " micro-batch%s of %" PRIu64 " x %" PRIu64 " tokens; %s tokens in "
            "all; pipeline bubble %.1f %%\n",
            zipccl_workload_micro_batches(w), zipccl_workload_micro_batches(w) == 1 ? "" : "es",
            w->micro_batch, w->seq, grouped((uint64_t)e->tokens, a), 100 * e->bubble);
    print_memory(e, place, out);
    fprintf(out, "work     %.4g PFLOP of the model a step; %.4g TFLOP on the busiest GPU\n",
            e->model_flops / 1e15, e->rank_flops / 1e12);
}

/* Dense bf16 peaks of datasheets, for MFU; the cluster's gpu.flops is what kernels reach. */
static double peak_of(const struct zipccl_workload *w, const struct zipccl_cluster *cluster)
{
    if (w->peak_flops > 0)
        return w->peak_flops;
    return cluster != NULL ? zipccl_generate_peak(cluster->gpu_name) : 0;
}

static void print_bound(const struct zipccl_workload *w, const struct zipccl_workload_estimate *e,
                        const char *words, double seconds, double peak, FILE *out)
{
    double ranks = (double)zipccl_workload_nranks(w);

    fprintf(out, "%s %.4g s, %.0f tokens/s/GPU", words, seconds, e->tokens / seconds / ranks);
    if (peak > 0)
        fprintf(out, ", MFU %.1f %%", 100 * e->model_flops / seconds / ranks / peak);
    fprintf(out, "\n");
}

void zipccl_generate_print_speed(const struct zipccl_workload *w,
                                 const struct zipccl_workload_estimate *e,
                                 const struct zipccl_workload_summary *summary,
                                 const struct zipccl_generate_place *place, FILE *out)
{
    const struct zipccl_cluster *c = place->cluster;
    double rate = w->peak_flops > 0 ? w->peak_flops * w->mfu : c != NULL ? c->gpu_flops : 0;
    double seconds, sending;

    if (summary != NULL && c != NULL)
        fprintf(out,
                "sends    %.4g GB a rank and step inside nodes, %.4g GB in groups over nodes\n",
                summary->bytes_node / 1e9, summary->bytes_net / 1e9);
    else if (summary != NULL)
        fprintf(out, "sends    %.4g GB a rank and step\n",
                (summary->bytes_node + summary->bytes_net) / 1e9);
    if (rate <= 0 || w->kind != ZIPCCL_WORKLOAD_TRAIN)
        return;
    seconds = e->rank_flops / rate * (1 + e->bubble);
    print_bound(w, e, "speed    with all communication hidden:", seconds, peak_of(w, c), out);
    if (summary == NULL || c == NULL)
        return;
    sending = summary->bytes_node / c->nvlink_Bps +
              summary->bytes_net / (c->nic_Bps * c->nics_per_node / c->gpus_per_node);
    print_bound(w, e, "         with none hidden:             ", seconds + sending, peak_of(w, c),
                out);
    fprintf(out, "         bounds by formula; 'zipccl replay' tells where between them\n");
}

zipccl_status zipccl_generate_list(const char *folder, FILE *out, struct zipccl_error *error)
{
    zipccl_status status = ZIPCCL_OK;
    char **names, a[32], b[32];
    size_t n;

    ZIPCCL_TRY(zipccl_cluster_names(folder, &names, &n, error));
    fprintf(out, "%-17s %18s %18s  %s\n", "model", "parameters", "active", "source");
    for (size_t i = 0; status == ZIPCCL_OK && i < n; i++) {
        struct zipccl_workload_model model;
        struct zipccl_workload_counts counts;

        status = zipccl_workload_model_open(names[i], folder, &model, error);
        if (status != ZIPCCL_OK)
            break;
        zipccl_workload_count(&model, &counts);
        fprintf(out, "%-17s %18s %18s  %s\n", names[i], grouped(counts.total, a),
                grouped(counts.active, b), model.source);
    }
    zipccl_cluster_names_free(names, n);
    return status;
}
