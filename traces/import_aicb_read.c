/*
 * import_aicb_read.c - the rows of AICB's .csv
 *
 *   [rank0 ~ rank127]                                          not in measured files
 *   comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,...
 *   CommType.all_gather,CommGroup.tp_group,8,20971520,forward.MegatronColumnLinear,None,None,,...
 *   CommType.computation,None,None,((2048, 1, 5120), (5120, 1920)),forward.attention,None,...
 *
 * Commas inside parentheses or quotes do not part columns, though AICB does not quote.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_aicb.h"

#include "traces/json.h"
#include "traces/lines.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_COLUMNS 64

enum column {
    COL_TYPE,
    COL_GROUP,
    COL_SIZE,
    COL_BYTES,
    COL_STAGE,
    COL_SRC,
    COL_ADDITIONAL,
    COL_ELAPSED,
    COL_COUNT,
    NCOLUMNS
};

static const char *const column_names[NCOLUMNS] = {"comm_type",  "comm_group",    "comm_group_size",
                                                   "msg_size",   "stage",         "src",
                                                   "additional", "_elapsed_time", "count"};

static const char *const type_names[AICB_TYPES] = {
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all",  "broadcast", "reduce",
    "barrier",    "isend",      "irecv",          "computation", "epoch_end"};

static const char *const group_names[AICB_GROUPS] = {"tp_group",    "dp_group", "ep_group",
                                                     "ep_dp_group", "pp_group", "all"};

const char *aicb_type_name(unsigned type)
{
    return type < AICB_TYPES ? type_names[type] : "?";
}

const char *aicb_group_name(unsigned group)
{
    return group < AICB_GROUPS ? group_names[group] : "?";
}

struct cell {
    const char *p;
    size_t n;
};

static struct zipccl_place place_of(const struct aicb_file *f)
{
    return (struct zipccl_place){f->importer->paths[0], f->line, f->importer->error};
}

static const char *quote(char out[ZIPCCL_QUOTE_SIZE], struct cell c)
{
    char text[ZIPCCL_QUOTE_SIZE];

    snprintf(text, sizeof text, "%.*s", (int)(c.n < sizeof text - 1 ? c.n : sizeof text - 1), c.p);
    return zipccl_quote(out, text);
}

static struct cell trim(struct cell c)
{
    while (c.n > 0 && isspace((unsigned char)c.p[0]))
        c = (struct cell){c.p + 1, c.n - 1};
    while (c.n > 0 && isspace((unsigned char)c.p[c.n - 1]))
        c.n--;
    if (c.n >= 2 && c.p[0] == '"' && c.p[c.n - 1] == '"')
        c = (struct cell){c.p + 1, c.n - 2};
    return c;
}

/* Cells of a line; more than MAX_COLUMNS are not told apart. */
static size_t split(struct cell line, struct cell out[MAX_COLUMNS])
{
    size_t n = 0, start = 0;
    int depth = 0;
    bool quoted = false;

    for (size_t i = 0; i <= line.n; i++) {
        char c = i < line.n ? line.p[i] : ',';

        if (i < line.n) {
            quoted ^= c == '"';
            depth += !quoted && (c == '(' || c == '[');
            depth -= !quoted && (c == ')' || c == ']') && depth > 0;
        }
        if (i < line.n && (c != ',' || quoted || depth > 0))
            continue;
        if (n < MAX_COLUMNS)
            out[n++] = trim((struct cell){line.p + start, i - start});
        start = i + 1;
    }
    return n;
}

static bool is(struct cell c, const char *word)
{
    return strlen(word) == c.n && memcmp(c.p, word, c.n) == 0;
}

static bool is_none(struct cell c)
{
    return c.n == 0 || is(c, "None") || is(c, "nan") || is(c, "NaN");
}

/* A number from 0 to 'max', with or without point and exponent. */
static bool number(struct cell c, double max, double *out)
{
    char text[48], *end;

    if (c.n == 0 || c.n >= sizeof text || !(isdigit((unsigned char)c.p[0]) || c.p[0] == '.'))
        return false;
    memcpy(text, c.p, c.n);
    text[c.n] = '\0';
    if (text[strspn(text, "0123456789.eE+-")] != '\0')
        return false;
    *out = strtod(text, &end);
    return *end == '\0' && *out >= 0 && *out <= max;
}

static zipccl_status wrong(const struct aicb_file *f, enum column column, struct cell found,
                           const char *expected)
{
    struct zipccl_place at = place_of(f);
    char quoted[ZIPCCL_QUOTE_SIZE];

    return zipccl_place_fail(&at, "%s %s, expected %s", column_names[column], quote(quoted, found),
                             expected);
}

static zipccl_status take_header(struct aicb_file *f, const struct cell *cells, size_t n)
{
    struct zipccl_place at = place_of(f);

    for (int k = 0; k < NCOLUMNS; k++) {
        f->columns[k] = -1;
        for (size_t i = 0; i < n; i++)
            if (is(cells[i], column_names[k]))
                f->columns[k] = (int)i;
        if (f->columns[k] < 0 && k <= COL_STAGE)
            return zipccl_place_fail(&at,
                                     "a first line without column \"%s\", expected that of "
                                     "AICB: comm_type,comm_group,comm_group_size,msg_size,"
                                     "stage,...",
                                     column_names[k]);
    }
    f->ncolumns = (uint32_t)n;
    return ZIPCCL_OK;
}

/* "[rank0 ~ rank127]" */
static zipccl_status take_ranks(struct aicb_file *f, struct cell line)
{
    struct zipccl_place at = place_of(f);
    char text[64], quoted[ZIPCCL_QUOTE_SIZE];
    unsigned first, last;
    int end = 0;

    snprintf(text, sizeof text, "%.*s", (int)(line.n < 63 ? line.n : 63), line.p);
    if (sscanf(text, "[rank%7u ~ rank%7u]%n", &first, &last, &end) != 2 || end == 0 || last < first)
        return zipccl_place_fail(&at, "%s, expected ranks as \"[rank0 ~ rank127]\"",
                                 quote(quoted, line));
    f->world = (uint64_t)last + 1;
    return ZIPCCL_OK;
}

/* The cell of a column; empty if the row lacks it. */
static struct cell cell_of(const struct aicb_file *f, const struct cell *cells, size_t n,
                           enum column column)
{
    int i = f->columns[column];

    return i >= 0 && (size_t)i < n ? cells[i] : (struct cell){"", 0};
}

static bool find_word(struct cell c, const char *prefix, const char *const *names, unsigned n,
                      uint8_t *out)
{
    size_t skip = strlen(prefix);

    if (c.n > skip && memcmp(c.p, prefix, skip) == 0)
        c = (struct cell){c.p + skip, c.n - skip};
    for (unsigned i = 0; i < n; i++)
        if (is(c, names[i])) {
            *out = (uint8_t)i;
            return true;
        }
    return false;
}

/* Two times the product of the first shape and the last number: "((s, b, h), (h, n))". */
static bool gemm_flops(struct cell c, double *out)
{
    double product = 2, last = 0;
    unsigned shapes = 0, n = 0;

    for (size_t i = 0; i < c.n;) {
        if (isdigit((unsigned char)c.p[i])) {
            size_t length = 0;
            double value;

            while (i + length < c.n && isdigit((unsigned char)c.p[i + length]))
                length++;
            if (!number((struct cell){c.p + i, length}, 1e15, &value))
                return false;
            product *= shapes == 0 ? value : 1;
            last = value;
            n++;
            i += length;
            continue;
        }
        shapes += c.p[i] == ')' && shapes < 2;
        i++;
    }
    *out = product * last;
    return shapes == 2 && n >= 4 && *out <= 1e21;
}

static zipccl_status take_size(struct aicb_file *f, const struct aicb_row *row, struct cell c)
{
    struct zipccl_place at = place_of(f);
    uint32_t *size = &f->sizes[row->group];
    double value;

    if (!number(c, 1 << 20, &value) || value < 1 || value != floor(value))
        return wrong(f, COL_SIZE, c, "the number of ranks in the group");
    if (row->type == AICB_ISEND || row->type == AICB_IRECV) /* 1 in older files */
        value = value > *size ? value : *size;
    if (*size != 0 && *size != (uint32_t)value && row->group != AICB_PP)
        return zipccl_place_fail(&at, "%s of %.0f ranks, expected %" PRIu32 " as in line %" PRIu64,
                                 group_names[row->group], value, *size, f->size_lines[row->group]);
    if (*size == 0)
        f->size_lines[row->group] = f->line;
    *size = (uint32_t)value;
    return ZIPCCL_OK;
}

static zipccl_status take_payload(struct aicb_file *f, struct aicb_row *row, struct cell c)
{
    double value;

    if (row->type == AICB_COMPUTATION) {
        if (!gemm_flops(c, &row->flops))
            row->flops = -1;
        return ZIPCCL_OK;
    }
    if (row->type == AICB_EPOCH_END)
        return ZIPCCL_OK;
    if (!number(c, (double)ZIPCCL_JSON_MAX_INTEGER, &value))
        return wrong(f, COL_BYTES, c, "a number of bytes");
    row->bytes = (uint64_t)ceil(value);
    f->rounded += value != floor(value);
    return ZIPCCL_OK;
}

static zipccl_status take_optional(struct aicb_file *f, struct aicb_row *row,
                                   const struct cell *cells, size_t n)
{
    struct cell c = cell_of(f, cells, n, COL_ELAPSED);
    double value;

    if (!is_none(c)) {
        if (!number(c, 1e9, &value))
            return wrong(f, COL_ELAPSED, c, "milliseconds or None");
        row->seconds = 1e-3 * value;
    }
    c = cell_of(f, cells, n, COL_COUNT);
    if (!is_none(c)) {
        if (!number(c, 1 << 30, &value) || value < 1 || value != floor(value))
            return wrong(f, COL_COUNT, c, "a number from 1 up");
        row->repeat = (uint64_t)value;
    }
    c = cell_of(f, cells, n, COL_SRC);
    if (row->type == AICB_BROADCAST && number(c, 1 << 20, &value))
        row->root = (uint32_t)value;
    c = cell_of(f, cells, n, COL_ADDITIONAL);
    row->overlap = is(c, "overlap");
    row->backward =
        is(c, "send_prev") || is(c, "recv_next") ||
        (!is(c, "send_next") && !is(c, "recv_prev") && strncmp(row->stage, "backward", 8) == 0);
    return ZIPCCL_OK;
}

static zipccl_status take_row(struct aicb_file *f, const struct cell *cells, size_t n)
{
    struct zipccl_place at = place_of(f);
    struct aicb_row row = {.line = f->line, .flops = -1, .seconds = -1, .repeat = 1};
    struct cell c = cell_of(f, cells, n, COL_TYPE);

    if (n < f->ncolumns)
        return zipccl_place_fail(&at, "%zu columns, expected %" PRIu32 ": the file was cut?", n,
                                 f->ncolumns);
    if (!find_word(c, "CommType.", type_names, AICB_TYPES, &row.type))
        return wrong(f, COL_TYPE, c,
                     "CommType.all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, "
                     "reduce, barrier, isend, irecv, computation or epoch_end");
    c = cell_of(f, cells, n, COL_STAGE);
    row.stage = zipccl_arena_string(&f->arena, c.p, c.n);
    if (row.stage == NULL)
        return zipccl_place_nomem(&at);
    row.init = strncmp(row.stage, "init", 4) == 0;
    row.group = AICB_NO_GROUP;
    f->nepochs += row.type == AICB_EPOCH_END;
    if (row.type != AICB_COMPUTATION && row.type != AICB_EPOCH_END) {
        c = cell_of(f, cells, n, COL_GROUP);
        if (!find_word(c, "CommGroup.", group_names, AICB_GROUPS, &row.group))
            return wrong(f, COL_GROUP, c,
                         "CommGroup.tp_group, dp_group, ep_group, ep_dp_group, pp_group or all");
        ZIPCCL_TRY(take_size(f, &row, cell_of(f, cells, n, COL_SIZE)));
    }
    ZIPCCL_TRY(take_payload(f, &row, cell_of(f, cells, n, COL_BYTES)));
    ZIPCCL_TRY(take_optional(f, &row, cells, n));
    if (f->nrows == f->room) {
        size_t room = f->room * 2 + 64;
        struct aicb_row *rows = realloc(f->rows, room * sizeof *rows);

        if (rows == NULL)
            return zipccl_place_nomem(&at);
        f->rows = rows;
        f->room = room;
    }
    f->rows[f->nrows++] = row;
    return ZIPCCL_OK;
}

static zipccl_status take_line(struct aicb_file *f, struct cell line)
{
    struct cell cells[MAX_COLUMNS];
    size_t n;

    if (f->line == 1 && line.n >= 3 && memcmp(line.p, "\xef\xbb\xbf", 3) == 0)
        line = (struct cell){line.p + 3, line.n - 3};
    line = trim(line);
    if (line.n == 0)
        return ZIPCCL_OK;
    if (f->ncolumns == 0 && f->world == 0 && line.p[0] == '[')
        return take_ranks(f, line);
    n = split(line, cells);
    return f->ncolumns == 0 ? take_header(f, cells, n) : take_row(f, cells, n);
}

/* Gradients are summed in fp32 where they take twice the bytes of parameters of the same group. */
static void compare_gradients(struct aicb_file *f)
{
    for (unsigned group = 0; group < AICB_GROUPS; group++) {
        uint64_t params = 0, grads = 0;

        for (size_t i = 0; i < f->nrows; i++) {
            const struct aicb_row *r = &f->rows[i];

            if (r->init || r->group != group || (group != AICB_DP && group != AICB_EP_DP))
                continue;
            if (r->type == AICB_ALL_GATHER)
                params = r->bytes > params ? r->bytes : params;
            if (r->type == AICB_REDUCE_SCATTER)
                grads = r->bytes > grads ? r->bytes : grads;
        }
        f->wide_gradients |= params > 64 && grads == 2 * params;
    }
}

zipccl_status aicb_read(struct aicb_file *f)
{
    struct zipccl_place at = {f->importer->paths[0], 0, f->importer->error};
    struct zipccl_lines *lines;
    zipccl_status status;
    const char *line;
    size_t n;

    ZIPCCL_TRY(zipccl_lines_open(f->importer->paths[0], &lines, f->importer->error));
    do {
        status = zipccl_lines_next(lines, &line, &n, f->importer->error);
        f->line = zipccl_lines_number(lines);
        if (status == ZIPCCL_OK && line != NULL)
            status = take_line(f, (struct cell){line, n});
    } while (status == ZIPCCL_OK && line != NULL);
    zipccl_lines_close(lines);
    ZIPCCL_TRY(status);
    if (f->ncolumns == 0)
        return zipccl_place_fail(&at, "no line with columns, expected \"comm_type,comm_group,"
                                      "comm_group_size,msg_size,stage,...\"");
    compare_gradients(f);
    return ZIPCCL_OK;
}

void aicb_free(struct aicb_file *f)
{
    free(f->rows);
    zipccl_arena_free(&f->arena);
}
