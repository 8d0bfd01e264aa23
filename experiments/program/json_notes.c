/*
 * json_notes.c - lists of settings and assumptions as JSON, the same in every result
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/program/json_notes.h"

#include "experiments/program/json_put.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Settings and assumptions hold their values as text; one that is a plain number is written so. */
static void put_value(yajl_gen gen, const char *key, const char *text)
{
    char *end;
    double value = strtod(text, &end);

    if (text[0] != '\0' && *end == '\0' && isfinite(value) &&
        strspn(text, "0123456789.eE+-") == strlen(text))
        zipccl_put_number(gen, key, value, true);
    else
        zipccl_put_string(gen, key, text);
}

void zipccl_put_notes(yajl_gen gen, const char *key, const struct zipccl_result_note *notes,
                      size_t n)
{
    zipccl_put_key(gen, key);
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < n; i++) {
        yajl_gen_map_open(gen);
        zipccl_put_string(gen, "name", notes[i].name);
        put_value(gen, "value", notes[i].value);
        zipccl_put_string(gen, "unit", notes[i].unit);
        zipccl_put_string(gen, "source", notes[i].source);
        yajl_gen_map_close(gen);
    }
    yajl_gen_array_close(gen);
}
