/*
 * form.c - results that are a head and tables: check and page
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/form.h"

#include "analysis/document.h"
#include "analysis/page.h"
#include "analysis/result_check.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 32, MAX_KEY = 40 };

/* The value under a key with dots; NULL if there is none on the way. */
static yajl_val at(yajl_val object, const char *key)
{
    char step[MAX_KEY];

    for (;;) {
        size_t n = strcspn(key, ".");

        snprintf(step, sizeof step, "%.*s", (int)n, key);
        object = zipccl_document_get(object, step);
        if (key[n] == '\0' || object == NULL)
            return object;
        key += n + 1;
    }
}

static enum zipccl_rule_kind rule_kind(const struct zipccl_column *column)
{
    switch (column->kind) {
    case ZIPCCL_COLUMN_TEXT: return ZIPCCL_RULE_TEXT;
    case ZIPCCL_COLUMN_BOOL: return ZIPCCL_RULE_BOOL;
    default: return ZIPCCL_RULE_NUMBER;
    }
}

static void rules_of(const struct zipccl_column *columns, struct zipccl_rule *rules)
{
    size_t n = 0;

    for (; columns[n].key != NULL && n < MAX_COLUMNS; n++)
        rules[n] =
            (struct zipccl_rule){columns[n].key, rule_kind(&columns[n]), columns[n].must, NULL};
    rules[n].key = NULL;
}

/* Check the value under a key with dots by a rule of one key. */
static zipccl_status check_at(yajl_val result, struct zipccl_rule rule, const char *path,
                              struct zipccl_error *error)
{
    struct zipccl_rule levels[4][2] = {{{.key = NULL}}};
    char keys[4][MAX_KEY];
    const char *key = rule.key;
    size_t depth = 0;

    for (;; depth++) {
        size_t n = strcspn(key, ".");
        bool last = key[n] == '\0' || depth == 3;

        snprintf(keys[depth], sizeof keys[depth], "%.*s", (int)n, key);
        levels[depth][0] = rule;
        levels[depth][0].key = keys[depth];
        if (last)
            break;
        levels[depth][0].kind = ZIPCCL_RULE_OBJECT;
        levels[depth][0].rules = levels[depth + 1];
        key += n + 1;
    }
    return zipccl_result_check(result, levels[0], path, error);
}

zipccl_status zipccl_form_check(const struct zipccl_form *form, yajl_val result, const char *path,
                                struct zipccl_error *error)
{
    struct zipccl_rule rules[MAX_COLUMNS + 1];

    for (const struct zipccl_column *c = form->head; c->key != NULL; c++)
        ZIPCCL_TRY(check_at(result, (struct zipccl_rule){c->key, rule_kind(c), c->must, NULL}, path,
                            error));
    for (const struct zipccl_form_table *t = form->tables; t->key != NULL; t++) {
        struct zipccl_rule rule = {t->key, t->by_name ? ZIPCCL_RULE_MAP : ZIPCCL_RULE_LIST, t->must,
                                   rules};

        rules_of(t->columns, rules);
        ZIPCCL_TRY(check_at(result, rule, path, error));
    }
    return ZIPCCL_OK;
}

static void put_number(yajl_val value, const struct zipccl_column *column, FILE *out)
{
    zipccl_put_fixed(column->scale * strtod(YAJL_GET_NUMBER(value), NULL), column->decimals, out);
}

static void put_cell(yajl_val row, const struct zipccl_column *column, FILE *out)
{
    yajl_val value = zipccl_document_get(row, column->key);

    if (column->kind == ZIPCCL_COLUMN_NUMBER) {
        zipccl_page_value(row, column->key, column->scale, column->decimals, out);
        return;
    }
    if (column->kind == ZIPCCL_COLUMN_TEXT)
        zipccl_page_text(zipccl_document_text(row, column->key), out);
    else
        zipccl_page_text(YAJL_IS_TRUE(value) ? "yes" : YAJL_IS_FALSE(value) ? "no" : "", out);
}

static void put_head_cells(const struct zipccl_form_table *table, FILE *out)
{
    fputs("<div class=\"scroll\"><table class=\"rows\"><thead><tr>", out);
    if (table->by_name)
        fputs("<th class=\"l\"></th>", out);
    for (const struct zipccl_column *c = table->columns; c->key != NULL; c++)
        fprintf(out, "<th%s>%s</th>", c->kind == ZIPCCL_COLUMN_NUMBER ? "" : " class=\"l\"",
                c->title);
    fputs("</tr></thead><tbody>\n", out);
}

static void put_cells(yajl_val row, const char *name, const struct zipccl_form_table *table,
                      FILE *out)
{
    fputs("<tr>", out);
    if (name != NULL)
        zipccl_page_text(name, out);
    for (const struct zipccl_column *c = table->columns; c->key != NULL; c++)
        put_cell(row, c, out);
    fputs("</tr>\n", out);
}

static void put_table(const struct zipccl_form_table *table, yajl_val result, int level, FILE *out)
{
    yajl_val value = at(result, table->key);
    size_t n = YAJL_IS_ARRAY(value)    ? value->u.array.len
               : YAJL_IS_OBJECT(value) ? value->u.object.len
                                       : 0;

    if (n == 0)
        return;
    zipccl_page_heading(level, table->title, out);
    put_head_cells(table, out);
    for (size_t i = 0; i < n; i++)
        if (table->by_name)
            put_cells(value->u.object.values[i], value->u.object.keys[i], table, out);
        else
            put_cells(value->u.array.values[i], NULL, table, out);
    fputs("</tbody></table></div>\n", out);
}

static void put_term(const struct zipccl_column *column, yajl_val value, FILE *out)
{
    fprintf(out, "<dt>%s</dt><dd>", column->title);
    if (YAJL_IS_STRING(value))
        zipccl_put_escaped(YAJL_GET_STRING(value), out);
    else if (YAJL_IS_NUMBER(value))
        put_number(value, column, out);
    else
        fputs(YAJL_IS_TRUE(value) ? "yes" : "no", out);
    fputs("</dd>\n", out);
}

void zipccl_form_section(const struct zipccl_form *form, yajl_val result, int level, FILE *out)
{
    if (YAJL_IS_TRUE(zipccl_document_get(result, "emulated")))
        fputs(
            "<p class=\"banner\"><strong>Emulated, not run on a GPU.</strong> No time below means "
            "anything.</p>\n",
            out);
    fputs("<dl>\n", out);
    for (const struct zipccl_column *c = form->head; c->key != NULL; c++) {
        yajl_val value = at(result, c->key);

        if (value != NULL && !YAJL_IS_NULL(value) &&
            !(YAJL_IS_STRING(value) && YAJL_GET_STRING(value)[0] == '\0'))
            put_term(c, value, out);
    }
    fputs("</dl>\n", out);
    for (const struct zipccl_form_table *t = form->tables; t->key != NULL; t++)
        put_table(t, result, level, out);
    zipccl_page_notes(result, "settings", level, "Settings", out);
}
