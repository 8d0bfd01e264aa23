/*
 * import_print.c - what an importer had to assume, for people
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/trace/import_print.h"

#include <inttypes.h>
#include <string.h>

enum { INDENT = 9, WIDTH = 100 };

/* Options by the names of traces/import.h, and as they are written at the command line. */
static const char *const option_names[][2] = {{"nranks", "ranks"},
                                              {"ranks_per_node", "ranks-per-node"},
                                              {"grad_dtype", "grad-dtype"},
                                              {"dtype", "dtype"},
                                              {"micro_batches", "micro-batches"},
                                              {"single_tp_as_dp", "single-tp-as-dp"},
                                              {"dispatch_bytes", "dispatch-bytes"}};

/* If 'text' starts with "option NAME", put "--NAME" to 'out' and return the length of it. */
static size_t option_at(const char *text, char *out, size_t size)
{
    static const char word[] = "option ";
    const char *name = text + strlen(word);

    if (strncmp(text, word, strlen(word)) != 0)
        return 0;
    for (size_t i = 0; i < sizeof option_names / sizeof *option_names; i++) {
        size_t n = strlen(option_names[i][0]);

        if (strncmp(name, option_names[i][0], n) != 0)
            continue;
        snprintf(out, size, "--%s", option_names[i][1]);
        return strlen(word) + n;
    }
    return 0;
}

static void name_options(const char *text, char *out, size_t size)
{
    size_t n = 0;

    while (*text != '\0' && n + 24 < size) {
        size_t length = option_at(text, out + n, size - n);

        if (length == 0) {
            out[n++] = *text++;
            continue;
        }
        n += strlen(out + n);
        text += length;
    }
    out[n] = '\0';
}

/* Print words in lines of WIDTH; 'column' is where the first line stands. */
static void print_wrapped(const char *text, size_t column, FILE *out)
{
    while (*text != '\0') {
        size_t n = strcspn(text, " ");

        if (column > INDENT && column + 1 + n > WIDTH) {
            fprintf(out, "\n%*s", INDENT, "");
            column = INDENT;
        } else if (column > INDENT) {
            fputc(' ', out);
            column++;
        }
        fwrite(text, 1, n, out);
        column += n;
        text += n;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

static void print_item(const struct zipccl_import_item *item, FILE *out)
{
    char text[512], head[96], where[40] = "";

    if (item->line > 0)
        snprintf(where, sizeof where, item->count > 1 ? ", from line %" PRIu64 : ", line %" PRIu64,
                 item->line);
    snprintf(head, sizeof head, " %-7s %s (%" PRIu64 "x%s):", item->guess ? "guess" : "note",
             item->what, item->count, where);
    name_options(item->text, text, sizeof text);
    fputs(head, out);
    print_wrapped(text, strlen(head), out);
}

void zipccl_import_print(const struct zipccl_import_report *report, FILE *out)
{
    size_t kinds = 0;

    for (size_t i = 0; i < report->nitems; i++)
        kinds += report->items[i].guess;
    fprintf(out,
            "import   %s: %" PRIu64 " %s, %" PRIu64 " collectives a rank; %" PRIu64
            " guesses of %zu kinds\n",
            report->format, report->nlayers, report->layers != NULL ? report->layers : "layers",
            report->ncollectives, report->nguesses, kinds);
    for (int guess = 1; guess >= 0; guess--)
        for (size_t i = 0; i < report->nitems; i++)
            if (report->items[i].guess == (guess != 0))
                print_item(&report->items[i], out);
}
