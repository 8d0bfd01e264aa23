/*
 * units.c - the one strict parser of numbers with units
 *
 * It accepts less than strtod() on purpose: what it does not know it names.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/units.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NUMBER 64

struct unit {
    const char *name;
    double factor;
};

static const struct unit units_none[] = {{NULL, 0}};
static const struct unit units_rate[] = {{"kBps", 1e3},    {"MBps", 1e6},     {"GBps", 1e9},
                                         {"TBps", 1e12},   {"kbps", 125},     {"Mbps", 125e3},
                                         {"Gbps", 1.25e8}, {"Tbps", 1.25e11}, {NULL, 0}};
static const struct unit units_time[] = {
    {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {NULL, 0}};
static const struct unit units_bytes[] = {
    {"B", 1},         {"kB", 1e3},           {"MB", 1e6},
    {"GB", 1e9},      {"TB", 1e12},          {"KiB", 1024},
    {"MiB", 1048576}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0},
    {NULL, 0}};
static const struct unit units_flops[] = {
    {"GFLOPS", 1e9}, {"TFLOPS", 1e12}, {"PFLOPS", 1e15}, {NULL, 0}};

static const struct kind {
    const struct unit *units;
    const char *expected;
} kinds[] = {
    [ZIPCCL_UNIT_NONE] = {units_none, "a plain number, for example 0.5"},
    [ZIPCCL_UNIT_COUNT] = {units_none, "a whole number, for example 8"},
    [ZIPCCL_UNIT_RATE] = {units_rate, "a rate, for example 200Gbps or 24.2GBps"},
    [ZIPCCL_UNIT_TIME] = {units_time, "a time, for example 5us"},
    [ZIPCCL_UNIT_BYTES] = {units_bytes, "a size, for example 80GB or 64KiB"},
    [ZIPCCL_UNIT_FLOPS] = {units_flops, "a speed, for example 312TFLOPS"},
};

static size_t digits(const char *p)
{
    return strspn(p, "0123456789");
}

/* Length of the decimal number at 'p', 0 if there is none: [-]D[.D][e[+-]D], no leading zeros. */
static size_t number_length(const char *p)
{
    size_t i = p[0] == '-' ? 1 : 0, n = digits(p + i);

    if (n == 0 || (n > 1 && p[i] == '0'))
        return 0;
    i += n;
    if (p[i] == '.') {
        n = digits(p + i + 1);
        if (n == 0)
            return 0;
        i += 1 + n;
    }
    if (p[i] == 'e' || p[i] == 'E') {
        size_t sign = p[i + 1] == '-' || p[i + 1] == '+';

        n = digits(p + i + 1 + sign);
        if (n == 0)
            return 0;
        i += 1 + sign + n;
    }
    return i;
}

/* Decimal point independent of the locale: the integer, fraction and exponent are put together. */
static double number_value(const char *p, size_t length)
{
    char copy[MAX_NUMBER + 1];
    char *point, *end;
    double x;

    memcpy(copy, p, length);
    copy[length] = 0;
    x = strtod(copy, &end);
    if (*end == 0)
        return x;
    /* A locale with a decimal comma stopped at the point. */
    point = strchr(copy, '.');
    if (point != NULL) {
        *point = ',';
        x = strtod(copy, &end);
        if (*end == 0)
            return x;
    }
    return NAN;
}

static zipccl_status list_units(const char *text, const char *found, const struct kind *kind,
                                struct zipccl_error *error)
{
    char list[128] = "";

    if (kind->units[0].name == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "\"%.60s\": found a unit \"%.20s\", expected %s", text, found,
                           kind->expected);
    for (const struct unit *u = kind->units; u->name != NULL; u++) {
        size_t n = strlen(list);

        snprintf(list + n, sizeof(list) - n, "%s%s", n ? " " : "", u->name);
    }
    if (*found == 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "\"%.60s\": the unit is missing, expected %s (units: %s)", text,
                           kind->expected, list);
    return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                       "\"%.60s\": found the unit \"%.20s\", expected %s (units: %s)", text, found,
                       kind->expected, list);
}

/* Write 'x' in the largest decimal unit that leaves it 1 or more, as a person would: "1MBps". */
static void put_quantity(double x, const struct kind *kind, char *out, size_t size)
{
    const struct unit *best = &kind->units[0];

    for (const struct unit *u = kind->units; u->name != NULL; u++) {
        bool decimal = strstr(u->name, "bps") == NULL && strstr(u->name, "iB") == NULL;

        if (decimal && x >= u->factor && (x < best->factor || u->factor > best->factor))
            best = u;
    }
    if (best->name == NULL)
        snprintf(out, size, "%.15g", x);
    else
        snprintf(out, size, "%.6g%s", x / best->factor, best->name);
}

static zipccl_status out_of_range(const char *text, const struct kind *kind, double min, double max,
                                  struct zipccl_error *error)
{
    char least[40], most[40];

    put_quantity(min, kind, least, sizeof(least));
    put_quantity(max, kind, most, sizeof(most));
    return zipccl_fail(error, ZIPCCL_ERR_INPUT, "\"%.60s\" is out of range: expected %s to %s",
                       text, least, most);
}

zipccl_status zipccl_parse_quantity(const char *text, enum zipccl_unit unit, double min, double max,
                                    double *out, struct zipccl_error *error)
{
    const struct kind *kind;
    const char *rest;
    double factor = 1, x;
    size_t n;

    if (text == NULL || out == NULL || (unsigned)unit >= sizeof(kinds) / sizeof(kinds[0]))
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "zipccl_parse_quantity: bad argument");
    kind = &kinds[unit];
    n = number_length(text);
    if (n == 0 || n > MAX_NUMBER)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "found \"%.60s\", expected %s", text,
                           kind->expected);
    rest = text + n;
    if (*rest == ' ' && rest[1] != 0)
        rest++;
    if (kind->units[0].name != NULL || *rest != 0) {
        const struct unit *u = kind->units;

        while (u->name != NULL && strcmp(u->name, rest) != 0)
            u++;
        if (u->name == NULL)
            return list_units(text, rest, kind, error);
        factor = u->factor;
    }
    x = number_value(text, n) * factor;
    if (!isfinite(x) || (unit == ZIPCCL_UNIT_COUNT && x != floor(x)))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "found \"%.60s\", expected %s", text,
                           kind->expected);
    if (x < min || x > max)
        return out_of_range(text, kind, min, max, error);
    *out = x;
    return ZIPCCL_OK;
}
