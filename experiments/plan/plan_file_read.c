/*
 * plan_file_read.c - a plan from JSON, schema "zipccl.plan_steps": nothing in the file is trusted
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/document.h"
#include "core/regular_file.h"
#include "experiments/plan/plan_file.h"
#include "experiments/plan/plan_file_fields.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FILE_BYTES ((size_t)64 << 20)

/* Kernels read and write messages in pieces of so many bytes. */
#define WIRE_ALIGN 16u

/* What is being read, for errors. */
struct reading {
    const char *name;
    char at[64]; /* "step 3, src: ", "" for the plan itself */
    struct zipccl_error *error;
};

static zipccl_status fail(const struct reading *r, const char *key, const char *found,
                          const char *expected)
{
    return zipccl_fail(r->error, ZIPCCL_ERR_INPUT, "%.200s: %s'%s': found %.60s, expected %s",
                       r->name, r->at, key, found, expected);
}

/* What to call a value that is not as it should be. */
static const char *describe(yajl_val value)
{
    if (value == NULL)
        return "no such key";
    switch (value->type) {
    case yajl_t_string: return value->u.string;
    case yajl_t_number: return value->u.number.r;
    case yajl_t_object: return "an object";
    case yajl_t_array: return "an array";
    case yajl_t_null: return "null";
    default: return "true or false";
    }
}

/* A whole number of digits alone, no more than 'most'. */
static bool take_number(yajl_val value, uint64_t most, uint64_t *out)
{
    const char *text;
    char *end;

    if (!YAJL_IS_NUMBER(value))
        return false;
    text = YAJL_GET_NUMBER(value);
    if (text[0] < '0' || text[0] > '9' || strlen(text) > 15)
        return false;
    *out = strtoull(text, &end, 10);
    return *end == '\0' && *out <= most;
}

static zipccl_status take_word(const struct reading *r, yajl_val value, const struct plan_field *f,
                               uint64_t *out)
{
    char expected[160] = "one of";

    for (uint64_t i = 0; f->words[i] != NULL; i++) {
        size_t n = strlen(expected);

        if (YAJL_IS_STRING(value) && strcmp(value->u.string, f->words[i]) == 0) {
            *out = i;
            return ZIPCCL_OK;
        }
        snprintf(expected + n, sizeof expected - n, " %s", f->words[i]);
    }
    return fail(r, f->name, describe(value), expected);
}

/* Every field of the table from 'object', which has 'nothers' other keys and no more. */
static zipccl_status take_fields(const struct reading *r, yajl_val object,
                                 const struct plan_field *fields, size_t nothers, void *to)
{
    size_t n = nothers;

    for (const struct plan_field *f = fields; f->name != NULL; f++, n++) {
        yajl_val value = zipccl_document_get(object, f->name);
        uint64_t number = 0;
        char expected[64];

        if (f->words != NULL) {
            ZIPCCL_TRY(take_word(r, value, f, &number));
        } else if (f->none && value != NULL && value->type == yajl_t_null) {
            number = f->most + 1;
        } else if (!take_number(value, f->most, &number)) {
            snprintf(expected, sizeof expected, "a whole number, %" PRIu64 " at most%s", f->most,
                     f->none ? ", or null" : "");
            return fail(r, f->name, describe(value), expected);
        }
        plan_field_set(to, f, number);
    }
    if (object->u.object.len == n)
        return ZIPCCL_OK;
    return zipccl_fail(r->error, ZIPCCL_ERR_INPUT,
                       "%.200s: %sfound %zu keys, expected %zu: one is unknown or stands twice",
                       r->name, r->at, object->u.object.len, n);
}

static bool is_staging(const struct zipccl_place *p)
{
    return p->buf != ZIPCCL_BUF_SEND && p->buf != ZIPCCL_BUF_RECV;
}

/* Messages, and elements that lie in staging, where kernels can read them. */
static zipccl_status check_place(const struct reading *r, const struct zipccl_step *s,
                                 const struct zipccl_place *p, size_t element)
{
    size_t align = s->form != ZIPCCL_FORM_RAW && p->buf != ZIPCCL_BUF_TMP ? WIRE_ALIGN : element;

    if (!is_staging(p) || (p->base % align == 0 && p->peer_stride % align == 0 &&
                           p->self_stride % align == 0 && p->block_stride % align == 0))
        return ZIPCCL_OK;
    return zipccl_fail(r->error, ZIPCCL_ERR_INPUT,
                       "%.200s: %sfound places in staging that are no multiples of %zu bytes",
                       r->name, r->at, align);
}

static zipccl_status take_place(struct reading *r, yajl_val object, uint32_t i, int which,
                                struct zipccl_step *step, size_t element)
{
    const struct plan_place_name *name = &plan_place_names[which];
    struct zipccl_place *place = (struct zipccl_place *)(void *)((char *)step + name->offset);
    yajl_val value = zipccl_document_get(object, name->name);

    if (!YAJL_IS_OBJECT(value))
        return fail(r, name->name, describe(value), "an object");
    snprintf(r->at, sizeof r->at, "step %u, %s: ", i, name->name);
    ZIPCCL_TRY(take_fields(r, value, plan_place_fields, 0, place));
    ZIPCCL_TRY(check_place(r, step, place, element));
    snprintf(r->at, sizeof r->at, "step %u: ", i);
    return ZIPCCL_OK;
}

static zipccl_status take_deps(const struct reading *r, yajl_val object, uint32_t i,
                               struct zipccl_step *step)
{
    yajl_val value = zipccl_document_get(object, "after");
    char expected[64];

    snprintf(expected, sizeof expected, "an array of at most %d earlier steps",
             ZIPCCL_STEP_MAX_DEPS);
    if (!YAJL_IS_ARRAY(value) || value->u.array.len > ZIPCCL_STEP_MAX_DEPS)
        return fail(r, "after", describe(value), expected);
    for (size_t d = 0; d < value->u.array.len; d++) {
        uint64_t number;

        if (!take_number(value->u.array.values[d], UINT16_MAX, &number) || number >= i)
            return fail(r, "after", describe(value->u.array.values[d]), expected);
        step->deps[step->ndeps++] = (uint16_t)number;
    }
    return ZIPCCL_OK;
}

/* The lane follows from the kind. */
static uint8_t lane_of(uint8_t kind)
{
    bool codec = kind == ZIPCCL_STEP_ENCODE || kind == ZIPCCL_STEP_DECODE ||
                 kind == ZIPCCL_STEP_COPY || kind == ZIPCCL_STEP_REDUCE;

    return codec ? ZIPCCL_LANE_CODEC : ZIPCCL_LANE_WIRE;
}

static zipccl_status take_step(struct reading *r, yajl_val object, uint32_t i,
                               struct zipccl_plan *plan)
{
    struct zipccl_step *step = &plan->steps[i];
    size_t element = zipccl_dtype_size((enum zipccl_dtype)plan->dtype);

    snprintf(r->at, sizeof r->at, "step %u: ", i);
    if (!YAJL_IS_OBJECT(object))
        return fail(r, "steps", describe(object), "an object for each step");
    ZIPCCL_TRY(take_fields(r, object, plan_step_fields, 1 + PLAN_NUM_PLACES, step));
    step->lane = lane_of(step->kind);
    plan->compressed |= step->kind == ZIPCCL_STEP_ENCODE;
    ZIPCCL_TRY(take_deps(r, object, i, step));
    for (int k = 0; k < PLAN_NUM_PLACES; k++)
        ZIPCCL_TRY(take_place(r, object, i, k, step, element));
    return ZIPCCL_OK;
}

static zipccl_status take_steps(struct reading *r, yajl_val root, struct zipccl_plan *plan)
{
    yajl_val steps = zipccl_document_get(root, "steps");

    if (!YAJL_IS_ARRAY(steps) || steps->u.array.len == 0 || steps->u.array.len > ZIPCCL_STEP_NONE)
        return fail(r, "steps", describe(steps), "an array of 1 to 65535 steps");
    plan->steps = calloc(steps->u.array.len, sizeof *plan->steps);
    if (plan->steps == NULL)
        return zipccl_fail(r->error, ZIPCCL_ERR_NOMEM, "%.200s: out of memory", r->name);
    plan->nsteps = (uint32_t)steps->u.array.len;
    for (uint32_t i = 0; i < plan->nsteps; i++)
        ZIPCCL_TRY(take_step(r, steps->u.array.values[i], i, plan));
    r->at[0] = '\0';
    return ZIPCCL_OK;
}

/* The name in tables: printable, as long as plans' names are. */
static zipccl_status take_strategy(const struct reading *r, yajl_val root, struct zipccl_plan *plan)
{
    yajl_val value = zipccl_document_get(root, "strategy");
    size_t n = YAJL_IS_STRING(value) ? strlen(value->u.string) : 0;
    bool plain = n > 0 && n < sizeof plan->strategy;

    for (size_t i = 0; i < n; i++)
        plain = plain && value->u.string[i] >= ' ' && value->u.string[i] <= '~';
    if (!plain)
        return fail(r, "strategy", n > 0 ? "another text" : describe(value),
                    "a name of 1 to 47 ASCII characters");
    memcpy(plan->strategy, value->u.string, n + 1);
    return ZIPCCL_OK;
}

static zipccl_status check_schema(const struct reading *r, yajl_val root)
{
    yajl_val schema = zipccl_document_get(root, "schema");
    const char *name = zipccl_document_text(schema, "name");
    uint64_t version = 0;

    if (strcmp(name, ZIPCCL_PLAN_FILE_SCHEMA) != 0)
        return fail(r, "schema", name[0] != '\0' ? name : "none",
                    "\"" ZIPCCL_PLAN_FILE_SCHEMA "\", which 'zipccl plan -o' writes");
    if (!take_number(zipccl_document_get(schema, "version"), 1 << 20, &version) ||
        version != ZIPCCL_PLAN_FILE_VERSION)
        return fail(r, "version", describe(zipccl_document_get(schema, "version")), "1");
    return ZIPCCL_OK;
}

static zipccl_status check_digest(const struct reading *r, yajl_val root,
                                  const struct zipccl_plan *plan)
{
    yajl_val value = zipccl_document_get(root, "digest");
    char digest[20];

    snprintf(digest, sizeof digest, "%016" PRIx64, zipccl_plan_digest(plan));
    if (value == NULL || (YAJL_IS_STRING(value) && strcmp(value->u.string, digest) == 0))
        return ZIPCCL_OK;
    return zipccl_fail(r->error, ZIPCCL_ERR_INPUT,
                       "%.200s: 'digest': found %.40s, expected %s: the plan was changed; without "
                       "the key nothing is compared",
                       r->name, describe(value), digest);
}

static zipccl_status take_plan(struct reading *r, yajl_val root, struct zipccl_plan *plan,
                               uint32_t *nodes)
{
    bool digest = zipccl_document_get(root, "digest") != NULL;
    uint64_t number;

    if (!YAJL_IS_OBJECT(root))
        return zipccl_fail(r->error, ZIPCCL_ERR_INPUT, "%.200s: found %.60s, expected an object",
                           r->name, describe(root));
    ZIPCCL_TRY(check_schema(r, root));
    ZIPCCL_TRY(take_strategy(r, root, plan));
    /* Others: schema, strategy, nodes, steps. */
    ZIPCCL_TRY(take_fields(r, root, plan_fields, 4 + (size_t)digest, plan));
    if (!take_number(zipccl_document_get(root, "nodes"), plan->nranks, &number) || number == 0)
        return fail(r, "nodes", describe(zipccl_document_get(root, "nodes")),
                    "1 to the number of ranks");
    *nodes = (uint32_t)number;
    if (plan->count == 0)
        return fail(r, "count", "0", "a call that moves something");
    ZIPCCL_TRY(take_steps(r, root, plan));
    return check_digest(r, root, plan);
}

/* What document.c says of a text, which it takes for a result. */
static const char *said(const struct zipccl_error *why)
{
    static const char prefix[] = "result: ";

    return strncmp(why->text, prefix, sizeof prefix - 1) == 0 ? why->text + sizeof prefix - 1
                                                              : why->text;
}

zipccl_status zipccl_plan_file_parse(const char *name, const char *text, size_t nbytes,
                                     struct zipccl_plan **out, uint32_t *nodes,
                                     struct zipccl_error *error)
{
    struct reading r = {.name = name, .at = "", .error = error};
    struct zipccl_plan *plan = calloc(1, sizeof *plan);
    struct zipccl_error why = {""};
    yajl_val root = NULL;
    zipccl_status status =
        plan != NULL ? zipccl_document_parse(text, nbytes, &root, &why) : ZIPCCL_ERR_NOMEM;

    if (status != ZIPCCL_OK)
        zipccl_fail(error, status, "%.200s: %.250s", name,
                    plan != NULL ? said(&why) : "out of memory");
    else
        status = take_plan(&r, root, plan, nodes);
    yajl_tree_free(root);
    if (status == ZIPCCL_OK)
        *out = plan;
    else
        zipccl_plan_destroy(plan);
    return status;
}

static zipccl_status read_text(const char *path, FILE *file, char **text, size_t *nbytes,
                               struct zipccl_error *error)
{
    size_t room = 1 << 16, n = 0;
    char *more;

    do {
        more = realloc(*text, room *= 2);
        if (more == NULL)
            return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%.300s: out of memory", path);
        *text = more;
        n += fread(more + n, 1, room - n, file);
    } while (n == room && room < MOST_FILE_BYTES);
    if (ferror(file) || n == room)
        return zipccl_fail(error, ferror(file) ? ZIPCCL_ERR_IO : ZIPCCL_ERR_INPUT, "%.300s: %s",
                           path, ferror(file) ? "cannot be read" : "longer than 64 MiB");
    *nbytes = n;
    return ZIPCCL_OK;
}

zipccl_status zipccl_plan_file_read(const char *path, struct zipccl_plan **out, uint32_t *nodes,
                                    struct zipccl_error *error)
{
    char *text = NULL;
    size_t nbytes = 0;
    FILE *file;
    zipccl_status status;

    ZIPCCL_TRY(zipccl_open_regular(path, &file, error));
    status = read_text(path, file, &text, &nbytes, error);
    fclose(file);
    if (status == ZIPCCL_OK)
        status = zipccl_plan_file_parse(path, text, nbytes, out, nodes, error);
    free(text);
    return status;
}
