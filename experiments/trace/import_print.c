/*
 * import_print.c - what an importer had to assume, for people
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/trace/import_print.h"

#include "experiments/program/fold.h"

#include <inttypes.h>
#include <string.h>

enum { INDENT = 9 };

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

static void print_item(const struct zipccl_import_item *item, FILE *out)
{
    char text[512], line[640], where[40] = "";

    if (item->line > 0)
        snprintf(where, sizeof where, item->count > 1 ? ", from line %" PRIu64 : ", line %" PRIu64,
                 item->line);
    name_options(item->text, text, sizeof text);
    snprintf(line, sizeof line, " %-7s %s (%" PRIu64 "x%s): %s\n", item->guess ? "guess" : "note",
             item->what, item->count, where, text);
    zipccl_fold(line, INDENT, out);
}

void zipccl_import_print(const struct zipccl_import_report *report, FILE *out)
{
    size_t kinds = 0;

    for (size_t i = 0; i < report->nitems; i++)
        kinds += report->items[i].guess;
    fprintf(out,
            "import   %s: %" PRIu64 " %s, %" PRIu64 " collective%s a rank; %" PRIu64
            " guess%s of %zu kind%s\n",
            report->format, report->nlayers, report->layers != NULL ? report->layers : "layers",
            report->ncollectives, report->ncollectives == 1 ? "" : "s", report->nguesses,
            report->nguesses == 1 ? "" : "es", kinds, kinds == 1 ? "" : "s");
    for (int guess = 1; guess >= 0; guess--)
        for (size_t i = 0; i < report->nitems; i++)
            if (report->items[i].guess == (guess != 0))
                print_item(&report->items[i], out);
}
