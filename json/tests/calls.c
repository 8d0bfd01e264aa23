/*
 * calls.c - calls of the generator, right and wrong ones
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "json/tests/driver.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <yajl/yajl_parse.h>
#include <yajl/yajl_tree.h>

static void print(void *t, const char *text, size_t n)
{
    append(t, text, n);
}

yajl_gen calls_generator(struct text *out, const char *indent)
{
    yajl_gen g = yajl_gen_alloc(NULL);

    yajl_gen_config(g, yajl_gen_print_callback, print, out);
    if (indent != NULL) {
        yajl_gen_config(g, yajl_gen_beautify, 1);
        yajl_gen_config(g, yajl_gen_indent_string, indent);
    }
    return g;
}

void calls_generate(const char *indent)
{
    static const double values[] = {0, -0.0, 1, -17, 0.1, 1e20, 1e21, 1e300, 5e-324, NAN, INFINITY};
    static const char text[] = "a\"b\\c/d\b\f\n\r\t\x01\x1f\x7f\xc3\xa9 \0z";
    struct text out = {0};
    yajl_gen g = calls_generator(&out, indent);
    int status = 0;

#define CALL(call) printf("%d ", (int)(call))
    CALL(yajl_gen_map_open(g));
    CALL(yajl_gen_integer(g, 3));
    CALL(yajl_gen_null(g));
    CALL(yajl_gen_bool(g, 1));
    CALL(yajl_gen_number(g, "1", 1));
    CALL(yajl_gen_double(g, 1));
    CALL(yajl_gen_array_open(g));
    CALL(yajl_gen_map_open(g));
    CALL(yajl_gen_string(g, (const unsigned char *)text, sizeof text - 1));
    CALL(yajl_gen_string(g, (const unsigned char *)text, sizeof text - 1));
    CALL(yajl_gen_string(g, (const unsigned char *)"", 0));
    CALL(yajl_gen_array_open(g));
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        CALL(yajl_gen_double(g, values[i]));
    CALL(yajl_gen_integer(g, INT64_MIN));
    CALL(yajl_gen_integer(g, INT64_MAX));
    CALL(yajl_gen_number(g, "1.50e+07", 8));
    CALL(yajl_gen_bool(g, 2));
    CALL(yajl_gen_array_open(g));
    CALL(yajl_gen_array_close(g));
    CALL(yajl_gen_map_open(g));
    CALL(yajl_gen_map_close(g));
    CALL(yajl_gen_array_close(g));
    CALL(yajl_gen_map_close(g));
    CALL(yajl_gen_null(g));
    CALL(yajl_gen_map_close(g));
    CALL(yajl_gen_string(g, (const unsigned char *)"", 0));
    yajl_gen_free(g);
    fwrite(out.bytes, 1, out.n, stdout);
    out.n = 0;
    g = calls_generator(&out, indent);
    for (unsigned n = 0; status == 0; n++, status = (int)yajl_gen_array_open(g))
        printf("%u%s", n % 10, n % 50 == 49 ? "\n" : "");
    CALL(status);
    CALL(yajl_gen_config(g, yajl_gen_indent_string, " x"));
    yajl_gen_free(g);
    out.n = 0;
    g = calls_generator(&out, indent);
    CALL(yajl_gen_double(g, 2));
    CALL(yajl_gen_double(g, 2));
    yajl_gen_free(g);
    printf("\n");
    fwrite(out.bytes, 1, out.n, stdout);
    free(out.bytes);
}

void calls_misuse(void)
{
    struct text out = {0};
    char reason[120], tiny[8];
    yajl_gen g = yajl_gen_alloc(NULL);

    CALL(yajl_gen_null(g));
    CALL(yajl_gen_map_close(g));
    CALL(yajl_gen_config(g, yajl_gen_print_callback, print, &out));
    CALL(yajl_gen_map_close(g));
    CALL(yajl_gen_map_open(g));
    CALL(yajl_gen_array_close(g));
    CALL(yajl_gen_string(g, (const unsigned char *)"k", 1));
    CALL(yajl_gen_map_close(g));
    CALL(yajl_gen_array_open(g));
    CALL(yajl_gen_map_close(g));
    CALL(yajl_gen_array_close(g));
    CALL(yajl_gen_map_close(g));
    CALL(yajl_gen_array_close(g));
    CALL(yajl_gen_config(g, yajl_gen_indent_string, NULL));
    yajl_gen_free(g);
    printf("%s\n", out.bytes);
    free(out.bytes);
    yajl_gen_free(NULL);
    yajl_free(NULL);
    yajl_tree_free(NULL);
    CALL(yajl_tree_parse("[1,\n  {\"a\":tru\x01}]", reason, sizeof reason) == NULL);
    printf("%s", reason);
    CALL(yajl_tree_parse("[", tiny, sizeof tiny) == NULL);
    printf("%s\n", tiny);
    CALL(yajl_tree_parse("]", NULL, 0) == NULL);
    printf("\n");
}
