/*
 * sweep_spec.c - the axes of a sweep: names, values, and the combinations they make
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/sweep/sweep_spec.h"

#include "experiments/program/program.h"
#include "experiments/trace/generate_set.h"
#include "models/cluster.h"
#include "models/flat_yaml.h"
#include "models/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Names that are none of an option of 'trace generate' or of a key. */
static const struct own_name {
    const char *name;
    enum zipccl_sweep_role role;
} own_names[] = {
    {"model", ZIPCCL_SWEEP_MODEL},       {"trace", ZIPCCL_SWEEP_TRACE},
    {"parallel", ZIPCCL_SWEEP_PARALLEL}, {"gpus", ZIPCCL_SWEEP_GPUS},
    {"nodes", ZIPCCL_SWEEP_NODES},       {"cluster", ZIPCCL_SWEEP_CLUSTER},
    {"ratio", ZIPCCL_SWEEP_RATIO},       {"nic", ZIPCCL_SWEEP_KEY},
};

enum { NUM_OWN = sizeof own_names / sizeof *own_names, MAX_NAMES = 128 };

/* All names, ended by NULL. */
static size_t list_names(const char **names)
{
    size_t n = 0, nkeys;
    const char *const *keys = zipccl_cluster_keys(&nkeys);

    for (size_t i = 0; i < NUM_OWN; i++)
        names[n++] = own_names[i].name;
    for (size_t i = 0; zipccl_generate_names[i] != NULL; i++)
        names[n++] = zipccl_generate_names[i];
    /* Nodes are an axis of their own. */
    for (size_t i = 0; i < nkeys; i++)
        if (strcmp(keys[i], "nodes") != 0)
            names[n++] = keys[i];
    names[n] = NULL;
    return n;
}

static bool find_role(const char *key, enum zipccl_sweep_role *role)
{
    const char *names[MAX_NAMES];
    size_t n = list_names(names);

    for (size_t i = 0; i < n; i++) {
        if (strcmp(names[i], key) != 0)
            continue;
        *role = i < NUM_OWN ? own_names[i].role : ZIPCCL_SWEEP_KEY;
        for (size_t k = 0; zipccl_generate_names[k] != NULL; k++)
            if (strcmp(zipccl_generate_names[k], key) == 0)
                *role = ZIPCCL_SWEEP_OPTION;
        return true;
    }
    return false;
}

/* The next "tp=8" of a combination; false at its end.  '*at' moves on. */
static bool next_part(const char **at, char *name, size_t name_size, char *value, size_t value_size)
{
    size_t n, equal;

    *at += strspn(*at, ", ");
    if (**at == '\0')
        return false;
    n = strcspn(*at, ", ");
    equal = strcspn(*at, "=, ");
    snprintf(name, name_size, "%.*s", (int)(equal < name_size ? equal : name_size - 1), *at);
    if (equal < n)
        snprintf(value, value_size, "%.*s", (int)(n - equal - 1), *at + equal + 1);
    else
        snprintf(value, value_size, "true");
    *at += n;
    return true;
}

/* "tp=8,pp=4,sp": which are set is kept in 'seen', [one a name]. */
static zipccl_status apply_parallel(struct zipccl_workload *w, const char *text, bool *seen,
                                    struct zipccl_error *error)
{
    static const char *const names[] = {"tp",  "pp",       "dp",    "cp", "ep", "etp",
                                        "vpp", "sharding", "shard", "sp", NULL};
    char name[32], value[64];
    const char *at = text;
    struct zipccl_error why;
    size_t nparts = 0;

    while (next_part(&at, name, sizeof name, value, sizeof value)) {
        size_t i = 0;

        while (names[i] != NULL && strcmp(names[i], name) != 0)
            i++;
        if (names[i] == NULL)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                               "\"%.80s\": found \"%.30s\", expected tp, pp, dp, cp, ep, etp, vpp, "
                               "sharding, shard or sp, such as tp=8,pp=4",
                               text, name);
        if (seen[i])
            return zipccl_fail(error, ZIPCCL_ERR_INPUT, "\"%.80s\": %s is there twice", text, name);
        seen[i] = true;
        if (zipccl_generate_set(w, name, value, &why) != ZIPCCL_OK)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT, "\"%.80s\": %s: %.200s", text, name,
                               why.text);
        nparts++;
    }
    if (nparts == 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "\"%.80s\": empty, expected such as tp=8,pp=4",
                           text);
    return ZIPCCL_OK;
}

/* Check a value, and find its number if it is one. */
static zipccl_status check_value(struct zipccl_sweep_axis *axis, const char *text, double *number,
                                 struct zipccl_error *error)
{
    struct zipccl_workload scratch;
    struct zipccl_error why;
    bool seen[16] = {false};

    *number = NAN;
    zipccl_workload_init(&scratch);
    switch (axis->role) {
    case ZIPCCL_SWEEP_GPUS:
    case ZIPCCL_SWEEP_NODES:
        return zipccl_parse_quantity(text, ZIPCCL_UNIT_COUNT, 1, 1 << 20, number, error);
    case ZIPCCL_SWEEP_RATIO:
        return zipccl_parse_quantity(text, ZIPCCL_UNIT_NONE, 1, 2, number, error);
    case ZIPCCL_SWEEP_PARALLEL: return apply_parallel(&scratch, text, seen, error);
    case ZIPCCL_SWEEP_OPTION:
        ZIPCCL_TRY(zipccl_generate_set(&scratch, axis->key, text, error));
        if (zipccl_parse_quantity(text, ZIPCCL_UNIT_NONE, 0, 1e15, number, &why) != ZIPCCL_OK &&
            zipccl_parse_quantity(text, ZIPCCL_UNIT_FLOPS, 0, 1e18, number, &why) != ZIPCCL_OK)
            *number = NAN;
        return ZIPCCL_OK;
    default:
        if (text[0] == '\0')
            return zipccl_fail(error, ZIPCCL_ERR_INPUT, "\"\": empty, expected a value");
        return ZIPCCL_OK;
    }
}

static zipccl_status add_value(struct zipccl_sweep_axis *axis, const char *text,
                               struct zipccl_error *error)
{
    struct zipccl_error why;
    double number;

    if (check_value(axis, text, &number, &why) != ZIPCCL_OK)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s%s %.180s", axis->place,
                           why.text[0] == '\'' ? "" : ":", why.text);
    for (size_t i = 0; i < axis->n; i++)
        if (strcmp(axis->values[i], text) == 0 || axis->numbers[i] == number)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: \"%.60s\" is there twice", axis->place,
                               text);
    axis->values[axis->n] = malloc(strlen(text) + 1);
    if (axis->values[axis->n] == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    strcpy(axis->values[axis->n], text);
    axis->numbers[axis->n++] = number;
    return ZIPCCL_OK;
}

static zipccl_status check_new(const struct zipccl_sweep_spec *spec, const char *key,
                               const char *place, size_t n, enum zipccl_sweep_role *role,
                               struct zipccl_error *error)
{
    const struct zipccl_sweep_axis *old;

    if (!find_role(key, role)) {
        const char *names[MAX_NAMES], *nearest;

        list_names(names);
        nearest = zipccl_nearest_name(key, names);
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: \"%.60s\" is no axis%s%s%s", place, key,
                           nearest != NULL ? "; did you mean '" : "; docs/sweep.md lists them",
                           nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
    }
    old = zipccl_sweep_spec_find(spec, strcmp(key, "nic") == 0 ? "nic.rate" : key);
    if (old != NULL)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: given twice, the other by %s", place,
                           old->place);
    if (n == 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: an empty list, expected values", place);
    if (n > ZIPCCL_SWEEP_MAX_VALUES)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: %zu values, expected at most %d", place, n,
                           ZIPCCL_SWEEP_MAX_VALUES);
    if (spec->naxes == ZIPCCL_SWEEP_MAX_AXES)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: more than %d axes", place,
                           ZIPCCL_SWEEP_MAX_AXES);
    return ZIPCCL_OK;
}

zipccl_status zipccl_sweep_spec_add(struct zipccl_sweep_spec *spec, const char *key,
                                    const char *place, const char *const *values, size_t n,
                                    struct zipccl_error *error)
{
    struct zipccl_sweep_axis *axis = &spec->axes[spec->naxes];
    enum zipccl_sweep_role role;

    ZIPCCL_TRY(check_new(spec, key, place, n, &role, error));
    memset(axis, 0, sizeof *axis);
    axis->role = role;
    snprintf(axis->key, sizeof axis->key, "%.63s", strcmp(key, "nic") == 0 ? "nic.rate" : key);
    snprintf(axis->place, sizeof axis->place, "%.319s", place);
    axis->values = calloc(n, sizeof *axis->values);
    axis->numbers = calloc(n, sizeof *axis->numbers);
    spec->naxes++; /* what it holds is released from here on */
    if (axis->values == NULL || axis->numbers == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < n; i++)
        ZIPCCL_TRY(add_value(axis, values[i], error));
    return ZIPCCL_OK;
}

zipccl_status zipccl_sweep_spec_read(struct zipccl_sweep_spec *spec, const char *path,
                                     struct zipccl_error *error)
{
    const char *names[MAX_NAMES];
    size_t n = list_names(names);
    struct zipccl_list_yaml yaml;
    zipccl_status status = ZIPCCL_OK;

    ZIPCCL_TRY(zipccl_list_yaml_load(path, "a sweep", "docs/sweep.md", names, n, &yaml, error));
    for (size_t i = 0; status == ZIPCCL_OK && i < n; i++) {
        const struct zipccl_list_yaml_entry *entry = &yaml.entries[i];
        char place[320];

        if (!entry->given)
            continue;
        if (entry->line > 0)
            snprintf(place, sizeof place, "%.200s: line %u: key \"%s\"", path, entry->line,
                     names[i]);
        else
            snprintf(place, sizeof place, "%.200s: key \"%s\"", path, names[i]);
        status = zipccl_sweep_spec_add(spec, names[i], place, (const char *const *)entry->values,
                                       entry->n, error);
    }
    zipccl_list_yaml_free(&yaml);
    return status;
}

void zipccl_sweep_spec_release(struct zipccl_sweep_spec *spec)
{
    for (size_t i = 0; i < spec->naxes; i++) {
        for (size_t k = 0; k < spec->axes[i].n; k++)
            free(spec->axes[i].values[k]);
        free(spec->axes[i].values);
        free(spec->axes[i].numbers);
    }
    memset(spec, 0, sizeof *spec);
}

/* What a value of 'parallel' sets, no axis may set too. */
static zipccl_status check_parallel(const struct zipccl_sweep_spec *spec,
                                    struct zipccl_error *error)
{
    const struct zipccl_sweep_axis *parallel = zipccl_sweep_spec_role(spec, ZIPCCL_SWEEP_PARALLEL);

    for (size_t i = 0; parallel != NULL && i < parallel->n; i++) {
        const char *at = parallel->values[i];
        char name[32], value[64];

        while (next_part(&at, name, sizeof name, value, sizeof value)) {
            const struct zipccl_sweep_axis *other = zipccl_sweep_spec_find(spec, name);

            if (other != NULL)
                return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                                   "%s: %s is in \"%.60s\" too, one of them can hold", other->place,
                                   name, parallel->values[i]);
        }
    }
    return ZIPCCL_OK;
}

static zipccl_status check_roles(const struct zipccl_sweep_spec *spec, struct zipccl_error *error)
{
    const struct zipccl_sweep_axis *model = zipccl_sweep_spec_role(spec, ZIPCCL_SWEEP_MODEL);
    const struct zipccl_sweep_axis *trace = zipccl_sweep_spec_role(spec, ZIPCCL_SWEEP_TRACE);
    const struct zipccl_sweep_axis *gpus = zipccl_sweep_spec_role(spec, ZIPCCL_SWEEP_GPUS);
    const struct zipccl_sweep_axis *nodes = zipccl_sweep_spec_role(spec, ZIPCCL_SWEEP_NODES);

    if (model == NULL && trace == NULL)
        return zipccl_fail(
            error, ZIPCCL_ERR_INPUT,
            "sweep: no model and no trace given ('zipccl trace models' lists models)");
    if (model != NULL && trace != NULL)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s and %s exclude each other", model->place,
                           trace->place);
    if (zipccl_sweep_spec_role(spec, ZIPCCL_SWEEP_CLUSTER) == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "sweep: no cluster given; 'zipccl cluster list' names some");
    if (gpus != NULL && nodes != NULL)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s and %s exclude each other", gpus->place,
                           nodes->place);
    for (size_t i = 0; trace != NULL && i < spec->naxes; i++)
        if (spec->axes[i].role == ZIPCCL_SWEEP_OPTION ||
            spec->axes[i].role == ZIPCCL_SWEEP_PARALLEL)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                               "%s: is for models; a trace goes to other ranks by gpus or nodes",
                               spec->axes[i].place);
    return check_parallel(spec, error);
}

static void put_in_order(struct zipccl_sweep_spec *spec)
{
    for (size_t i = 1; i < spec->naxes; i++)
        for (size_t k = i; k > 0 && spec->axes[k - 1].role > spec->axes[k].role; k--) {
            struct zipccl_sweep_axis axis = spec->axes[k];

            spec->axes[k] = spec->axes[k - 1];
            spec->axes[k - 1] = axis;
        }
}

zipccl_status zipccl_sweep_spec_finish(struct zipccl_sweep_spec *spec, struct zipccl_error *error)
{
    double all = 1;

    ZIPCCL_TRY(check_roles(spec, error));
    for (size_t i = 0; i < spec->naxes; i++)
        all *= (double)spec->axes[i].n;
    if (all > ZIPCCL_SWEEP_MAX_COMBINATIONS)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "sweep: the axes have %.6g combinations, expected at most %d", all,
                           ZIPCCL_SWEEP_MAX_COMBINATIONS);
    put_in_order(spec);
    return ZIPCCL_OK;
}

size_t zipccl_sweep_spec_count(const struct zipccl_sweep_spec *spec)
{
    size_t n = 1;

    for (size_t i = 0; i < spec->naxes; i++)
        n *= spec->axes[i].n;
    return n;
}

size_t zipccl_sweep_spec_choice(const struct zipccl_sweep_spec *spec, size_t index, size_t axis)
{
    for (size_t i = spec->naxes; i-- > axis + 1;)
        index /= spec->axes[i].n;
    return index % spec->axes[axis].n;
}

const struct zipccl_sweep_axis *zipccl_sweep_spec_find(const struct zipccl_sweep_spec *spec,
                                                       const char *key)
{
    for (size_t i = 0; i < spec->naxes; i++)
        if (strcmp(spec->axes[i].key, key) == 0)
            return &spec->axes[i];
    return NULL;
}

const struct zipccl_sweep_axis *zipccl_sweep_spec_role(const struct zipccl_sweep_spec *spec,
                                                       enum zipccl_sweep_role role)
{
    for (size_t i = 0; i < spec->naxes; i++)
        if (spec->axes[i].role == role)
            return &spec->axes[i];
    return NULL;
}

void zipccl_sweep_spec_apply(const struct zipccl_sweep_spec *spec, size_t index,
                             struct zipccl_workload *w, bool *dp_given)
{
    bool seen[16] = {false};

    *dp_given = false;
    for (size_t i = 0; i < spec->naxes; i++) {
        const struct zipccl_sweep_axis *axis = &spec->axes[i];
        const char *value = axis->values[zipccl_sweep_spec_choice(spec, index, i)];

        if (axis->role == ZIPCCL_SWEEP_PARALLEL) {
            apply_parallel(w, value, seen, NULL);
            *dp_given = *dp_given || seen[2];
        } else if (axis->role == ZIPCCL_SWEEP_OPTION) {
            zipccl_generate_set(w, axis->key, value, NULL);
            *dp_given = *dp_given || strcmp(axis->key, "dp") == 0;
        }
    }
}

void zipccl_sweep_spec_describe(const struct zipccl_sweep_spec *spec, size_t index, char *out,
                                size_t size)
{
    size_t n = 0;

    out[0] = '\0';
    for (size_t i = 0; i < spec->naxes && n < size; i++)
        if (spec->axes[i].n > 1)
            n +=
                (size_t)snprintf(out + n, size - n, "%s%s %s", n > 0 ? ", " : "", spec->axes[i].key,
                                 spec->axes[i].values[zipccl_sweep_spec_choice(spec, index, i)]);
    if (n == 0)
        snprintf(out, size, "the only point");
}
