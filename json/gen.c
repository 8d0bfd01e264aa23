/*
 * gen.c - write JSON, value by value, to a print callback
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "json/yajl/yajl_gen.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum place {
    START,      /* the document's value is due */
    FIRST_KEY,  /* of an object, or its end */
    NEXT_KEY,   /* the same, after a value */
    MAP_VALUE,  /* after a key */
    FIRST_ITEM, /* of an array, or its end */
    NEXT_ITEM,
    COMPLETE,
    FAILED
};

struct yajl_gen_t {
    yajl_print_t print;
    void *context;
    const char *indent;
    bool beautify;
    unsigned depth;
    enum place stack[YAJL_MAX_DEPTH]; /* [depth]: where the innermost container stands */
};

yajl_gen yajl_gen_alloc(const yajl_alloc_funcs *functions)
{
    yajl_gen gen = functions == NULL ? calloc(1, sizeof *gen) : NULL;

    if (gen != NULL)
        gen->indent = "    ";
    return gen;
}

void yajl_gen_free(yajl_gen gen)
{
    free(gen);
}

int yajl_gen_config(yajl_gen gen, yajl_gen_option option, ...)
{
    va_list list;
    int ok = 1;

    va_start(list, option);
    switch (option) {
    case yajl_gen_beautify: gen->beautify = va_arg(list, int) != 0; break;
    case yajl_gen_indent_string: {
        const char *indent = va_arg(list, const char *);

        /* What is no white space would make the text no JSON. */
        ok = indent != NULL && indent[strspn(indent, " \t\n\r")] == '\0';
        if (ok)
            gen->indent = indent;
        break;
    }
    case yajl_gen_print_callback:
        gen->print = va_arg(list, yajl_print_t);
        gen->context = va_arg(list, void *);
        break;
    default: ok = 0;
    }
    va_end(list);
    return ok;
}

static void put(yajl_gen gen, const char *text)
{
    gen->print(gen->context, text, strlen(text));
}

static void indent(yajl_gen gen)
{
    if (!gen->beautify)
        return;
    for (unsigned i = 0; i < gen->depth; i++)
        put(gen, gen->indent);
}

static void new_line(yajl_gen gen)
{
    if (gen->beautify)
        put(gen, "\n");
}

/* Whether a value may come now; 'is_string' if it can be a key. */
static yajl_gen_status check(yajl_gen gen, bool is_string)
{
    if (gen->print == NULL)
        return yajl_gen_no_buf;
    switch (gen->stack[gen->depth]) {
    case FIRST_KEY:
    case NEXT_KEY: return is_string ? yajl_gen_status_ok : yajl_gen_keys_must_be_strings;
    case COMPLETE: return yajl_gen_generation_complete;
    case FAILED: return yajl_gen_in_error_state;
    default: return yajl_gen_status_ok;
    }
}

/* What stands before a value or key. */
static void lead(yajl_gen gen)
{
    switch (gen->stack[gen->depth]) {
    case NEXT_KEY:
    case NEXT_ITEM:
        put(gen, ",");
        new_line(gen);
        indent(gen);
        break;
    case FIRST_KEY:
    case FIRST_ITEM: indent(gen); break;
    case MAP_VALUE: put(gen, gen->beautify ? ": " : ":"); break;
    default: break;
    }
}

/* A value or key has been written. */
static yajl_gen_status done(yajl_gen gen)
{
    enum place *place = &gen->stack[gen->depth];

    switch (*place) {
    case START:
        *place = COMPLETE;
        new_line(gen);
        break;
    case FIRST_KEY:
    case NEXT_KEY: *place = MAP_VALUE; break;
    case MAP_VALUE: *place = NEXT_KEY; break;
    default: *place = NEXT_ITEM; break;
    }
    return yajl_gen_status_ok;
}

static yajl_gen_status put_value(yajl_gen gen, const char *text, size_t nbytes)
{
    yajl_gen_status status = check(gen, false);

    if (status != yajl_gen_status_ok)
        return status;
    lead(gen);
    gen->print(gen->context, text, nbytes);
    return done(gen);
}

yajl_gen_status yajl_gen_null(yajl_gen gen)
{
    return put_value(gen, "null", 4);
}

yajl_gen_status yajl_gen_bool(yajl_gen gen, int value)
{
    return value ? put_value(gen, "true", 4) : put_value(gen, "false", 5);
}

yajl_gen_status yajl_gen_number(yajl_gen gen, const char *text, size_t nbytes)
{
    return put_value(gen, text, nbytes);
}

yajl_gen_status yajl_gen_integer(yajl_gen gen, long long value)
{
    char text[24];

    return put_value(gen, text, (size_t)snprintf(text, sizeof text, "%lld", value));
}

yajl_gen_status yajl_gen_double(yajl_gen gen, double value)
{
    yajl_gen_status status = check(gen, false);
    char text[40];

    if (status != yajl_gen_status_ok)
        return status;
    if (!isfinite(value))
        return yajl_gen_invalid_number;
    snprintf(text, sizeof text - 2, "%.20g", value);
    /* A reader shall see that it is no integer. */
    if (text[strspn(text, "-0123456789")] == '\0')
        strcat(text, ".0");
    return put_value(gen, text, strlen(text));
}

/* The escape of 'c', NULL if it stands for itself. */
static const char *escape(unsigned char c, char out[8])
{
    switch (c) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\b': return "\\b";
    case '\f': return "\\f";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default:
        if (c >= 0x20)
            return NULL;
        snprintf(out, 8, "\\u%04X", c);
        return out;
    }
}

yajl_gen_status yajl_gen_string(yajl_gen gen, const unsigned char *text, size_t nbytes)
{
    yajl_gen_status status = check(gen, true);
    size_t from = 0;

    if (status != yajl_gen_status_ok)
        return status;
    lead(gen);
    put(gen, "\"");
    for (size_t i = 0; i < nbytes; i++) {
        char room[8];
        const char *escaped = escape(text[i], room);

        if (escaped == NULL)
            continue;
        if (i > from)
            gen->print(gen->context, (const char *)text + from, i - from);
        put(gen, escaped);
        from = i + 1;
    }
    if (nbytes > from)
        gen->print(gen->context, (const char *)text + from, nbytes - from);
    put(gen, "\"");
    return done(gen);
}

static yajl_gen_status open(yajl_gen gen, const char *bracket, enum place place)
{
    yajl_gen_status status = check(gen, false);

    if (status != yajl_gen_status_ok)
        return status;
    if (gen->depth == YAJL_MAX_DEPTH - 1) {
        gen->stack[gen->depth] = FAILED;
        return yajl_max_depth_exceeded;
    }
    lead(gen);
    put(gen, bracket);
    new_line(gen);
    gen->stack[++gen->depth] = place;
    return yajl_gen_status_ok;
}

static yajl_gen_status close(yajl_gen gen, const char *bracket, enum place first, enum place next)
{
    enum place place = gen->stack[gen->depth];

    if (gen->print == NULL)
        return yajl_gen_no_buf;
    if (place == COMPLETE)
        return yajl_gen_generation_complete;
    if (place != first && place != next)
        return yajl_gen_in_error_state;
    gen->depth--;
    new_line(gen); /* so an empty container has an empty line, as yajl writes it */
    indent(gen);
    put(gen, bracket);
    return done(gen);
}

yajl_gen_status yajl_gen_map_open(yajl_gen gen)
{
    return open(gen, "{", FIRST_KEY);
}

yajl_gen_status yajl_gen_map_close(yajl_gen gen)
{
    return close(gen, "}", FIRST_KEY, NEXT_KEY);
}

yajl_gen_status yajl_gen_array_open(yajl_gen gen)
{
    return open(gen, "[", FIRST_ITEM);
}

yajl_gen_status yajl_gen_array_close(yajl_gen gen)
{
    return close(gen, "]", FIRST_ITEM, NEXT_ITEM);
}
