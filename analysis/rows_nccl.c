/*
 * rows_nccl.c - rows of nccl-tests: its table, old and new, and its -J
 *
 * Columns are found by the names in the table's head, since versions differ: redop and root came
 * later, "error" became "#wrong", -S and -I add some.  Lines of NCCL itself between the rows are passed
 * over.  A table that does not end as nccl-tests ends it was cut off.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/rows_parts.h"

#include "analysis/document.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 40, WORD_SIZE = 48, MAX_HOSTS = 1024 };

bool zipccl_nccl_program_op(const char *program, enum zipccl_op *op)
{
    const char *name = strrchr(program, '/');
    char bare[32];
    size_t n;

    name = name != NULL ? name + 1 : program;
    n = strcspn(name, " \t\r\n");
    if (n > 5 && memcmp(name + n - 5, "_perf", 5) == 0)
        n -= 5;
    snprintf(bare, sizeof bare, "%.*s", (int)(n < sizeof bare ? n : 0), name);
    return zipccl_op_parse(bare, op);
}

zipccl_status zipccl_row_nccl_finish(const struct zipccl_row_place *at, double size_bytes,
                                     struct zipccl_row *row)
{
    double n = row->nranks, element = (double)zipccl_dtype_size(row->dtype);
    bool blocks = row->op == ZIPCCL_ALL_GATHER || row->op == ZIPCCL_REDUCE_SCATTER ||
                  row->op == ZIPCCL_ALLTOALL;
    double expected = (double)row->count * element * (blocks ? n : 1);

    /* The size is rounded down to whole elements, or is what was asked for. */
    if (fabs(size_bytes - expected) > element * n)
        return zipccl_row_fail(at,
                               "%.0f bytes of %.0f elements on %.0f ranks, expected %.0f bytes "
                               "for %s: another collective?",
                               size_bytes, (double)row->count, n, expected,
                               zipccl_op_name(row->op));
    snprintf(row->mode, sizeof row->mode, "native");
    snprintf(row->strategy, sizeof row->strategy, "native");
    row->size_bytes = size_bytes;
    row->raw_bytes = expected * (row->op == ZIPCCL_ALL_REDUCE ? 2 : 1) * (n - 1) / n;
    row->wire_bytes = row->raw_bytes;
    row->ratio = 1;
    return ZIPCCL_OK;
}

/* A table while it is read. */
struct table {
    struct zipccl_rows *rows;
    struct zipccl_error *error;
    unsigned line;
    int given_op, op; /* -1: not known */
    uint32_t nranks, nhosts;
    char hosts[MAX_HOSTS][WORD_SIZE]; /* [nhosts] */
    char names[MAX_WORDS][WORD_SIZE];
    size_t nnames; /* 0: no head yet */
    size_t nrows;  /* since the head */
    bool ended;
};

static zipccl_status fail_line(const struct table *t, const char *text)
{
    return zipccl_fail(t->error, ZIPCCL_ERR_INPUT, "%s: line %u: %s", t->rows->path, t->line, text);
}

/* Cut a line into words; words that are too long lose their end. */
static size_t split(const char *line, char words[MAX_WORDS][WORD_SIZE])
{
    size_t n = 0;

    while (n < MAX_WORDS) {
        size_t length;

        line += strspn(line, " \t\r");
        if (*line == '\0')
            break;
        length = strcspn(line, " \t\r");
        snprintf(words[n++], WORD_SIZE, "%.*s", (int)(length < WORD_SIZE ? length : WORD_SIZE - 1),
                 line);
        line += length;
    }
    return n;
}

static zipccl_status read_rank(struct table *t, const char *line)
{
    char host[WORD_SIZE], text[120];
    unsigned rank;
    const char *on = strstr(line, " on ");
    uint32_t h = 0;

    if (sscanf(line, "# Rank %u", &rank) != 1 || on == NULL || sscanf(on, " on %47s", host) != 1)
        return ZIPCCL_OK;
    if (rank != t->nranks) {
        snprintf(text, sizeof text,
                 "rank %u, expected rank %u; several runs in one, as without MPI?", rank,
                 t->nranks);
        return fail_line(t, text);
    }
    t->nranks++;
    while (h < t->nhosts && strcmp(t->hosts[h], host) != 0)
        h++;
    if (h == MAX_HOSTS)
        return fail_line(t, "more than 1024 hosts");
    if (h == t->nhosts)
        memcpy(t->hosts[t->nhosts++], host, WORD_SIZE);
    return ZIPCCL_OK;
}

static void start_test(struct table *t)
{
    t->op = t->given_op;
    t->nranks = t->nhosts = 0;
    t->nnames = t->nrows = 0;
    t->ended = false;
}

/* A line that begins with '#'. */
static zipccl_status read_comment(struct table *t, const char *line)
{
    static const char starting[] = "# Collective test starting: ";
    char words[MAX_WORDS][WORD_SIZE];
    enum zipccl_op op;
    size_t n;

    if (strncmp(line, starting, sizeof starting - 1) == 0) {
        start_test(t);
        if (!zipccl_nccl_program_op(line + sizeof starting - 1, &op))
            return fail_line(t, "a test of a collective that we do not have");
        if (t->given_op >= 0 && (int)op != t->given_op)
            return fail_line(t, "a test of another collective than --op says");
        t->op = (int)op;
        return ZIPCCL_OK;
    }
    if (strncmp(line, "# nThread", 9) == 0 && t->ended)
        start_test(t);
    if (strstr(line, "Out of bounds values") != NULL)
        t->ended = true;
    n = split(line + 1, words);
    if (n > 1 && strcmp(words[0], "Rank") == 0) {
        char again[256];

        snprintf(again, sizeof again, "# %s", line + 1 + strspn(line + 1, " \t"));
        return read_rank(t, again);
    }
    if (n < 5 || strcmp(words[0], "size") != 0 || strcmp(words[1], "count") != 0)
        return ZIPCCL_OK;
    memcpy(t->names, words, sizeof words);
    t->nnames = n;
    t->nrows = 0;
    return ZIPCCL_OK;
}

/* Columns of one line by the table's head; a blank redop takes no word. */
struct fields {
    const char *size, *count, *type, *redop, *root;
    const char *time[2], *algbw[2], *busbw[2], *wrong[2];
};

static bool name_fields(const struct table *t, char words[MAX_WORDS][WORD_SIZE], size_t n,
                        struct fields *f)
{
    size_t w = 0, nnames = t->nnames;
    int half = -1;
    bool stamp = strcmp(t->names[nnames - 1], "timestamp") == 0, blank;

    memset(f, 0, sizeof *f);
    nnames -= stamp;
    if (n > nnames && !stamp)
        return false;
    blank = n + 1 == nnames;
    if (!blank && n < nnames)
        return false;
    for (size_t i = 0; i < nnames; i++) {
        const char *name = t->names[i], *word;

        if (blank && strcmp(name, "redop") == 0) {
            blank = false;
            continue;
        }
        if (w >= n)
            return false;
        word = words[w++];
        half += strcmp(name, "time") == 0 || strcmp(name, "cputime") == 0;
        if (strcmp(name, "size") == 0)
            f->size = word;
        else if (strcmp(name, "count") == 0)
            f->count = word;
        else if (strcmp(name, "type") == 0)
            f->type = word;
        else if (strcmp(name, "redop") == 0)
            f->redop = word;
        else if (strcmp(name, "root") == 0)
            f->root = word;
        else if (half < 0 || half > 1)
            return false;
        else if (strcmp(name, "time") == 0 || strcmp(name, "cputime") == 0)
            f->time[half] = word;
        else if (strcmp(name, "algbw") == 0)
            f->algbw[half] = word;
        else if (strcmp(name, "busbw") == 0)
            f->busbw[half] = word;
        else if (strcmp(name, "#wrong") == 0 || strcmp(name, "error") == 0)
            f->wrong[half] = word;
    }
    return !blank && f->size != NULL && f->count != NULL && f->type != NULL && f->time[0] != NULL &&
           f->algbw[0] != NULL && f->busbw[0] != NULL;
}

/* A number of a table; NaN, infinities and words are none. */
static bool number(const char *word, double *out)
{
    char *end;
    double value;

    if (!isdigit((unsigned char)word[0]))
        return false;
    value = strtod(word, &end);
    if (*end != '\0' || !isfinite(value))
        return false;
    *out = value;
    return true;
}

/* The collective of a table that names none: what its sizes and rates leave. */
static zipccl_status guess_op(const struct table *t, const struct fields *f, double size,
                              struct zipccl_row *row)
{
    double element = (double)zipccl_dtype_size(row->dtype), algbw, busbw, n = row->nranks;
    bool whole = size == (double)row->count * element;

    if (t->op >= 0) {
        row->op = (enum zipccl_op)t->op;
        return ZIPCCL_OK;
    }
    if (!number(f->algbw[0], &algbw) || !number(f->busbw[0], &busbw))
        return fail_line(t, "algbw and busbw are no numbers");
    if (!whole && f->redop != NULL && strcmp(f->redop, "none") != 0) {
        row->op = ZIPCCL_REDUCE_SCATTER;
        return ZIPCCL_OK;
    }
    if (whole && f->redop != NULL && n > 2 && algbw > 1 &&
        fabs(busbw / algbw - 2 * (n - 1) / n) < 0.02) {
        row->op = ZIPCCL_ALL_REDUCE;
        return ZIPCCL_OK;
    }
    return fail_line(t, "the table does not say which collective it is of; expected --op OP, such "
                        "as --op all_gather");
}

static zipccl_status add_half(struct table *t, const struct fields *f, int half, double size,
                              const struct zipccl_row *call)
{
    struct zipccl_row_place at = {t->rows->path, 0, t->error};
    struct zipccl_row row = *call;
    char path[300];
    double us;

    if (f->time[half] == NULL)
        return ZIPCCL_OK;
    if (!number(f->time[half], &us))
        return fail_line(t, "a time that is no number");
    row.in_place = half == 1;
    row.time_s = us * 1e-6;
    if (f->wrong[half] != NULL && strcmp(f->wrong[half], "N/A") != 0 &&
        !number(f->wrong[half], &row.wrong))
        return fail_line(t, "#wrong is neither a number nor N/A");
    if (row.count > 0 && !(us > 0))
        return fail_line(t, "a time of 0, expected one above 0");
    if (row.count == 0) {
        t->rows->nskipped++;
        return ZIPCCL_OK;
    }
    snprintf(path, sizeof path, "%s: line %u", t->rows->path, t->line);
    at.path = path;
    ZIPCCL_TRY(zipccl_row_nccl_finish(&at, size, &row));
    return zipccl_rows_add(t->rows, &row, t->error);
}

/* Whether the table may name its op in a later row: these are too small to tell. */
static bool too_small(const struct table *t, const struct zipccl_row *row, double size)
{
    return t->op < 0 && (row->count == 0 || size < 1e6);
}

static zipccl_status read_row(struct table *t, char words[MAX_WORDS][WORD_SIZE], size_t n)
{
    struct zipccl_row row;
    struct fields f;
    double size, count, root;

    if (t->nnames == 0)
        return fail_line(t, "a row before the head of the table");
    if (t->nranks == 0)
        return fail_line(t, "no '#  Rank' lines before the table, so the number of ranks is not "
                            "known");
    if (!name_fields(t, words, n, &f))
        return fail_line(t, "a row that does not fit the head of the table; cut off?");
    zipccl_row_init(&row);
    row.place = t->line;
    row.nranks = t->nranks;
    row.nodes = t->nhosts;
    if (!number(f.size, &size) || !number(f.count, &count) || count > 9e15)
        return fail_line(t, "size or count is no number");
    row.count = (uint64_t)count;
    if (!zipccl_dtype_parse(f.type, &row.dtype))
        return fail_line(t, "a type that we do not have");
    if (f.redop != NULL && strcmp(f.redop, "none") != 0 && !zipccl_redop_parse(f.redop, &row.redop))
        return fail_line(t, "a reduction that we do not have");
    if (f.root != NULL && number(f.root, &root) && root < t->nranks)
        row.root = (uint32_t)root;
    if (too_small(t, &row, size)) {
        t->rows->nskipped += 1 + (f.time[1] != NULL);
        return ZIPCCL_OK;
    }
    ZIPCCL_TRY(guess_op(t, &f, size, &row));
    for (int half = 0; half < 2; half++)
        ZIPCCL_TRY(add_half(t, &f, half, size, &row));
    return ZIPCCL_OK;
}

static bool digits(const char *word)
{
    return word[0] != '\0' && word[strspn(word, "0123456789")] == '\0';
}

static zipccl_status read_table(const char *text, int op, struct zipccl_rows *rows,
                                struct zipccl_error *error)
{
    struct table t = {.rows = rows, .error = error, .given_op = op, .op = op};
    bool any = false;

    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        char line[1024], words[MAX_WORDS][WORD_SIZE];
        size_t n;

        snprintf(line, sizeof line, "%.*s", (int)(length < sizeof line ? length : 0), text);
        text += length + (text[length] == '\n');
        t.line++;
        if (line[0] == '#') {
            ZIPCCL_TRY(read_comment(&t, line));
            any = any || t.nnames > 0;
            continue;
        }
        n = split(line, words);
        if (n < 2 || !digits(words[0]) || !digits(words[1]))
            continue; /* NCCL's own lines, or the launcher's */
        if (!any)
            break;
        t.nrows++;
        ZIPCCL_TRY(read_row(&t, words, n));
    }
    if (!any)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%s: neither JSON nor a table of nccl-tests, whose head is "
                           "'#  size  count  type ...'",
                           rows->path);
    if (!t.ended)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%s: ends at line %u without '# Out of bounds values': cut off",
                           rows->path, t.line);
    return ZIPCCL_OK;
}

/* A table that names no collective: its large rows tell, then all can be read. */
zipccl_status zipccl_rows_nccl_table(const char *text, int op, struct zipccl_rows *rows,
                                     struct zipccl_error *error)
{
    struct zipccl_rows large = *rows;
    zipccl_status status;

    rows->kind = ZIPCCL_ROWS_NCCL;
    rows->measured = true;
    snprintf(rows->on, sizeof rows->on, "nccl");
    if (op < 0 && strstr(text, "# Collective test starting: ") == NULL) {
        status = read_table(text, op, &large, error);
        if (status == ZIPCCL_OK && large.n == 0)
            status = zipccl_fail(error, ZIPCCL_ERR_INPUT,
                                 "%s: does not say which collective it is of, and no row is large "
                                 "enough to tell; expected --op OP",
                                 rows->path);
        if (status == ZIPCCL_OK)
            op = (int)large.rows[0].op;
        free(large.rows);
        ZIPCCL_TRY(status);
    }
    return read_table(text, op, rows, error);
}

/* ---- JSON */

static zipccl_status read_world(yajl_val root, const struct zipccl_row_place *at,
                                struct zipccl_row *row)
{
    yajl_val config = zipccl_document_get(root, "config");
    size_t n = zipccl_document_length(config, "devices"), nhosts = 0;
    const char *hosts[MAX_HOSTS];

    if (n == 0)
        return zipccl_row_fail(at, "key \"config.devices\": expected a list, one entry a rank");
    for (size_t i = 0; i < n; i++) {
        const char *host =
            zipccl_document_text(zipccl_document_item(config, "devices", i), "hostname");
        size_t h = 0;

        while (h < nhosts && strcmp(hosts[h], host) != 0)
            h++;
        if (h == MAX_HOSTS)
            return zipccl_row_fail(at, "key \"config.devices\": more than %d hosts", MAX_HOSTS);
        if (h == nhosts)
            hosts[nhosts++] = host;
    }
    /* It lists one device a process only: the others follow from threads and GPUs of each. */
    double threads = zipccl_document_number(config, "nthreads");
    double gpus = zipccl_document_number(config, "ngpus");
    double each = threads >= 1 && gpus >= 1 ? threads * gpus : 1;

    if (each > 1024 || n > 65536)
        return zipccl_row_fail(at, "%zu processes of %.0f GPUs, which nobody has", n, each);
    row->nranks = (uint32_t)((double)n * each);
    row->nodes = (uint32_t)nhosts;
    return ZIPCCL_OK;
}

static zipccl_status json_op(yajl_val root, int op, const struct zipccl_row_place *at,
                             struct zipccl_row *row)
{
    yajl_val program = zipccl_document_item(root, "args", 0);
    enum zipccl_op told;
    bool known = YAJL_IS_STRING(program) && zipccl_nccl_program_op(YAJL_GET_STRING(program), &told);

    if (known && op >= 0 && (int)told != op)
        return zipccl_row_fail(at, "a test of another collective than --op says");
    if (!known && op < 0)
        return zipccl_row_fail(at, "key \"args\" does not say which collective it is of; expected "
                                   "--op OP, such as --op all_gather");
    row->op = known ? told : (enum zipccl_op)op;
    return ZIPCCL_OK;
}

static zipccl_status json_half(const struct zipccl_row_place *at, yajl_val item, int half,
                               const struct zipccl_row *call, double size, struct zipccl_rows *rows)
{
    static const char *const keys[] = {"out_of_place", "in_place"};
    yajl_val body = zipccl_document_get(item, keys[half]);
    struct zipccl_row row = *call;
    double us = NAN;

    if (body == NULL || YAJL_IS_NULL(body))
        return ZIPCCL_OK;
    ZIPCCL_TRY(zipccl_row_number(at, body, "cpu_time", false, &us));
    if (isnan(us))
        ZIPCCL_TRY(zipccl_row_number(at, body, "time", true, &us));
    ZIPCCL_TRY(zipccl_row_number(at, body, "nwrong", false, &row.wrong));
    row.in_place = half == 1;
    row.time_s = us * 1e-6;
    if (row.count > 0 && !(us > 0))
        return zipccl_row_fail(at, "a time of 0, expected one above 0");
    if (row.count == 0) {
        rows->nskipped++;
        return ZIPCCL_OK;
    }
    ZIPCCL_TRY(zipccl_row_nccl_finish(at, size, &row));
    return zipccl_rows_add(rows, &row, at->error);
}

zipccl_status zipccl_rows_nccl_json(yajl_val root, int op, struct zipccl_rows *rows,
                                    struct zipccl_error *error)
{
    struct zipccl_row_place at = {rows->path, 0, error};
    struct zipccl_row first;

    rows->kind = ZIPCCL_ROWS_NCCL;
    rows->measured = true;
    snprintf(rows->on, sizeof rows->on, "nccl");
    zipccl_row_init(&first);
    ZIPCCL_TRY(json_op(root, op, &at, &first));
    ZIPCCL_TRY(read_world(root, &at, &first));
    for (size_t i = 0; i < zipccl_document_length(root, "results"); i++) {
        yajl_val item = zipccl_document_item(root, "results", i);
        struct zipccl_row row = first;
        char type[32], redop[32] = "none";
        double size = 0;

        at.row = i + 1;
        row.place = (unsigned)(i + 1);
        ZIPCCL_TRY(zipccl_row_number(&at, item, "size", true, &size));
        ZIPCCL_TRY(zipccl_row_integer(&at, item, "count", true, (uint64_t)1 << 53, &row.count));
        ZIPCCL_TRY(zipccl_row_text(&at, item, "type", true, type, sizeof type));
        if (!zipccl_dtype_parse(type, &row.dtype))
            return zipccl_row_fail(&at, "key \"type\": there is no type \"%s\"", type);
        ZIPCCL_TRY(zipccl_row_text(&at, item, "redop", false, redop, sizeof redop));
        if (strcmp(redop, "none") != 0 && !zipccl_redop_parse(redop, &row.redop))
            return zipccl_row_fail(&at, "key \"redop\": there is no reduction \"%s\"", redop);
        for (int half = 0; half < 2; half++)
            ZIPCCL_TRY(json_half(&at, item, half, &row, size, rows));
    }
    return ZIPCCL_OK;
}
