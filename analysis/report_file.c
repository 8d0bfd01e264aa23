/*
 * report_file.c - reads a result file of any schema that a page is made of, and checks it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/report_file.h"

#include "analysis/document.h"
#include "analysis/result_check.h"
#include "analysis/sweep_html.h"
#include "core/dtype.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILE_BYTES ((size_t)64 << 20)

static const char expected[] = "expected zipccl.replay, .sweep, .perf, .compare, .plan, "
                               ".codec-bench or .device_check, or a result of nccl-tests";

static zipccl_status check_version(yajl_val holder, const char *name, const char *path,
                                   struct zipccl_error *error)
{
    yajl_val version = zipccl_document_get(holder, "version");

    if (!YAJL_IS_NUMBER(version))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: schema %s: version: found %s, expected 1",
                           path, name, zipccl_value_kind(version));
    if (zipccl_document_number(holder, "version") != 1)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: schema %s has version %.20s, expected 1",
                           path, name, YAJL_GET_NUMBER(version));
    return ZIPCCL_OK;
}

/* The parts of a step add up to it, as its picture shows. */
static zipccl_status check_steps(yajl_val root, const char *path, struct zipccl_error *error)
{
    static const char *const modes[] = {"raw", "compressed", "adaptive"};
    static const char *const parts[] = {"compute_s", "codec_slow_s", "exposed_s", "wait_s"};

    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        yajl_val step = zipccl_document_get(zipccl_document_get(root, "steps"), modes[m]);
        double whole = zipccl_document_number(step, "step_s"), sum = 0;

        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
            double part = zipccl_document_number(step, parts[k]);

            sum += isnan(part) ? 0 : part;
        }
        if (fabs(sum - whole) > 1e-3 * whole) /* false without a step */
            return zipccl_fail(
                error, ZIPCCL_ERR_INPUT,
                "%s: steps.%s: found parts of %.9g s in all, expected step_s, %.9g s", path,
                modes[m], sum, whole);
    }
    return ZIPCCL_OK;
}

/* What the rules cannot say: words of a list, and rows that the picture needs to know. */
static zipccl_status check_replay(yajl_val root, const char *path, struct zipccl_error *error)
{
    size_t nrows = zipccl_document_length(root, "rows");
    const char *kind, *tier;

    ZIPCCL_TRY(zipccl_result_check(root, zipccl_replay_rules, path, error));
    ZIPCCL_TRY(check_steps(root, path, error));
    kind = zipccl_document_text(root, "kind");
    if (strcmp(kind, "simulated") != 0 && strcmp(kind, "measured") != 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%s: kind: found another word, expected simulated or measured", path);
    tier = zipccl_document_text(root, "fidelity");
    if (strcmp(kind, "simulated") == 0 && strcmp(tier, "t0") != 0 && strcmp(tier, "t1") != 0 &&
        strcmp(tier, "t2") != 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%s: fidelity: found another word, expected t0, t1 or t2", path);
    for (size_t i = 0; i < nrows; i++) {
        yajl_val row = zipccl_document_item(root, "rows", i);
        enum zipccl_op op;
        enum zipccl_dtype dtype;

        if (!zipccl_op_parse(zipccl_document_text(row, "op"), &op))
            return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                               "%s: rows[%zu].op: there is no such collective", path, i);
        if (!zipccl_dtype_parse(zipccl_document_text(row, "dtype"), &dtype))
            return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                               "%s: rows[%zu].dtype: there is no such type", path, i);
    }
    return ZIPCCL_OK;
}

static zipccl_status check_notes(yajl_val root, const char *path, struct zipccl_error *error)
{
    static const struct zipccl_rule rules[] = {
        {"settings", ZIPCCL_RULE_LIST, false, zipccl_note_rules},
        {"assumptions", ZIPCCL_RULE_LIST, false, zipccl_note_rules},
        {NULL, ZIPCCL_RULE_TEXT, false, NULL}};

    return zipccl_result_check(root, rules, path, error);
}

/* The schema's name, and the object that has its version; codec bench has both at the top. */
static const char *schema_of(yajl_val root, yajl_val *holder)
{
    yajl_val schema = zipccl_document_get(root, "schema");

    *holder = YAJL_IS_STRING(schema) ? root : schema;
    return YAJL_IS_STRING(schema) ? YAJL_GET_STRING(schema) : zipccl_document_text(schema, "name");
}

static zipccl_status check_form(struct zipccl_report_file *file, const char *name, yajl_val holder,
                                struct zipccl_error *error)
{
    for (const struct zipccl_form *form = zipccl_forms; form->schema != NULL; form++) {
        if (strcmp(form->schema, name) != 0)
            continue;
        file->form = form;
        ZIPCCL_TRY(check_version(holder, form->schema, file->path, error));
        ZIPCCL_TRY(check_notes(file->root, file->path, error));
        return zipccl_form_check(form, file->root, file->path, error);
    }
    for (const char *p = name; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            name = "?"; /* nothing that a terminal obeys */
    return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: found %s%.60s%s, %s", file->path,
                       name[0] != '\0' ? "schema \"" : "JSON without a schema", name,
                       name[0] != '\0' ? "\"" : "", expected);
}

static bool is_nccl(yajl_val root)
{
    return YAJL_IS_ARRAY(zipccl_document_get(root, "results")) &&
           zipccl_document_get(root, "nccl_version") != NULL;
}

static zipccl_status check_json(struct zipccl_report_file *file, const char *text, size_t nbytes,
                                struct zipccl_error *error)
{
    yajl_val holder;
    const char *name = schema_of(file->root, &holder);

    if (strcmp(name, "zipccl.replay") == 0) {
        ZIPCCL_TRY(check_version(holder, name, file->path, error));
        return check_replay(file->root, file->path, error);
    }
    if (strcmp(name, "zipccl.sweep") == 0) {
        file->sweep = true;
        ZIPCCL_TRY(check_version(holder, name, file->path, error));
        return zipccl_sweep_check(file->root, file->path, error);
    }
    if (strcmp(name, "zipccl.perf") != 0 && !is_nccl(file->root))
        return check_form(file, name, holder, error);
    ZIPCCL_TRY(zipccl_rows_parse(file->path, text, nbytes, -1, &file->rows, error));
    return check_notes(file->root, file->path, error);
}

zipccl_status zipccl_report_parse(const char *path, const char *text, size_t nbytes,
                                  struct zipccl_report_file **out, struct zipccl_error *error)
{
    struct zipccl_report_file *file = calloc(1, sizeof *file);
    struct zipccl_error why = {""};
    size_t start = 0;
    zipccl_status status;

    if (file == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
    file->path = path;
    while (start < nbytes && (text[start] == ' ' || text[start] == '\t' || text[start] == '\r' ||
                              text[start] == '\n'))
        start++;
    if (start < nbytes && text[start] != '{') {
        status = zipccl_rows_parse(path, text, nbytes, -1, &file->rows, error);
    } else {
        status = zipccl_document_parse(text, nbytes, &file->root, &why);
        if (status == ZIPCCL_OK)
            status = check_json(file, text, nbytes, error);
        else
            zipccl_fail(error, status, "%s: %s", path,
                        strncmp(why.text, "result: ", 8) == 0 ? why.text + 8 : why.text);
    }
    if (status != ZIPCCL_OK) {
        zipccl_report_destroy(file);
        return status;
    }
    *out = file;
    return ZIPCCL_OK;
}

zipccl_status zipccl_report_read(const char *path, struct zipccl_report_file **out,
                                 struct zipccl_error *error)
{
    char *text = NULL;
    size_t nbytes = 0;
    zipccl_status status;

    ZIPCCL_TRY(zipccl_document_read(path, MAX_FILE_BYTES, &text, &nbytes, error));
    status = zipccl_report_parse(path, text, nbytes, out, error);
    free(text);
    return status;
}

void zipccl_report_destroy(struct zipccl_report_file *file)
{
    if (file == NULL)
        return;
    if (file->root != NULL)
        yajl_tree_free(file->root);
    zipccl_rows_destroy(file->rows);
    free(file);
}

const char *zipccl_report_schema(const struct zipccl_report_file *file)
{
    if (file->form != NULL)
        return file->form->schema;
    if (file->rows == NULL)
        return file->sweep ? "zipccl.sweep" : "zipccl.replay";
    return file->rows->kind == ZIPCCL_ROWS_NCCL ? "nccl-tests" : "zipccl.perf";
}
