/*
 * perf_values.c - values of perf's options: sizes, numbers, names and lists of them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/perf/perf_values.h"

#include "experiments/program/program.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

int zipccl_perf_size(const char *program, const char *option, const char *text, uint64_t *out)
{
    static const char units[] = "KMG";
    char *end;

    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    bool fine = is_digit(text[0]) && errno == 0 && value <= ZIPCCL_PERF_MAX_BYTES;
    const char *unit = *end != '\0' ? strchr(units, *end & ~0x20) : NULL;
    for (const char *u = units; unit != NULL && u <= unit && fine; u++) {
        value *= 1024;
        fine = value <= ZIPCCL_PERF_MAX_BYTES;
    }
    if (!fine || value == 0 || (*end != '\0' && (unit == NULL || end[1] != '\0'))) {
        zipccl_usage_error(program,
                           "perf: %s '%s': expected a size from 1 to 256G, such as 8, 64K or 32M",
                           option, text);
        return -1;
    }
    *out = value;
    return 0;
}

int zipccl_perf_number(const char *program, const char *option, const char *text, uint32_t least,
                       uint32_t most, uint32_t *out)
{
    char *end;

    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (!is_digit(text[0]) || *end != '\0' || errno != 0 || value < least || value > most) {
        zipccl_usage_error(program, "perf: %s '%s': expected a number from %u to %u", option, text,
                           least, most);
        return -1;
    }
    *out = (uint32_t)value;
    return 0;
}

int zipccl_perf_switch(const char *program, const char *option, const char *text, bool *out)
{
    if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0) {
        zipccl_usage_error(program, "perf: %s '%s': expected 0 or 1", option, text);
        return -1;
    }
    *out = text[0] == '1';
    return 0;
}

/* The name of 'names' that is meant, else -1 after an error with what was expected. */
static int pick(const char *program, const char *option, const char *text, const char *const *names,
                const char *expected)
{
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(text, names[i]) == 0)
            return i;
    const char *nearest = zipccl_nearest_name(text, names);
    zipccl_usage_error(program, "perf: %s '%s': expected %s%s%s%s", option, text, expected,
                       nearest != NULL ? "; did you mean '" : "", nearest != NULL ? nearest : "",
                       nearest != NULL ? "'?" : "");
    return -1;
}

int zipccl_perf_dtypes(const char *program, const char *text, struct zipccl_perf_options *out)
{
    enum zipccl_dtype dtype;

    out->ndtypes = 0;
    if (strcmp(text, "all") == 0) {
        for (int d = 0; d < ZIPCCL_NUM_DTYPES; d++)
            out->dtypes[out->ndtypes++] = (enum zipccl_dtype)d;
        return 0;
    }
    if (!zipccl_dtype_parse(text, &dtype)) {
        zipccl_usage_error(program,
                           "perf: -d '%s': expected int8, uint8, int32, uint32, int64, uint64, "
                           "half, float, double, bfloat16, fp8_e4m3, fp8_e5m2 or all",
                           text);
        return -1;
    }
    out->dtypes[out->ndtypes++] = dtype;
    return 0;
}

int zipccl_perf_redops(const char *program, const char *text, struct zipccl_perf_options *out)
{
    enum zipccl_redop redop;

    out->nredops = 0;
    if (strcmp(text, "all") == 0) {
        for (int r = 0; r < ZIPCCL_NUM_REDOPS; r++)
            out->redops[out->nredops++] = (enum zipccl_redop)r;
        return 0;
    }
    if (strcmp(text, "mulsum") == 0) {
        zipccl_usage_error(program, "perf: -o mulsum is not offered: zipccl has no pre-multiplied "
                                    "sum");
        return -1;
    }
    if (!zipccl_redop_parse(text, &redop)) {
        zipccl_usage_error(program, "perf: -o '%s': expected sum, prod, min, max, avg or all",
                           text);
        return -1;
    }
    out->redops[out->nredops++] = redop;
    return 0;
}

int zipccl_perf_root(const char *program, const char *text, struct zipccl_perf_options *out)
{
    out->all_roots = strcmp(text, "all") == 0;
    return out->all_roots ? 0 : zipccl_perf_number(program, "-r", text, 0, 65535, &out->root);
}

/* "all", or modes with commas between them. */
int zipccl_perf_modes(const char *program, const char *text, struct zipccl_perf_options *out)
{
    static const char *const names[] = {"raw", "native", "compressed", "adaptive", "all", NULL};
    char word[16];

    for (const char *p = text;; p++) {
        size_t length = strcspn(p, ",");
        int mode;

        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1),
                 p);
        mode = pick(program, "--mode", word, names,
                    "raw, native, compressed, adaptive, several of them with commas, or all");
        if (mode < 0)
            return -1;
        for (int m = 0; m < ZIPCCL_NUM_PERF_MODES; m++)
            out->modes[m] = out->modes[m] || m == mode || mode == ZIPCCL_NUM_PERF_MODES;
        p += length;
        if (*p == '\0')
            return 0;
    }
}

int zipccl_perf_on(const char *program, const char *text, struct zipccl_perf_options *out)
{
    static const char *const names[] = {"auto", "threads", "mpi", "sim", "nccl", NULL};
    int on = pick(program, "--on", text, names, "threads, mpi, nccl or sim");

    if (on < 0)
        return -1;
    out->on = (enum zipccl_perf_on)on;
    return 0;
}

/* "FILE.safetensors" or "FILE.safetensors:TENSOR". */
static int set_file(const char *program, const char *text, struct zipccl_perf_options *out)
{
    static const char suffix[] = ".safetensors";
    const char *end = NULL;

    for (const char *p = strstr(text, suffix); p != NULL; p = strstr(p + 1, suffix))
        if (p > text && (p[strlen(suffix)] == '\0' || p[strlen(suffix)] == ':'))
            end = p + strlen(suffix);
    if (end == NULL) {
        zipccl_usage_error(program,
                           "perf: --input '%s': expected gauss, mixture, FILE.safetensors or "
                           "FILE.safetensors:TENSOR",
                           text);
        return -1;
    }
    if ((size_t)(end - text) >= sizeof out->input_path ||
        (*end == ':' && strlen(end + 1) >= sizeof out->tensor)) {
        zipccl_usage_error(program, "perf: --input: the path or the tensor's name is too long");
        return -1;
    }
    if (*end == ':' && end[1] == '\0') {
        zipccl_usage_error(program, "perf: --input '%s': no tensor after the colon", text);
        return -1;
    }
    out->data = ZIPCCL_DATA_FILE;
    memcpy(out->input_path, text, (size_t)(end - text));
    out->input_path[end - text] = '\0';
    snprintf(out->tensor, sizeof out->tensor, "%s", *end == ':' ? end + 1 : "");
    return 0;
}

int zipccl_perf_input(const char *program, const char *text, struct zipccl_perf_options *out)
{
    out->input = text;
    if (strcmp(text, "gauss") == 0)
        out->data = ZIPCCL_DATA_GAUSS;
    else if (strcmp(text, "mixture") == 0)
        out->data = ZIPCCL_DATA_MIXTURE;
    else
        return set_file(program, text, out);
    return 0;
}

int zipccl_perf_tier(const char *program, const char *text, struct zipccl_perf_options *out)
{
    if ((text[0] != 't' && text[0] != 'T') || text[1] < '0' || text[1] > '2' || text[2] != '\0') {
        zipccl_usage_error(program, "perf: --tier '%s': expected t0, t1 or t2", text);
        return -1;
    }
    out->tier = (unsigned)(text[1] - '0');
    return 0;
}

int zipccl_perf_ratio_value(const char *program, const char *text, struct zipccl_perf_options *out)
{
    char *end;
    double value = strtod(text, &end);

    if (!is_digit(text[0]) || *end != '\0' || strpbrk(text, "xX") != NULL || !(value >= 1) ||
        !(value <= 2)) {
        zipccl_usage_error(program, "perf: --ratio '%s': expected a number from 1 to 2", text);
        return -1;
    }
    out->ratio = value;
    return 0;
}

int zipccl_perf_effort(const char *program, const char *text, struct zipccl_perf_options *out)
{
    static const char *const names[] = {"fast", "ratio", NULL};
    int effort = pick(program, "--effort", text, names, "fast or ratio");

    if (effort < 0)
        return -1;
    out->effort = (enum zipccl_effort)effort;
    return 0;
}

int zipccl_perf_class(const char *program, const char *text, struct zipccl_perf_options *out)
{
    out->capacity_class = ZIPCCL_CLASS_LEARN;
    if (strcmp(text, "learn") == 0)
        return 0;
    for (int c = 0; c < ZIPCCL_NUM_CLASSES; c++)
        if (strcmp(text, zipccl_class_name(c)) == 0) {
            out->capacity_class = (uint32_t)c;
            return 0;
        }
    zipccl_usage_error(
        program,
        "perf: --class '%s': expected learn, wide, loose, medium, tight or settled, or one after "
        "those, as in tight-1",
        text);
    return -1;
}

int zipccl_perf_gate(const char *program, const char *text, struct zipccl_perf_options *out)
{
    out->gate = zipccl_gate_mode_find(text);
    /* No call of perf is captured. */
    if (out->gate == ZIPCCL_GATE_OFF || out->gate == ZIPCCL_GATE_ALL)
        return 0;
    zipccl_usage_error(program, "perf: --gate '%s': expected off or all", text);
    return -1;
}

int zipccl_perf_strategy(const char *program, const char *text, struct zipccl_perf_options *out)
{
    const char *names[64];
    size_t n = 0, length = 0;
    char list[400] = "";

    for (; zipccl_strategies[n] != NULL && n + 1 < sizeof names / sizeof *names; n++)
        names[n] = zipccl_strategies[n]->name;
    names[n] = NULL;
    out->strategy = text;
    if (zipccl_strategy_find(text) != NULL)
        return 0;
    for (size_t i = 0; i < n && length + 40 < sizeof list; i++)
        length += (size_t)snprintf(list + length, sizeof list - length, "%s%s", i > 0 ? ", " : "",
                                   names[i]);
    zipccl_usage_error(program, "perf: --strategy '%s': expected one of %s", text, list);
    return -1;
}

/* "AND 0x7", "%4", "DIV8" as nccl-tests takes them. */
static int set_split(const char *program, const char *text, struct zipccl_perf_options *out)
{
    static const struct {
        const char *name;
        enum zipccl_perf_split split;
    } operators[] = {{"AND", ZIPCCL_SPLIT_AND}, {"OR", ZIPCCL_SPLIT_OR}, {"MOD", ZIPCCL_SPLIT_MOD},
                     {"DIV", ZIPCCL_SPLIT_DIV}, {"&", ZIPCCL_SPLIT_AND}, {"|", ZIPCCL_SPLIT_OR},
                     {"%", ZIPCCL_SPLIT_MOD},   {"/", ZIPCCL_SPLIT_DIV}};
    char *end = NULL;
    unsigned long value = 0;

    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        size_t length = strlen(operators[i].name);

        if (strncasecmp(text, operators[i].name, length) != 0)
            continue;
        errno = 0;
        value = strtoul(text + length, &end, 0);
        if (end == text + length || *end != '\0' || errno != 0 || value > UINT32_MAX ||
            (value == 0 && i % 4 >= 2))
            break;
        out->split = operators[i].split;
        out->split_by = (uint32_t)value;
        return 0;
    }
    zipccl_usage_error(program,
                       "perf: NCCL_TESTS_SPLIT '%s': expected AND, OR, MOD or DIV and a number, "
                       "such as \"MOD 2\" or \"AND 0x7\"",
                       text);
    return -1;
}

static int set_split_mask(const char *program, const char *text, struct zipccl_perf_options *out)
{
    char *end;

    errno = 0;
    unsigned long value = strtoul(text, &end, 16);
    if (!isxdigit((unsigned char)text[0]) || *end != '\0' || errno != 0 || value > UINT32_MAX) {
        zipccl_usage_error(program,
                           "perf: NCCL_TESTS_SPLIT_MASK '%s': expected a hexadecimal number", text);
        return -1;
    }
    out->split = ZIPCCL_SPLIT_AND;
    out->split_by = (uint32_t)value;
    return 0;
}

int zipccl_perf_environment(const char *program, struct zipccl_perf_options *out)
{
    const char *text = getenv("NCCL_TESTS_MIN_BW");
    char *end;

    if (text != NULL) {
        out->min_bw = strtod(text, &end);
        if (end == text || *end != '\0' || !(out->min_bw >= 0) || out->min_bw > 1e9) {
            zipccl_usage_error(program, "perf: NCCL_TESTS_MIN_BW '%s': expected GB/s", text);
            return -1;
        }
    }
    if (getenv("NCCL_TESTS_DEVICE") != NULL) {
        zipccl_usage_error(program, "perf: NCCL_TESTS_DEVICE is set, but ranks run on CPUs and "
                                    "have no device");
        return -1;
    }
    text = getenv("NCCL_TESTS_SPLIT_MASK");
    if (text != NULL)
        return set_split_mask(program, text, out);
    text = getenv("NCCL_TESTS_SPLIT");
    return text != NULL ? set_split(program, text, out) : 0;
}
