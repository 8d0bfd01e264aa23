/*
 * result_check.c - whether a parsed result has the form of its schema, told by a table of rules
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/result_check.h"

#include "analysis/document.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No time, size or rate of a result is as large. */
#define MOST 1e18

/* Where a value stands: "rows[3].ratio". */
struct place {
    const char *path;
    char at[160];
    struct zipccl_error *error;
};

const char *zipccl_value_kind(yajl_val value)
{
    if (value == NULL)
        return "nothing";
    switch (value->type) {
    case yajl_t_string: return "a text";
    case yajl_t_number: return "a number";
    case yajl_t_object: return "an object";
    case yajl_t_array: return "a list";
    case yajl_t_true:
    case yajl_t_false: return "true or false";
    default: return "null";
    }
}

static zipccl_status found(const struct place *place, yajl_val value, const char *expected)
{
    return zipccl_fail(place->error, ZIPCCL_ERR_INPUT, "%s: %s: found %s, expected %s", place->path,
                       place->at, zipccl_value_kind(value), expected);
}

/* Go on to what is under 'key' or at index 'i' of the list; returns where to cut again. */
static size_t enter(struct place *place, const char *key)
{
    size_t length = strlen(place->at);

    snprintf(place->at + length, sizeof place->at - length, "%s%.60s", length > 0 ? "." : "", key);
    /* Keys of a map are the file's: nothing that a terminal obeys. */
    for (char *p = place->at + length; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    return length;
}

static size_t enter_item(struct place *place, size_t i)
{
    size_t length = strlen(place->at);

    snprintf(place->at + length, sizeof place->at - length, "[%zu]", i);
    return length;
}

static zipccl_status check_number(const struct place *place, yajl_val value, bool amount)
{
    const char *expected = amount ? "a number from 0 up" : "a number";
    double number;

    if (!YAJL_IS_NUMBER(value))
        return found(place, value, expected);
    number = strtod(YAJL_GET_NUMBER(value), NULL);
    if (isfinite(number) && fabs(number) < MOST && (number >= 0 || !amount))
        return ZIPCCL_OK;
    return zipccl_fail(place->error, ZIPCCL_ERR_INPUT,
                       "%s: %s: found %.40s, expected %s and under 1e18", place->path, place->at,
                       YAJL_GET_NUMBER(value), expected);
}

static zipccl_status check_object(struct place *place, yajl_val object,
                                  const struct zipccl_rule *rules);

static zipccl_status check_map(struct place *place, yajl_val map, const struct zipccl_rule *rules)
{
    if (!YAJL_IS_OBJECT(map))
        return found(place, map, "an object");
    for (size_t i = 0; i < map->u.object.len; i++) {
        size_t cut = enter(place, map->u.object.keys[i]);

        ZIPCCL_TRY(check_object(place, map->u.object.values[i], rules));
        place->at[cut] = '\0';
    }
    return ZIPCCL_OK;
}

static zipccl_status check_list(struct place *place, yajl_val list, const struct zipccl_rule *rules)
{
    if (!YAJL_IS_ARRAY(list))
        return found(place, list, "a list");
    for (size_t i = 0; i < list->u.array.len; i++) {
        yajl_val item = list->u.array.values[i];
        size_t cut = enter_item(place, i);

        if (rules != NULL)
            ZIPCCL_TRY(check_object(place, item, rules));
        else if (!YAJL_IS_STRING(item))
            return found(place, item, "a text");
        place->at[cut] = '\0';
    }
    return ZIPCCL_OK;
}

static zipccl_status check_value(struct place *place, yajl_val value,
                                 const struct zipccl_rule *rule)
{
    switch (rule->kind) {
    case ZIPCCL_RULE_TEXT: return YAJL_IS_STRING(value) ? ZIPCCL_OK : found(place, value, "a text");
    case ZIPCCL_RULE_BOOL:
        return YAJL_IS_TRUE(value) || YAJL_IS_FALSE(value) ? ZIPCCL_OK
                                                           : found(place, value, "true or false");
    case ZIPCCL_RULE_NOTE:
        return YAJL_IS_STRING(value) || YAJL_IS_NUMBER(value)
                   ? ZIPCCL_OK
                   : found(place, value, "a text or a number");
    case ZIPCCL_RULE_OBJECT: return check_object(place, value, rule->rules);
    case ZIPCCL_RULE_MAP: return check_map(place, value, rule->rules);
    case ZIPCCL_RULE_LIST: return check_list(place, value, rule->rules);
    default: return check_number(place, value, rule->kind == ZIPCCL_RULE_AMOUNT);
    }
}

static zipccl_status check_object(struct place *place, yajl_val object,
                                  const struct zipccl_rule *rules)
{
    if (!YAJL_IS_OBJECT(object))
        return found(place, object, "an object");
    for (const struct zipccl_rule *rule = rules; rule->key != NULL; rule++) {
        yajl_val value = zipccl_document_get(object, rule->key);

        if (!rule->must && (value == NULL || YAJL_IS_NULL(value)))
            continue;
        size_t cut = enter(place, rule->key);
        ZIPCCL_TRY(check_value(place, value, rule));
        place->at[cut] = '\0';
    }
    return ZIPCCL_OK;
}

zipccl_status zipccl_result_check(yajl_val object, const struct zipccl_rule *rules,
                                  const char *path, struct zipccl_error *error)
{
    struct place place = {path, "", error};

    if (!YAJL_IS_OBJECT(object))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: found %s, expected an object", path,
                           zipccl_value_kind(object));
    return check_object(&place, object, rules);
}
