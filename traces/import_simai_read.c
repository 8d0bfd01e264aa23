/*
 * import_simai_read.c - the lines of a SimAI workload file
 *
 * Line 1 is the header, line 2 the number of layers, then one layer a line:
 *   name dependency  forward, input gradient, weight gradient: ns call bytes  process time
 * Any white space separates; words after the twelfth are skipped, as SimAI's users write them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_simai.h"
#include "traces/lines.h"
#include "traces/trace_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Names seen last, so that a file of a million layers holds each name once. */
#define NNAMES 64

#define MAX_NAME 200

struct names {
    const char *name[NNAMES];
    size_t n, next;
};

/* Calls by the start of their name; what follows is a suffix of 'sets'. */
static const struct {
    const char *name;
    enum simai_call call;
} calls[] = {
    {"NONE", SIMAI_NONE},
    {"ALLREDUCEALLTOALL", SIMAI_ALLREDUCEALLTOALL},
    {"ALLREDUCE", SIMAI_ALLREDUCE},
    {"ALLGATHER", SIMAI_ALLGATHER},
    {"REDUCESCATTER", SIMAI_REDUCESCATTER},
    {"ALLTOALL", SIMAI_ALLTOALL},
    {"BROADCAST", SIMAI_BROADCAST},
};

static const char *const phases[SIMAI_PHASES] = {"forward", "input gradient", "weight gradient"};

static zipccl_status read_call(struct simai_workload *w, struct simai_token token, int phase,
                               struct simai_part *out)
{
    struct zipccl_place at = simai_place(w);
    char quoted[ZIPCCL_QUOTE_SIZE];

    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        size_t n = strlen(calls[i].name);
        struct simai_token suffix;

        if (token.n < n || memcmp(token.p, calls[i].name, n) != 0)
            continue;
        suffix = (struct simai_token){token.p + n, token.n - n};
        out->call = (uint8_t)calls[i].call;
        if (suffix.n == 0)
            out->set = phase == SIMAI_WG ? SIMAI_DP : SIMAI_TP;
        else if (suffix.n == 3 && memcmp(suffix.p, "_EP", 3) == 0)
            out->set = SIMAI_EP;
        else if (suffix.n == 6 && memcmp(suffix.p, "_DP_EP", 6) == 0)
            out->set = SIMAI_DP_EP;
        else
            continue;
        if (out->call == SIMAI_NONE && suffix.n > 0)
            continue;
        return ZIPCCL_OK;
    }
    return zipccl_place_fail(&at,
                             "%s call %s, expected NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER, "
                             "ALLTOALL, ALLREDUCEALLTOALL or BROADCAST, without suffix or with "
                             "_EP or _DP_EP",
                             phases[phase], simai_quote(quoted, token));
}

static zipccl_status read_part(struct simai_workload *w, const struct simai_token *words, int phase,
                               struct simai_part *out)
{
    struct zipccl_place at = simai_place(w);
    char name[40];
    bool rounded;

    strcpy(name, phases[phase]);
    strcat(name, " compute time");
    ZIPCCL_TRY(simai_number(w, words[0], name, &out->ns, NULL, NULL));
    if (out->ns * 1e-9 > ZIPCCL_TRACE_MAX_SECONDS)
        return zipccl_place_fail(&at, "%s is %.9g ns, expected at most %.16g s", name, out->ns,
                                 ZIPCCL_TRACE_MAX_SECONDS);
    ZIPCCL_TRY(read_call(w, words[1], phase, out));
    strcpy(name, phases[phase]);
    strcat(name, " size");
    ZIPCCL_TRY(simai_number(w, words[2], name, NULL, &out->nbytes, &rounded));
    if (out->call == SIMAI_NONE) {
        ZIPCCL_TRY(zipccl_import_count(w->importer, false, "size without call", w->line,
                                       out->nbytes > 0, "sizes beside NONE mean nothing"));
        out->nbytes = 0;
        return ZIPCCL_OK;
    }
    return zipccl_import_count(w->importer, true, "fraction", w->line, rounded,
                               "sizes that are no whole bytes are rounded up");
}

static zipccl_status read_name(struct simai_workload *w, struct names *names,
                               struct simai_token token, const char **out)
{
    struct zipccl_place at = simai_place(w);
    char quoted[ZIPCCL_QUOTE_SIZE];
    char *copy;

    for (size_t i = 0; i < names->n; i++) {
        if (strlen(names->name[i]) == token.n && memcmp(names->name[i], token.p, token.n) == 0) {
            *out = names->name[i];
            return ZIPCCL_OK;
        }
    }
    if (token.n > MAX_NAME)
        return zipccl_place_fail(&at, "a layer name of %zu bytes, expected at most %d", token.n,
                                 MAX_NAME);
    copy = zipccl_arena_string(&w->arena, token.p, token.n);
    if (copy == NULL)
        return zipccl_place_nomem(&at);
    if (strlen(copy) != token.n || !zipccl_text_printable(copy) ||
        !zipccl_utf8_valid(copy, token.n))
        return zipccl_place_fail(&at, "layer name %s, expected UTF-8 without control characters",
                                 simai_quote(quoted, token));
    names->name[names->next] = *out = copy;
    names->next = (names->next + 1) % NNAMES;
    names->n += names->n < NNAMES;
    return ZIPCCL_OK;
}

static zipccl_status append_row(struct simai_workload *w, const struct simai_row *row)
{
    struct zipccl_place at = simai_place(w);

    if (w->nrows == w->capacity) {
        size_t capacity = w->capacity > 0 ? w->capacity * 2 : 128;
        struct simai_row *rows = realloc(w->rows, capacity * sizeof *rows);

        if (rows == NULL)
            return zipccl_place_nomem(&at);
        w->rows = rows;
        w->capacity = capacity;
    }
    w->rows[w->nrows++] = *row;
    return ZIPCCL_OK;
}

static zipccl_status read_row(struct simai_workload *w, struct names *names,
                              struct simai_token line)
{
    struct zipccl_place at = simai_place(w);
    struct simai_row row = {.line = w->line};
    struct simai_token words[12], extra, sign;
    char quoted[ZIPCCL_QUOTE_SIZE];
    size_t n = 0;

    while (n < 12 && simai_next_token(&line, &words[n]))
        n++;
    if (n < 12)
        return zipccl_place_fail(&at,
                                 "layer %zu of %" PRIu64 " has %zu columns, expected 12 (name, "
                                 "dependency, three times ns, call, bytes, process time)",
                                 w->nrows + 1, w->announced, n);
    if (simai_next_token(&line, &extra))
        ZIPCCL_TRY(zipccl_import_count(w->importer, false, "trailing words", w->line, 1,
                                       "lines with words after column 12, which are skipped, "
                                       "the first is %s",
                                       simai_quote(quoted, extra)));
    ZIPCCL_TRY(read_name(w, names, words[0], &row.name));
    sign = words[1];
    if (sign.p[0] == '-') {
        sign.p++;
        sign.n--;
    }
    ZIPCCL_TRY(simai_number(w, sign, "the dependency", NULL, NULL, NULL));
    for (int phase = 0; phase < SIMAI_PHASES; phase++)
        ZIPCCL_TRY(read_part(w, words + 2 + 3 * phase, phase, &row.part[phase]));
    ZIPCCL_TRY(simai_number(w, words[11], "the process time", NULL, NULL, NULL));
    return append_row(w, &row);
}

/* Read the next line that is not blank; 'line->p' is NULL at the end. */
static zipccl_status next_line(struct simai_workload *w, struct zipccl_lines *lines,
                               struct simai_token *line)
{
    struct simai_token rest, token;

    do {
        ZIPCCL_TRY(zipccl_lines_next(lines, &line->p, &line->n, w->importer->error));
        rest = *line;
    } while (line->p != NULL && zipccl_lines_number(lines) > 1 && !simai_next_token(&rest, &token));
    w->line = zipccl_lines_number(lines) + (line->p == NULL);
    return ZIPCCL_OK;
}

static zipccl_status read_count(struct simai_workload *w, struct simai_token line)
{
    struct zipccl_place at = simai_place(w);
    struct simai_token token, extra;
    char quoted[ZIPCCL_QUOTE_SIZE];
    bool rounded;

    if (line.p == NULL)
        return zipccl_place_fail(&at, "the end of the file, expected the number of layers");
    simai_next_token(&line, &token);
    ZIPCCL_TRY(simai_number(w, token, "the number of layers", NULL, &w->announced, &rounded));
    if (rounded || w->announced == 0 || simai_next_token(&line, &extra))
        return zipccl_place_fail(&at, "%s, expected the number of layers alone, from 1 up",
                                 simai_quote(quoted, token));
    return ZIPCCL_OK;
}

static zipccl_status read_lines(struct simai_workload *w, struct zipccl_lines *lines)
{
    struct zipccl_place at;
    struct names names = {.n = 0};
    struct simai_token line;

    ZIPCCL_TRY(next_line(w, lines, &line));
    at = simai_place(w);
    if (line.p == NULL)
        return zipccl_place_fail(&at, "an empty file, expected a mode such as "
                                      "HYBRID_TRANSFORMER_FWD_IN_BCKWD");
    if (line.n >= 3 && memcmp(line.p, "\xef\xbb\xbf", 3) == 0)
        line = (struct simai_token){line.p + 3, line.n - 3};
    ZIPCCL_TRY(simai_read_header(w, line));
    ZIPCCL_TRY(next_line(w, lines, &line));
    ZIPCCL_TRY(read_count(w, line));
    for (;;) {
        ZIPCCL_TRY(next_line(w, lines, &line));
        if (line.p == NULL)
            break;
        if (w->nrows < w->announced)
            ZIPCCL_TRY(read_row(w, &names, line));
        else
            ZIPCCL_TRY(zipccl_import_count(w->importer, true, "lines after layers", w->line, 1,
                                           "lines after the %" PRIu64 " layers that line 2 "
                                           "announces are skipped, as SimAI does",
                                           w->announced));
    }
    at = simai_place(w);
    if (w->nrows < w->announced)
        return zipccl_place_fail(&at,
                                 "the end of the file after %zu layers, expected %" PRIu64
                                 " as line 2 says: the file is cut",
                                 w->nrows, w->announced);
    return ZIPCCL_OK;
}

zipccl_status simai_read(struct simai_workload *w)
{
    struct zipccl_lines *lines;
    zipccl_status status;

    ZIPCCL_TRY(zipccl_lines_open(w->importer->paths[0], &lines, w->importer->error));
    status = read_lines(w, lines);
    zipccl_lines_close(lines);
    return status;
}

void simai_free(struct simai_workload *w)
{
    zipccl_arena_free(&w->arena);
    free(w->rows);
}
