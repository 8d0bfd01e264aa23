/*
 * stat_print.c - tensor statistics as a table and as JSON
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/stat.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <yajl/yajl_gen.h>

/* The fitted law in short: "student-t 4.2", "mixture 2.5x 30%". */
static void law_of(const struct zipccl_tensor_stat *stat, char *text, size_t size)
{
    const struct zipccl_exponent_model *m = &stat->fit.model;
    const char *name = zipccl_family_name(m->family);
    if (!stat->fitted)
        snprintf(text, size, "-");
    else if (m->family == ZIPCCL_FAMILY_STUDENT_T)
        snprintf(text, size, "%s %.1f", name, m->nu);
    else if (m->family == ZIPCCL_FAMILY_MIXTURE)
        snprintf(text, size, "%s %.2gx %.0f%%", name, m->sigma2 / m->sigma, 100 * m->share2);
    else
        snprintf(text, size, "%s", name);
}

static void print_row(const struct zipccl_tensor_stat *stat, int width, FILE *out)
{
    fprintf(out, "%-*s %12" PRIu64 " %6s", width, stat->name, stat->n, stat->dtype_name);
    if (!stat->covered) {
        fprintf(out, " %10s %6s %-18s %7s %7s %7s %7s %10.4f %9.4f  not covered\n", "-", "-", "-",
                "-", "-", "-", "-", 1.0, zipccl_stat_measured(stat));
        return;
    }
    char law[64], sigma[16] = "-", distance[16] = "-", lost[16] = "-";
    law_of(stat, law, sizeof law);
    if (stat->fitted) {
        snprintf(sigma, sizeof sigma, "%.3g", stat->sigma);
        snprintf(distance, sizeof distance, "%.4f", stat->fit.distance);
        snprintf(lost, sizeof lost, "%.4f", stat->fit.lost_bits);
    }
    fprintf(out, " %10s %6.3f %-18s %7s %7s %7.4f %7.4f %10.4f %9.4f\n", sigma, stat->zero, law,
            distance, lost, stat->entropy, zipccl_exponent_bound(stat->entropy),
            zipccl_stat_predicted(stat), zipccl_stat_measured(stat));
}

zipccl_status zipccl_stats_print(const struct zipccl_stats *stats, FILE *out,
                                 struct zipccl_error *error)
{
    int width = (int)strlen("tensor");
    for (size_t i = 0; i < stats->ntensors; i++) {
        int length = (int)strlen(stats->tensor[i].name);
        width = length > width ? length : width;
    }
    fprintf(out, "%-*s %12s %6s %10s %6s %-18s %7s %7s %7s %7s %10s %9s\n", width, "tensor", "n",
            "dtype", "sigma", "zeros", "law", "KS", "lost", "entropy", "bound", "predicted",
            "measured");
    for (size_t i = 0; i < stats->ntensors; i++)
        print_row(&stats->tensor[i], width, out);
    struct zipccl_tensor_stat total = zipccl_stats_total(stats);
    fprintf(out, "%-*s %12" PRIu64 " %6s %10s %6s %-18s %7s %7s %7s %7s %10.4f %9.4f\n", width,
            "total", total.n, "", "", "", "", "", "", "", "", zipccl_stat_predicted(&total),
            zipccl_stat_measured(&total));
    fprintf(out,
            "sigma: from the mean exponent of what is not zero; KS, lost: largest difference of "
            "cumulative exponent shares and bits an\nexponent that the fitted law would waste; "
            "entropy: bits an exponent; bound: 16 / (8 + entropy), for independent exponents;\n"
            "predicted, measured: ratio of one message of the codec, headers included, by the law "
            "and by coding it (decoded and compared)\n");
    if (fflush(out) != 0 || ferror(out))
        return zipccl_fail(error, ZIPCCL_ERR_IO, "cannot write the table");
    return ZIPCCL_OK;
}

static void gen_text(yajl_gen gen, const char *text)
{
    yajl_gen_string(gen, (const unsigned char *)text, strlen(text));
}

static void gen_number(yajl_gen gen, const char *key, double value)
{
    gen_text(gen, key);
    if (isfinite(value))
        yajl_gen_double(gen, value);
    else
        yajl_gen_null(gen);
}

static void gen_count(yajl_gen gen, const char *key, uint64_t value)
{
    gen_text(gen, key);
    yajl_gen_integer(gen, (long long)value);
}

static void gen_fit(yajl_gen gen, const struct zipccl_tensor_stat *stat)
{
    const struct zipccl_exponent_fit *fit = &stat->fit;
    const struct zipccl_exponent_model *m = &fit->model;
    gen_number(gen, "sigma", stat->sigma);
    gen_text(gen, "fit");
    yajl_gen_map_open(gen);
    gen_text(gen, "family");
    gen_text(gen, zipccl_family_name(m->family));
    gen_number(gen, "scale", m->sigma);
    if (m->family == ZIPCCL_FAMILY_MIXTURE) {
        gen_number(gen, "scale2", m->sigma2);
        gen_number(gen, "share2", m->share2);
    }
    if (m->family == ZIPCCL_FAMILY_STUDENT_T)
        gen_number(gen, "nu", m->nu);
    gen_number(gen, "aic", fit->aic);
    gen_number(gen, "chi_square", fit->chi_square);
    gen_count(gen, "chi_square_dof", (uint64_t)fit->dof);
    gen_number(gen, "p_value", fit->p_value);
    gen_number(gen, "ks_distance", fit->distance);
    gen_number(gen, "lost_bits_per_exponent", fit->lost_bits);
    yajl_gen_map_close(gen);
}

static void gen_stat(yajl_gen gen, const struct zipccl_tensor_stat *stat, bool total)
{
    yajl_gen_map_open(gen);
    if (!total) {
        gen_text(gen, "name");
        gen_text(gen, stat->name);
        gen_text(gen, "dtype");
        gen_text(gen, stat->dtype_name);
        gen_text(gen, "covered");
        yajl_gen_bool(gen, stat->covered);
    }
    gen_count(gen, "n", stat->n);
    gen_count(gen, "raw_bytes", stat->raw_bytes);
    gen_count(gen, "wire_bytes", stat->wire_bytes);
    if (stat->fitted)
        gen_fit(gen, stat);
    if (stat->covered && !total) {
        gen_number(gen, "zero_share", stat->zero);
        gen_number(gen, "exponent_entropy_bits", stat->entropy);
        gen_number(gen, "ratio_bound", zipccl_exponent_bound(stat->entropy));
        gen_number(gen, "ratio_of_own_shares",
                   stat->raw_bytes ? (double)stat->raw_bytes / stat->shares_bytes : 1);
    }
    gen_number(gen, "ratio_predicted", zipccl_stat_predicted(stat));
    gen_number(gen, "ratio_measured", zipccl_stat_measured(stat));
    yajl_gen_map_close(gen);
}

zipccl_status zipccl_stats_json(const struct zipccl_stats *stats, const char *path, FILE *out,
                                struct zipccl_error *error)
{
    yajl_gen gen = yajl_gen_alloc(NULL);
    if (!gen)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
    yajl_gen_config(gen, yajl_gen_beautify, 1);
    yajl_gen_map_open(gen);
    gen_text(gen, "schema");
    gen_text(gen, "zipccl.codec-stat");
    gen_count(gen, "version", 1);
    gen_text(gen, "file");
    gen_text(gen, path);
    gen_text(gen, "isa");
    gen_text(gen, zipccl_isa_name(zipccl_isa_best()));
    gen_text(gen, "tensors");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < stats->ntensors; i++)
        gen_stat(gen, &stats->tensor[i], false);
    yajl_gen_array_close(gen);
    gen_text(gen, "total");
    struct zipccl_tensor_stat total = zipccl_stats_total(stats);
    gen_stat(gen, &total, true);
    /* One call after an error adds nothing more, so one check at the end is enough. */
    const unsigned char *text;
    size_t length;
    bool ok = yajl_gen_map_close(gen) == yajl_gen_status_ok ||
              yajl_gen_get_buf(gen, &text, &length) == yajl_gen_status_ok;
    ok = ok && yajl_gen_get_buf(gen, &text, &length) == yajl_gen_status_ok &&
         fwrite(text, 1, length, out) == length && fflush(out) == 0;
    yajl_gen_free(gen);
    return ok ? ZIPCCL_OK : zipccl_fail(error, ZIPCCL_ERR_IO, "%s: cannot write JSON", path);
}
