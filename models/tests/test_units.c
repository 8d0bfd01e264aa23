/*
 * test_units.c - the number parser takes what it should and nothing else
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/units.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <string.h>

static const struct {
    const char *text;
    enum zipccl_unit unit;
    double value;
} good[] = {
    {"200Gbps", ZIPCCL_UNIT_RATE, 25e9},
    {"24.2GBps", ZIPCCL_UNIT_RATE, 24.2e9},
    {"24.2 GBps", ZIPCCL_UNIT_RATE, 24.2e9},
    {"1kbps", ZIPCCL_UNIT_RATE, 125},
    {"0.8Tbps", ZIPCCL_UNIT_RATE, 1e11},
    {"3TBps", ZIPCCL_UNIT_RATE, 3e12},
    {"5us", ZIPCCL_UNIT_TIME, 5e-6},
    {"0s", ZIPCCL_UNIT_TIME, 0},
    {"1.5ms", ZIPCCL_UNIT_TIME, 1.5e-3},
    {"80GB", ZIPCCL_UNIT_BYTES, 80e9},
    {"64KiB", ZIPCCL_UNIT_BYTES, 65536},
    {"312TFLOPS", ZIPCCL_UNIT_FLOPS, 312e12},
    {"0.5", ZIPCCL_UNIT_NONE, 0.5},
    {"1e3", ZIPCCL_UNIT_NONE, 1000},
    {"-2", ZIPCCL_UNIT_NONE, -2},
    {"108", ZIPCCL_UNIT_COUNT, 108},
    {"0", ZIPCCL_UNIT_COUNT, 0},
};

Test(units, takes_every_form)
{
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct zipccl_error error = {""};
        double x = -1;

        cr_assert_eq(
            zipccl_parse_quantity(good[i].text, good[i].unit, -DBL_MAX, DBL_MAX, &x, &error),
            ZIPCCL_OK, "%s: %s", good[i].text, error.text);
        cr_assert(fabs(x - good[i].value) <= 1e-12 * fabs(good[i].value), "%s gave %g",
                  good[i].text, x);
    }
}

static const struct {
    const char *text;
    enum zipccl_unit unit;
    const char *says; /* part of the text */
} bad[] = {
    {"", ZIPCCL_UNIT_RATE, "expected a rate"},
    {"200", ZIPCCL_UNIT_RATE, "unit is missing"},
    {"200 ", ZIPCCL_UNIT_RATE, "unit"},
    {"200Gbit", ZIPCCL_UNIT_RATE, "Gbit"},
    {"200gbps", ZIPCCL_UNIT_RATE, "gbps"},
    {"200GB", ZIPCCL_UNIT_RATE, "GB"},
    {"200  Gbps", ZIPCCL_UNIT_RATE, "unit"},
    {"200Gbps ", ZIPCCL_UNIT_RATE, "unit"},
    {" 200Gbps", ZIPCCL_UNIT_RATE, "expected a rate"},
    {"5", ZIPCCL_UNIT_TIME, "unit is missing"},
    {"5m", ZIPCCL_UNIT_TIME, "\"m\""},
    {"8x", ZIPCCL_UNIT_COUNT, "\"x\""},
    {"08", ZIPCCL_UNIT_COUNT, "08"},
    {"010", ZIPCCL_UNIT_COUNT, "010"},
    {"0x10", ZIPCCL_UNIT_COUNT, "x10"},
    {"+8", ZIPCCL_UNIT_COUNT, "+8"},
    {"8.5", ZIPCCL_UNIT_COUNT, "whole number"},
    {"1e400", ZIPCCL_UNIT_NONE, "1e400"},
    {"nan", ZIPCCL_UNIT_NONE, "nan"},
    {"inf", ZIPCCL_UNIT_NONE, "inf"},
    {"1.", ZIPCCL_UNIT_NONE, "1."},
    {".5", ZIPCCL_UNIT_NONE, ".5"},
    {"1,5", ZIPCCL_UNIT_NONE, "1,5"},
    {"1e", ZIPCCL_UNIT_NONE, "1e"},
    {"0.5GBps", ZIPCCL_UNIT_NONE, "GBps"},
};

Test(units, refuses_everything_else)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct zipccl_error error = {""};
        double x = 42;

        cr_assert_eq(zipccl_parse_quantity(bad[i].text, bad[i].unit, -DBL_MAX, DBL_MAX, &x, &error),
                     ZIPCCL_ERR_INPUT, "\"%s\" passed as %g", bad[i].text, x);
        cr_assert_eq(x, 42, "'out' changed on failure");
        cr_assert(strstr(error.text, "expected") != NULL, "%s", error.text);
        cr_assert(strstr(error.text, bad[i].says) != NULL, "\"%s\": %s", bad[i].text, error.text);
    }
}

Test(units, names_the_range)
{
    static const struct {
        const char *text;
        enum zipccl_unit unit;
        double min, max;
        const char *says;
    } cases[] = {
        {"1kBps", ZIPCCL_UNIT_RATE, 1e6, 1e14,
         "\"1kBps\" is out of range: expected 1MBps to 100TBps"},
        {"2s", ZIPCCL_UNIT_TIME, 0, 1, "expected 0s to 1s"},
        {"2ms", ZIPCCL_UNIT_TIME, 5e-9, 1e-3, "expected 5ns to 1ms"},
        {"1B", ZIPCCL_UNIT_BYTES, 1e6, 1e15, "expected 1MB to 1000TB"},
        {"2PFLOPS", ZIPCCL_UNIT_FLOPS, 1e9, 1e15, "expected 1GFLOPS to 1PFLOPS"},
        {"0", ZIPCCL_UNIT_COUNT, 1, 1048576, "expected 1 to 1048576"},
        {"2", ZIPCCL_UNIT_NONE, 0, 0.5, "expected 0 to 0.5"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct zipccl_error error = {""};
        double x;

        cr_assert_eq(zipccl_parse_quantity(cases[i].text, cases[i].unit, cases[i].min, cases[i].max,
                                           &x, &error),
                     ZIPCCL_ERR_INPUT, "%s", cases[i].text);
        cr_assert(strstr(error.text, cases[i].says) != NULL, "%s", error.text);
    }
}
