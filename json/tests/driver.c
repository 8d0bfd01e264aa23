/*
 * driver.c - say what a JSON library makes of documents; built against ours and against yajl
 *
 * compare.sh runs both and compares what they say.
 *
 *   driver documents | differences    each line of standard input is a document, see document()
 *   driver files FILE...              each FILE as a whole, and each of its lines
 *   driver generator                  calls of the generator, and what each returned
 *   driver misuse                     the same of calls that yajl does not stand
 *   driver errors                     as documents, with the error's text and offset
 *   driver mutations N FILE...        N damaged copies of lines of FILEs: accepted or not
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "json/tests/driver.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>
#include <yajl/yajl_tree.h>

static int on_null(void *t)
{
    append_text(t, "null ");
    return 1;
}

static int on_boolean(void *t, int value)
{
    append_text(t, value ? "true " : "false ");
    return 1;
}

static int on_number(void *t, const char *text, size_t n)
{
    append_text(t, "number:");
    append(t, text, n);
    append_text(t, " ");
    return 1;
}

static int on_string(void *t, const unsigned char *text, size_t n)
{
    append_text(t, "string:");
    append_quoted(t, text, n);
    append_text(t, " ");
    return 1;
}

static int on_key(void *t, const unsigned char *text, size_t n)
{
    append_text(t, "key:");
    append_quoted(t, text, n);
    append_text(t, " ");
    return 1;
}

static int on_start_map(void *t)
{
    append_text(t, "{ ");
    return 1;
}

static int on_end_map(void *t)
{
    append_text(t, "} ");
    return 1;
}

static int on_start_array(void *t)
{
    append_text(t, "[ ");
    return 1;
}

static int on_end_array(void *t)
{
    append_text(t, "] ");
    return 1;
}

/* Stops the parse. */
static int cancel(void *t)
{
    append_text(t, "stop ");
    return 0;
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_start_map,
    .yajl_map_key = on_key,
    .yajl_end_map = on_end_map,
    .yajl_start_array = on_start_array,
    .yajl_end_array = on_end_array,
};

/* Parse in pieces of 'piece' bytes and say the events; an error's text goes to 'error', unless NULL. */
static yajl_status events(const char *bytes, size_t n, size_t piece, const yajl_callbacks *table,
                          struct text *out, struct text *error)
{
    const unsigned char *text = (const unsigned char *)bytes;
    yajl_handle h = yajl_alloc(table, NULL, out);
    yajl_status status = yajl_status_ok;
    size_t at = 0, last = 0;

    for (; at < n && status == yajl_status_ok; at += last) {
        last = n - at < piece ? n - at : piece;
        status = yajl_parse(h, text + at, last);
    }
    if (status == yajl_status_ok)
        status = yajl_complete_parse(h);
    if (status == yajl_status_error && error != NULL) {
        char offset[40];
        unsigned char *message;

        snprintf(offset, sizeof offset, "%zu: ", at - last + yajl_get_bytes_consumed(h));
        append_text(error, offset);
        message = yajl_get_error(h, 0, text + (at - last), last);
        append(error, message, strcspn((const char *)message, "\n"));
        yajl_free_error(h, message);
    }
    yajl_free(h);
    return status;
}

/* Write 'v' again; the generator's depth bound shows in 'status'. */
static void write_value(yajl_gen g, yajl_val v, int *status)
{
    if (*status != 0)
        return;
    switch (v->type) {
    case yajl_t_string:
        *status = (int)yajl_gen_string(g, (unsigned char *)v->u.string, strlen(v->u.string));
        break;
    case yajl_t_number:
        *status = (int)yajl_gen_number(g, v->u.number.r, strlen(v->u.number.r));
        break;
    case yajl_t_object:
        *status = (int)yajl_gen_map_open(g);
        for (size_t i = 0; i < v->u.object.len && *status == 0; i++) {
            const char *key = v->u.object.keys[i];

            *status = (int)yajl_gen_string(g, (const unsigned char *)key, strlen(key));
            write_value(g, v->u.object.values[i], status);
        }
        *status = *status ? *status : (int)yajl_gen_map_close(g);
        break;
    case yajl_t_array:
        *status = (int)yajl_gen_array_open(g);
        for (size_t i = 0; i < v->u.array.len && *status == 0; i++)
            write_value(g, v->u.array.values[i], status);
        *status = *status ? *status : (int)yajl_gen_array_close(g);
        break;
    case yajl_t_null: *status = (int)yajl_gen_null(g); break;
    default: *status = (int)yajl_gen_bool(g, v->type == yajl_t_true);
    }
}

static void regenerate(yajl_val root, const char *indent, struct text *out)
{
    yajl_gen g = calls_generator(out, indent);
    int status = 0;
    size_t before = out->n;

    write_value(g, root, &status);
    yajl_gen_free(g);
    if (status == 0)
        return;
    out->n = before; /* what is left of it differs */
    append_text(out, status == (int)yajl_max_depth_exceeded ? " too deep" : " failed");
}

/* Numbers with their values, and what yajl_tree_get() finds. */
static void describe(yajl_val v, struct text *out)
{
    const char *path[] = {"a", "b", NULL};
    char number[80];

    if (v->type == yajl_t_number) {
        append_text(out, " r:");
        append_text(out, v->u.number.r);
        if (v->u.number.flags & YAJL_NUMBER_INT_VALID)
            append(out, number, (size_t)snprintf(number, sizeof number, " i:%lld", v->u.number.i));
        if (v->u.number.flags & YAJL_NUMBER_DOUBLE_VALID)
            append(out, number, (size_t)snprintf(number, sizeof number, " d:%a", v->u.number.d));
    }
    if (v->type == yajl_t_object) {
        if (yajl_tree_get(v, path + 1, yajl_t_any) != NULL)
            append_text(out, " b");
        if (yajl_tree_get(v, path, yajl_t_any) != NULL)
            append_text(out, " a.b");
        if (yajl_tree_get(v, path, yajl_t_string) != NULL)
            append_text(out, " a.b:string");
        for (size_t i = 0; i < v->u.object.len; i++)
            describe(v->u.object.values[i], out);
    }
    for (size_t i = 0; v->type == yajl_t_array && i < v->u.array.len; i++)
        describe(v->u.array.values[i], out);
}

static void say_tree(const char *bytes, size_t n, bool full, struct text *out)
{
    char *copy = malloc(n + 1), reason[200];
    yajl_val root;

    if (n > 0)
        memcpy(copy, bytes, n);
    copy[n] = '\0';
    root = yajl_tree_parse(copy, reason, sizeof reason);
    append_text(out, root != NULL ? "tree" : "no tree");
    if (root != NULL) {
        describe(root, out);
        append_text(out, "\n");
        regenerate(root, NULL, out);
        if (full) {
            append_text(out, "\n");
            regenerate(root, "  ", out);
            regenerate(root, "\t", out);
        }
    } else if (reason[0] == '\0') {
        append_text(out, ", and no reason");
    }
    append_text(out, "\n");
    yajl_tree_free(root);
    free(copy);
}

/* All that the library makes of a document; the events before an error may differ and are not said. */
static void say(const char *bytes, size_t n, struct text *out)
{
    static const size_t pieces[] = {1, 2, 7};
    struct text whole = {0};
    yajl_status status = events(bytes, n, n + 1, &callbacks, &whole, NULL);

    append_text(out, status == yajl_status_ok ? "accepted: " : "refused");
    if (status == yajl_status_ok)
        append(out, whole.bytes, whole.n);
    append_text(out, "\n");
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct text part = {0};

        if (events(bytes, n, pieces[i], &callbacks, &part, NULL) != status ||
            (status == yajl_status_ok &&
             (part.n != whole.n || memcmp(part.bytes, whole.bytes, whole.n))))
            append_text(out, "pieces differ from the whole\n");
        free(part.bytes);
    }
    if (events(bytes, n, n + 1, NULL, NULL, NULL) != status)
        append_text(out, "without callbacks it differs\n");
    say_tree(bytes, n, true, out);
    free(whole.bytes);
}

/* Append [n] of 'line' with its \xHH replaced by bytes. */
static void append_bytes(const char *line, size_t n, struct text *out)
{
    for (size_t i = 0; i < n; i++) {
        unsigned byte;
        char c = line[i];

        if (n - i >= 4 && strncmp(line + i, "\\x", 2) == 0 &&
            sscanf(line + i + 2, "%2x", &byte) == 1) {
            c = (char)byte;
            i += 3;
        }
        append(out, &c, 1);
    }
}

/* The document of a line; "<N*TEXT|END>" is N times TEXT, then N times END. */
static void document(const char *line, size_t n, struct text *out)
{
    const char *bar = memchr(line, '|', n);
    unsigned times;
    int used;

    append(out, "", 0);
    if (bar == NULL || line[n - 1] != '>' || sscanf(line, "<%u*%n", &times, &used) != 1) {
        append_bytes(line, n, out);
        return;
    }
    for (unsigned k = 0; k < times; k++)
        append_bytes(line + used, (size_t)(bar - line - used), out);
    for (unsigned k = 0; k < times; k++)
        append_bytes(bar + 1, (size_t)(line + n - 1 - bar - 1), out);
}

static void read_all(FILE *in, struct text *out)
{
    char piece[4096];
    size_t n;

    append(out, "", 0);
    while ((n = fread(piece, 1, sizeof piece, in)) > 0)
        append(out, piece, n);
}

static void read_file(const char *name, struct text *out)
{
    FILE *in = fopen(name, "rb");

    if (in == NULL) {
        perror(name);
        exit(1);
    }
    read_all(in, out);
    fclose(in);
}

static size_t line_at(const struct text *t, size_t at)
{
    return strcspn(t->bytes + at, "\n");
}

/* One line of output for one of 'differences': what the tree has. */
static void brief(const char *bytes, size_t n, struct text *out)
{
    struct text all = {0};

    append_text(out, events(bytes, n, n + 1, NULL, NULL, NULL) == yajl_status_ok ? "accepted, "
                                                                                 : "refused, ");
    say_tree(bytes, n, false, &all);
    append_quoted(out, all.bytes, all.n < 100 ? all.n - 1 : 100);
    append_text(out, "\n");
    free(all.bytes);
}

static void each_document(const char *mode)
{
    struct text in = {0}, out = {0};

    read_all(stdin, &in);
    for (size_t at = 0, n; at < in.n; at += n + 1) {
        struct text doc = {0};

        n = line_at(&in, at);
        if (in.bytes[at] == '#')
            continue;
        append(&out, in.bytes + at, n);
        append_text(&out, strcmp(mode, "documents") == 0 ? "\n" : " -> ");
        document(in.bytes + at, n, &doc);
        if (strcmp(mode, "documents") == 0) {
            say(doc.bytes, doc.n, &out);
        } else if (strcmp(mode, "differences") == 0) {
            brief(doc.bytes, doc.n, &out);
        } else {
            events(doc.bytes, doc.n, 5, NULL, NULL, &out);
            append_text(&out, "\n");
        }
        free(doc.bytes);
    }
    fwrite(out.bytes, 1, out.n, stdout);
    free(in.bytes);
    free(out.bytes);
}

static void each_file(char **names)
{
    for (; *names != NULL; names++) {
        struct text in = {0}, out = {0};

        read_file(*names, &in);
        append_text(&out, "whole\n");
        say(in.bytes, in.n, &out);
        for (size_t at = 0, n; at < in.n; at += n + 1) {
            n = line_at(&in, at);
            say(in.bytes + at, n, &out);
        }
        printf("%s\n", *names);
        fwrite(out.bytes, 1, out.n, stdout);
        free(in.bytes);
        free(out.bytes);
    }
}

static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Change, drop, double or cut bytes; the bytes that come in are those that matter to JSON. */
static void damage(struct text *doc, uint64_t *state)
{
    static const char bytes[] =
        "{}[]:,\"\\/u0e-+.19dD8tfnl \n\t\x01\x7f\x80\xbf\xc2\xe0\xed\xf4\xff*a";

    for (uint64_t k = 1 + draw(state) % 3; k > 0 && doc->n > 0; k--) {
        size_t at = draw(state) % doc->n, n = 1 + draw(state) % 4;

        n = n < doc->n - at ? n : doc->n - at;
        switch (draw(state) % 4) {
        case 0: doc->n = at; break;
        case 1:
            memmove(doc->bytes + at, doc->bytes + at + n, doc->n - at - n);
            doc->n -= n;
            break;
        case 2:
            append(doc, "", 1);
            memmove(doc->bytes + at + 1, doc->bytes + at, doc->n - at - 1);
            /* fall through */
        default: doc->bytes[at] = bytes[draw(state) % (sizeof bytes - 1)];
        }
    }
    append(doc, "", 0);
}

static void mutate(unsigned long times, char **names)
{
    struct text in = {0};
    uint64_t state = 0x9e3779b97f4a7c15u;

    for (; *names != NULL; names++)
        read_file(*names, &in);
    for (size_t at = 0, n, k = 0; k < times; at = at + n + 1 < in.n ? at + n + 1 : 0, k++) {
        struct text doc = {0}, out = {0};

        n = line_at(&in, at);
        document(in.bytes + at, n < 400 ? n : 400, &doc);
        damage(&doc, &state);
        say(doc.bytes, doc.n, &out);
        printf("%d ", strncmp(out.bytes, "accepted", 8) == 0);
        for (size_t i = 0; i < doc.n; i++)
            putchar(doc.bytes[i] > 0x20 && doc.bytes[i] < 0x7f ? doc.bytes[i] : '_');
        printf("%s\n", strstr(out.bytes, "differ") != NULL ? " differ" : "");
        free(doc.bytes);
        free(out.bytes);
    }
    free(in.bytes);
}

int main(int argc, char **argv)
{
    yajl_callbacks stopping = callbacks;
    struct text out = {0};

    if (argc < 2)
        return 2;
    if (strcmp(argv[1], "files") == 0) {
        each_file(argv + 2);
    } else if (strcmp(argv[1], "mutations") == 0 && argc > 3) {
        mutate(strtoul(argv[2], NULL, 10), argv + 3);
    } else if (strcmp(argv[1], "misuse") == 0) {
        calls_misuse();
    } else if (strcmp(argv[1], "generator") == 0) {
        calls_generate(NULL);
        calls_generate("  ");
        stopping.yajl_end_array = cancel;
        printf("%d ", (int)events("[1,[2],3]", 9, 9, &stopping, &out, NULL));
        printf("%s\n", out.bytes);
        free(out.bytes);
    } else {
        each_document(argv[1]);
    }
    return 0;
}
