/*
 * stat_print.c - tensor statistics as a table and as JSON
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/stat.h"

#include "core/codec/layout.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
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

/* The modes by how many superblocks took them: "22123 x6, 323". */
static void modes_of(const struct zipccl_tensor_stat *stat, char *text, size_t size)
{
    uint64_t left[ZIPCCL_NUM_MODES];
    size_t used = 0;
    memcpy(left, stat->modes, sizeof left);
    text[0] = '\0';
    for (;;) {
        char name[24];
        int most = 0;
        for (int k = 0; k < ZIPCCL_NUM_MODES; k++)
            most = left[k] > left[most] ? k : most;
        if (left[most] == 0 || used + 48 > size)
            return;
        zipccl_mode_name(most, name);
        used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "; " : "", name);
        if (left[most] > 1)
            used += (size_t)snprintf(text + used, size - used, " x%" PRIu64, left[most]);
        left[most] = 0;
    }
}

/*
 * Whether a terminal may obey the character at 's' instead of showing it: controls, marks of
 * direction, breaks, what has no width.  Sets '*nbytes' to its bytes, to 1 if not.
 */
static bool obeyed(const unsigned char *s, size_t *nbytes)
{
    /* The names of a file are valid UTF-8; 's' ends with a NUL, which is no continuation. */
    *nbytes = 1;
    if (s[0] < 0x20 || s[0] == 0x7f)
        return true;
    if ((s[0] == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0) || (s[0] == 0xd8 && s[1] == 0x9c)) {
        *nbytes = 2; /* U+0080 to U+009F, U+061C */
        return true;
    }
    unsigned last = s[0] == 0xe2 && (s[1] == 0x80 || s[1] == 0x81) ? s[2] : 0;
    bool mark = s[1] == 0x80 ? (last >= 0x8b && last <= 0x8f) || (last >= 0xa8 && last <= 0xae)
                             : last >= 0xa0 && last <= 0xaf;
    if (s[0] == 0xef && s[1] == 0xbb && s[2] == 0xbf)
        mark = true; /* U+FEFF */
    if (mark)
        *nbytes = 3; /* U+200B to U+200F, U+2028 to U+202E, U+2060 to U+206F */
    return mark;
}

/* A copy of 'name' for one line of a table, with '?' for what a terminal obeys; NULL: no memory. */
static char *shown(const char *name)
{
    char *copy = malloc(strlen(name) + 1), *to = copy;
    for (size_t nbytes; copy && *name != '\0'; name += nbytes)
        *to++ = obeyed((const unsigned char *)name, &nbytes) ? '?' : *name;
    if (copy)
        *to = '\0';
    return copy;
}

static void print_row(const struct zipccl_tensor_stat *stat, const char *name, int width, FILE *out)
{
    char law[64] = "-", sigma[16] = "-", lost[16] = "-", zero[16] = "-", entropy[16] = "-";
    char predicted[16] = "-", worst[16] = "-", modes[512];
    if (stat->fitted) {
        law_of(stat, law, sizeof law);
        snprintf(sigma, sizeof sigma, "%.3g", stat->sigma);
        snprintf(lost, sizeof lost, "%.4f", stat->fit.lost_bits);
    }
    if (stat->covered && stat->name) {
        snprintf(zero, sizeof zero, "%.3f", stat->zero);
        snprintf(entropy, sizeof entropy, "%.4f", stat->entropy);
    }
    if (stat->predicted)
        snprintf(predicted, sizeof predicted, "%.4f", zipccl_stat_predicted(stat));
    if (stat->worst.tensor)
        snprintf(worst, sizeof worst, "%.4f", stat->worst.ratio);
    modes_of(stat, modes, sizeof modes);
    fprintf(out, "%-*s %12" PRIu64 " %6s %9s %6s %-18s %7s %7s %8.4f %8.4f %9s %8.4f %8s  %s\n",
            width, name, stat->n, stat->dtype_name, sigma, zero, law, lost, entropy,
            zipccl_stat_bound(stat), zipccl_stat_huffman(stat), predicted, zipccl_stat_ratio(stat),
            worst, stat->covered ? modes : "not covered");
}

static void print_legend(FILE *out)
{
    fprintf(out,
            "sigma: from the mean exponent of what is not zero; lost: bits an exponent that the "
            "fitted law would waste; entropy: bits an exponent\n"
            "bound, Huffman: ratio if the tensor's exponents took their entropy, or Huffman's code "
            "with its table for nothing (bf16: 16 / (8 + entropy))\n"
            "predicted, ratio: of one message, headers included, by the law (bf16) and by coding "
            "it (decoded and compared); worst: its worst block\n"
            "modes: tier programs of core/FORMAT.md and how many blocks of %u elements took them\n",
            ZIPCCL_SUPERBLOCK);
}

/* 'name' [ntensors + 1] as shown: of the tensors, and of the one with the worst block. */
static void print_table(const struct zipccl_stats *stats, const struct zipccl_tensor_stat *total,
                        char *const *name, FILE *out)
{
    int width = (int)strlen("tensor");
    for (size_t i = 0; i < stats->ntensors; i++) {
        int length = (int)strlen(name[i]);
        width = length > width ? length : width;
    }
    fprintf(out, "%-*s %12s %6s %9s %6s %-18s %7s %7s %8s %8s %9s %8s %8s  %s\n", width, "tensor",
            "n", "dtype", "sigma", "zeros", "law", "lost", "entropy", "bound", "Huffman",
            "predicted", "ratio", "worst", "modes");
    for (size_t i = 0; i < stats->ntensors; i++)
        print_row(&stats->tensor[i], name[i], width, out);
    print_row(total, "total", width, out);
    if (total->worst.tensor)
        fprintf(out, "worst block: %s, %u elements from %" PRIu64 " on: %.4f\n",
                name[stats->ntensors], ZIPCCL_SUPERBLOCK, total->worst.first, total->worst.ratio);
    print_legend(out);
}

zipccl_status zipccl_stats_print(const struct zipccl_stats *stats, FILE *out,
                                 struct zipccl_error *error)
{
    struct zipccl_tensor_stat total = zipccl_stats_total(stats);
    char **name = calloc(stats->ntensors + 1, sizeof *name);
    bool ok = name != NULL;
    for (size_t i = 0; i < stats->ntensors && ok; i++)
        ok = (name[i] = shown(stats->tensor[i].name)) != NULL;
    if (ok)
        ok = (name[stats->ntensors] = shown(total.worst.tensor ? total.worst.tensor : "")) != NULL;
    if (ok)
        print_table(stats, &total, name, out);
    for (size_t i = 0; i <= stats->ntensors && name; i++)
        free(name[i]);
    free(name);
    if (!ok)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
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

static void gen_modes(yajl_gen gen, const struct zipccl_tensor_stat *stat)
{
    gen_text(gen, "modes");
    yajl_gen_map_open(gen);
    for (int k = 0; k < ZIPCCL_NUM_MODES; k++)
        if (stat->modes[k]) {
            char name[24];
            zipccl_mode_name(k, name);
            gen_count(gen, name, stat->modes[k]);
        }
    yajl_gen_map_close(gen);
    gen_text(gen, "worst_block");
    if (!stat->worst.tensor) {
        yajl_gen_null(gen);
        return;
    }
    yajl_gen_map_open(gen);
    gen_text(gen, "tensor");
    gen_text(gen, stat->worst.tensor);
    gen_count(gen, "first_element", stat->worst.first);
    gen_number(gen, "ratio", stat->worst.ratio);
    yajl_gen_map_close(gen);
}

static void gen_stat(yajl_gen gen, const struct zipccl_tensor_stat *stat, bool total)
{
    yajl_gen_map_open(gen);
    gen_text(gen, "name");
    gen_text(gen, total ? "total" : stat->name);
    gen_text(gen, "dtype");
    gen_text(gen, total ? "all" : stat->dtype_name);
    gen_text(gen, "covered");
    yajl_gen_bool(gen, stat->covered);
    gen_count(gen, "n", stat->n);
    gen_count(gen, "raw_bytes", stat->raw_bytes);
    gen_count(gen, "wire_bytes", stat->wire_bytes);
    gen_number(gen, "ratio", zipccl_stat_ratio(stat));
    gen_number(gen, "bound_ratio", zipccl_stat_bound(stat));
    gen_number(gen, "huffman_ratio", zipccl_stat_huffman(stat));
    gen_number(gen, "predicted_ratio", stat->predicted ? zipccl_stat_predicted(stat) : NAN);
    gen_modes(gen, stat);
    if (stat->fitted)
        gen_fit(gen, stat);
    if (stat->covered && !total) {
        gen_number(gen, "zero_share", stat->zero);
        gen_number(gen, "exponent_entropy_bits", stat->entropy);
        gen_number(gen, "own_shares_ratio",
                   !stat->predicted  ? NAN
                   : stat->raw_bytes ? (double)stat->raw_bytes / stat->shares_bytes
                                     : 1);
    }
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
    gen_count(gen, "version", 2);
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
