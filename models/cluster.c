/*
 * cluster.c - a cluster's values: parsed, overridden, checked against one another
 *
 * cluster_yaml.c reads the texts; here they become numbers in base units.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/cluster.h"

#include "models/cluster_keys.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum kind { TEXT, U32, REAL };

static const struct key {
    enum kind kind;
    enum zipccl_unit unit;
    double min, max;
    size_t offset;
    const char *unit_name;
} keys[NUM_KEYS] = {
#define AT(field) offsetof(struct zipccl_cluster, field)
    [KEY_NODES] = {U32, ZIPCCL_UNIT_COUNT, 1, 65536, AT(nodes), ""},
    [KEY_GPUS_PER_NODE] = {U32, ZIPCCL_UNIT_COUNT, 1, 256, AT(gpus_per_node), ""},
    [KEY_GPU_NAME] = {TEXT, ZIPCCL_UNIT_NONE, 0, 0, AT(gpu_name), ""},
    [KEY_GPU_SMS] = {U32, ZIPCCL_UNIT_COUNT, 1, 65536, AT(gpu_sms), ""},
    [KEY_GPU_HBM_RATE] = {REAL, ZIPCCL_UNIT_RATE, 1e8, 1e15, AT(gpu_hbm_Bps), "B/s"},
    [KEY_GPU_MEMORY] = {REAL, ZIPCCL_UNIT_BYTES, 1e6, 1e15, AT(gpu_memory_bytes), "bytes"},
    [KEY_GPU_FLOPS] = {REAL, ZIPCCL_UNIT_FLOPS, 1e9, 1e18, AT(gpu_flops), "flop/s"},
    [KEY_NVLINK_RATE] = {REAL, ZIPCCL_UNIT_RATE, 1e6, 1e14, AT(nvlink_Bps), "B/s"},
    [KEY_NVLINK_ALPHA] = {REAL, ZIPCCL_UNIT_TIME, 0, 1, AT(nvlink_alpha_s), "s"},
    [KEY_NIC_PER_NODE] = {U32, ZIPCCL_UNIT_COUNT, 1, 256, AT(nics_per_node), ""},
    [KEY_NIC_RATE] = {REAL, ZIPCCL_UNIT_RATE, 1e6, 1e14, AT(nic_Bps), "B/s"},
    [KEY_NIC_ALPHA] = {REAL, ZIPCCL_UNIT_TIME, 0, 1, AT(nic_alpha_s), "s"},
    [KEY_NIC_BURST] = {REAL, ZIPCCL_UNIT_BYTES, 1, 1e12, AT(nic_burst_bytes), "bytes"},
    [KEY_FABRIC_OVERSUBSCRIPTION] = {REAL, ZIPCCL_UNIT_NONE, 1, 1000, AT(fabric_oversubscription),
                                     ""},
    [KEY_NCCL_CHANNELS] = {U32, ZIPCCL_UNIT_COUNT, 1, 64, AT(channels), ""},
    [KEY_CODEC_ENCODE_RATE] = {REAL, ZIPCCL_UNIT_RATE, 1e6, 1e14, AT(encode_Bps), "B/s"},
    [KEY_CODEC_DECODE_RATE] = {REAL, ZIPCCL_UNIT_RATE, 1e6, 1e14, AT(decode_Bps), "B/s"},
    [KEY_CODEC_RATIO_ENCODE_RATE] = {REAL, ZIPCCL_UNIT_RATE, 1e6, 1e14, AT(ratio_encode_Bps),
                                     "B/s"},
    [KEY_CODEC_RATIO_DECODE_RATE] = {REAL, ZIPCCL_UNIT_RATE, 1e6, 1e14, AT(ratio_decode_Bps),
                                     "B/s"},
    [KEY_CODEC_SMS] = {U32, ZIPCCL_UNIT_COUNT, 1, 65536, AT(codec_sms), ""},
    [KEY_CODEC_LAUNCH] = {REAL, ZIPCCL_UNIT_TIME, 0, 1, AT(codec_launch_s), "s"},
    [KEY_CODEC_FENCE] = {REAL, ZIPCCL_UNIT_TIME, 0, 1, AT(fence_s), "s"},
    [KEY_COMPUTE_HBM_SHARE] = {REAL, ZIPCCL_UNIT_NONE, 0, 1, AT(compute_hbm_share), ""},
    [KEY_MACHINE_CORES] = {U32, ZIPCCL_UNIT_COUNT, 1, 65536, AT(shared_cores), ""},
    [KEY_REDUCE_RATE] = {REAL, ZIPCCL_UNIT_RATE, 1e6, 1e14, AT(reduce_Bps), "B/s"},
#undef AT
};

struct zipccl_cluster_file {
    char *path;
    char *name_override, *description_override; /* --set; NULL: from the file */
    struct zipccl_cluster_yaml *yaml;
    struct zipccl_cluster_setting settings[NUM_KEYS]; /* text NULL: an optional key left out */
    struct zipccl_cluster_setting given[NUM_KEYS];    /* those with a text, end to end */
    size_t ngiven;
    char *overrides[NUM_KEYS]; /* owned texts of --set */
    char *sources[NUM_KEYS];   /* owned, of zipccl_cluster_put() */
};

static char *copy_text(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = malloc(n);

    if (copy != NULL)
        memcpy(copy, text, n);
    return copy;
}

/* A text that people read: one line, and not blank. */
static zipccl_status check_text(const char *text, size_t most, struct zipccl_error *error)
{
    const char *shown = text + strspn(text, " ");

    for (const char *p = text; *p != 0; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                               "a text with line breaks or control characters, expected one line");
    if (*shown == 0 || strlen(text) > most)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "found \"%.70s\", expected a text of 1 to %zu characters that is not "
                           "blank",
                           text, most);
    return ZIPCCL_OK;
}

static zipccl_status parse_value(enum zipccl_cluster_key_id id, const char *text, double *out,
                                 struct zipccl_error *error)
{
    const struct key *key = &keys[id];

    if (key->kind == TEXT) {
        ZIPCCL_TRY(check_text(text, 63, error));
        *out = NAN;
        return ZIPCCL_OK;
    }
    return zipccl_parse_quantity(text, key->unit, key->min, key->max, out, error);
}

/* NAME without a slash or a suffix is a bundled cluster; anything else is a path. */
static bool is_path(const char *text)
{
    size_t n = strlen(text);

    return strchr(text, '/') != NULL || (n > 5 && strcmp(text + n - 5, ".yaml") == 0) ||
           (n > 4 && strcmp(text + n - 4, ".yml") == 0);
}

static char *resolve(const char *name_or_path, const char *search_dir)
{
    size_t n = strlen(name_or_path);
    char *path;

    if (is_path(name_or_path) || search_dir == NULL)
        return copy_text(name_or_path);
    n += strlen(search_dir) + sizeof("/.yaml");
    path = malloc(n);
    if (path != NULL)
        snprintf(path, n, "%s/%s.yaml", search_dir, name_or_path);
    return path;
}

/* Why 'key' of the file is wrong. */
static zipccl_status name_key(const struct zipccl_cluster_file *file, const char *key,
                              const char *what, const struct zipccl_error *why,
                              struct zipccl_error *error)
{
    return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%.200s: line %u: key \"%s\"%s: %.220s", file->path,
                       zipccl_cluster_key_line(file->path, key), key, what, why->text);
}

static void list_given(struct zipccl_cluster_file *file)
{
    file->ngiven = 0;
    for (int i = 0; i < NUM_KEYS; i++)
        if (file->settings[i].text != NULL)
            file->given[file->ngiven++] = file->settings[i];
}

static zipccl_status parse_all(struct zipccl_cluster_file *file, struct zipccl_error *error)
{
    struct zipccl_error why;

    if (check_text(file->yaml->name, 63, &why) != ZIPCCL_OK)
        return name_key(file, "name", "", &why, error);
    if (check_text(file->yaml->description, 255, &why) != ZIPCCL_OK)
        return name_key(file, "description", "", &why, error);
    for (int i = 0; i < NUM_KEYS; i++) {
        struct zipccl_cluster_setting *s = &file->settings[i];

        s->key = zipccl_cluster_key_names[i];
        s->text = file->yaml->values[i].value;
        s->source = file->yaml->values[i].source;
        s->unit = keys[i].unit_name;
        if (s->text == NULL)
            continue;
        if (parse_value((enum zipccl_cluster_key_id)i, s->text, &s->value, &why) != ZIPCCL_OK)
            return name_key(file, s->key, "", &why, error);
        if (check_text(s->source, 255, &why) != ZIPCCL_OK)
            return name_key(file, s->key, ", source", &why, error);
    }
    list_given(file);
    return ZIPCCL_OK;
}

zipccl_status zipccl_cluster_open(const char *name_or_path, const char *search_dir,
                                  struct zipccl_cluster_file **out, struct zipccl_error *error)
{
    struct zipccl_cluster_file *file;
    struct zipccl_cluster cluster;
    zipccl_status status;

    if (name_or_path == NULL || out == NULL || name_or_path[0] == 0)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "zipccl_cluster_open: no name");
    file = calloc(1, sizeof(*file));
    if (file == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    file->path = resolve(name_or_path, search_dir);
    if (file->path == NULL) {
        zipccl_cluster_close(file);
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    }
    if (!is_path(name_or_path) && search_dir != NULL && access(file->path, F_OK) != 0)
        status = zipccl_cluster_unknown(name_or_path, search_dir, error);
    else
        status = zipccl_cluster_yaml_load(file->path, &file->yaml, error);
    if (status == ZIPCCL_OK)
        status = parse_all(file, error);
    if (status == ZIPCCL_OK)
        status = zipccl_cluster_get(file, &cluster, error);
    if (status != ZIPCCL_OK) {
        zipccl_cluster_close(file);
        return status;
    }
    *out = file;
    return ZIPCCL_OK;
}

static zipccl_status set_text(char **slot, const char *value, struct zipccl_error *error)
{
    char *copy = copy_text(value);

    if (copy == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    free(*slot);
    *slot = copy;
    return ZIPCCL_OK;
}

/* "name" and "description", which are no settings. */
static zipccl_status set_label(char **slot, const char *key, const char *value, size_t most,
                               struct zipccl_error *error)
{
    struct zipccl_error why;

    if (check_text(value, most, &why) != ZIPCCL_OK)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "--set %s: %.300s", key, why.text);
    return set_text(slot, value, error);
}

static zipccl_status set_key(struct zipccl_cluster_file *file, int id, const char *text,
                             struct zipccl_error *error)
{
    struct zipccl_cluster_setting *s = &file->settings[id];
    struct zipccl_error why;
    double value;

    if (parse_value((enum zipccl_cluster_key_id)id, text, &value, &why) != ZIPCCL_OK)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "--set %s: %.300s", s->key, why.text);
    ZIPCCL_TRY(set_text(&file->overrides[id], text, error));
    s->value = value;
    s->text = file->overrides[id];
    s->source = "--set";
    s->overridden = 1;
    list_given(file);
    return ZIPCCL_OK;
}

zipccl_status zipccl_cluster_set(struct zipccl_cluster_file *file, const char *assignment,
                                 struct zipccl_error *error)
{
    const char *equals;
    char key[64];

    if (file == NULL || assignment == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "zipccl_cluster_set: no file");
    equals = strchr(assignment, '=');
    if (equals == NULL || equals == assignment || (size_t)(equals - assignment) >= sizeof(key))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "--set: found \"%.80s\", expected key=value, for example "
                           "nic.rate=800Gbps",
                           assignment);
    memcpy(key, assignment, (size_t)(equals - assignment));
    key[equals - assignment] = 0;
    if (strcmp(key, "name") == 0)
        return set_label(&file->name_override, key, equals + 1, 63, error);
    if (strcmp(key, "description") == 0)
        return set_label(&file->description_override, key, equals + 1, 255, error);
    for (int i = 0; i < NUM_KEYS; i++)
        if (strcmp(key, zipccl_cluster_key_names[i]) == 0)
            return set_key(file, i, equals + 1, error);
    return zipccl_fail(error, ZIPCCL_ERR_INPUT, "--set: unknown key \"%s\"; did you mean \"%s\"?",
                       key, zipccl_cluster_near_key(key));
}

zipccl_status zipccl_cluster_put(struct zipccl_cluster_file *file, const char *key,
                                 const char *text, const char *source, struct zipccl_error *error)
{
    struct zipccl_error why;

    for (int i = 0; i < NUM_KEYS; i++) {
        if (strcmp(key, zipccl_cluster_key_names[i]) != 0)
            continue;
        if (check_text(source, 255, &why) != ZIPCCL_OK)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s, source: %.300s", key, why.text);
        ZIPCCL_TRY(set_key(file, i, text, error));
        ZIPCCL_TRY(set_text(&file->sources[i], source, error));
        file->settings[i].source = file->sources[i];
        list_given(file);
        return ZIPCCL_OK;
    }
    return zipccl_fail(error, ZIPCCL_ERR_ARG, "zipccl_cluster_put: no key %s", key);
}

/* Where a wrong value of 'a' or 'b' comes from: --set if it gave one of them, else the file. */
static const char *origin(const struct zipccl_cluster_file *file, enum zipccl_cluster_key_id a,
                          enum zipccl_cluster_key_id b, char *out, size_t size)
{
    const struct zipccl_cluster_setting *s = &file->settings[file->settings[a].overridden ? a : b];

    if (!s->overridden)
        return file->path;
    snprintf(out, size, "--set %s=%s", s->key, s->text);
    return out;
}

/* A codec reads a tensor and writes less than one, so it moves at most twice its raw rate; additions at
 * least that. */
static zipccl_status check_codec(const struct zipccl_cluster_file *file, double Bps,
                                 enum zipccl_cluster_key_id key, double hbm_Bps,
                                 struct zipccl_error *error)
{
    char from[200];

    if (2 * Bps <= hbm_Bps)
        return ZIPCCL_OK;
    return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                       "%s: the rate %s, %.6g GB/s, is more than half of gpu.hbm_rate, "
                       "%.6g GB/s: it reads and writes",
                       origin(file, key, KEY_GPU_HBM_RATE, from, sizeof(from)),
                       file->settings[key].key, Bps / 1e9, hbm_Bps / 1e9);
}

static zipccl_status check_rates(const struct zipccl_cluster_file *file,
                                 const struct zipccl_cluster *c, struct zipccl_error *error)
{
    const struct {
        double Bps;
        enum zipccl_cluster_key_id key;
    } rates[] = {{c->encode_Bps, KEY_CODEC_ENCODE_RATE},
                 {c->decode_Bps, KEY_CODEC_DECODE_RATE},
                 {c->ratio_encode_Bps, KEY_CODEC_RATIO_ENCODE_RATE},
                 {c->ratio_decode_Bps, KEY_CODEC_RATIO_DECODE_RATE},
                 {c->reduce_Bps, KEY_REDUCE_RATE}};
    bool encodes = c->ratio_encode_Bps > 0, decodes = c->ratio_decode_Bps > 0;
    char from[200];

    if (encodes != decodes)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%s: codec.ratio_%s_rate is missing; expected both or neither",
                           origin(file, KEY_CODEC_RATIO_ENCODE_RATE, KEY_CODEC_RATIO_DECODE_RATE,
                                  from, sizeof(from)),
                           encodes ? "decode" : "encode");
    for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++)
        ZIPCCL_TRY(check_codec(file, rates[i].Bps, rates[i].key, c->gpu_hbm_Bps, error));
    return ZIPCCL_OK;
}

/* Values that are fine alone but not together. */
static zipccl_status check(const struct zipccl_cluster_file *file, const struct zipccl_cluster *c,
                           struct zipccl_error *error)
{
    char from[200];

    if (c->gpus_per_node % c->nics_per_node != 0)
        return zipccl_fail(
            error, ZIPCCL_ERR_INPUT,
            "%s: nic.per_node is %u and gpus_per_node is %u; expected a divisor, so that every "
            "NIC serves equally many GPUs",
            origin(file, KEY_NIC_PER_NODE, KEY_GPUS_PER_NODE, from, sizeof(from)), c->nics_per_node,
            c->gpus_per_node);
    if (c->codec_sms > c->gpu_sms)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: codec.sms is %u, more than gpu.sms %u",
                           origin(file, KEY_CODEC_SMS, KEY_GPU_SMS, from, sizeof(from)),
                           c->codec_sms, c->gpu_sms);
    if ((uint64_t)c->nodes * c->gpus_per_node > 1u << 20)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%s: %u nodes of %u GPUs; expected at most 1048576 GPUs in all",
                           origin(file, KEY_NODES, KEY_GPUS_PER_NODE, from, sizeof(from)), c->nodes,
                           c->gpus_per_node);
    if (c->nic_burst_bytes > 0 && c->fabric_oversubscription > 1)
        return zipccl_fail(
            error, ZIPCCL_ERR_INPUT,
            "%s: nic.burst is given and fabric.oversubscription is %g; expected 1, for "
            "no model says what becomes of bursts in a fabric that is slower",
            origin(file, KEY_NIC_BURST, KEY_FABRIC_OVERSUBSCRIPTION, from, sizeof(from)),
            c->fabric_oversubscription);
    return check_rates(file, c, error);
}

zipccl_status zipccl_cluster_get(const struct zipccl_cluster_file *file, struct zipccl_cluster *out,
                                 struct zipccl_error *error)
{
    struct zipccl_cluster c;

    if (file == NULL || out == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "zipccl_cluster_get: no file");
    memset(&c, 0, sizeof(c));
    snprintf(c.name, sizeof(c.name), "%s",
             file->name_override ? file->name_override : file->yaml->name);
    snprintf(c.description, sizeof(c.description), "%s",
             file->description_override ? file->description_override : file->yaml->description);
    for (int i = 0; i < NUM_KEYS; i++) {
        const struct zipccl_cluster_setting *s = &file->settings[i];
        char *at = (char *)&c + keys[i].offset;
        uint32_t u;

        if (s->text == NULL)
            continue;
        switch (keys[i].kind) {
        case TEXT: snprintf(at, 64, "%s", s->text); break;
        case U32:
            u = (uint32_t)s->value;
            memcpy(at, &u, sizeof(u));
            break;
        case REAL: memcpy(at, &s->value, sizeof(s->value)); break;
        }
    }
    ZIPCCL_TRY(check(file, &c, error));
    *out = c;
    return ZIPCCL_OK;
}

const char *zipccl_cluster_path(const struct zipccl_cluster_file *file)
{
    return file->path;
}

const struct zipccl_cluster_setting *zipccl_cluster_settings(const struct zipccl_cluster_file *file,
                                                             size_t *n)
{
    *n = file->ngiven;
    return file->given;
}

const char *const *zipccl_cluster_keys(size_t *n)
{
    *n = NUM_KEYS;
    return zipccl_cluster_key_names;
}

void zipccl_cluster_close(struct zipccl_cluster_file *file)
{
    if (file == NULL)
        return;
    zipccl_cluster_yaml_free(file->yaml);
    for (int i = 0; i < NUM_KEYS; i++) {
        free(file->overrides[i]);
        free(file->sources[i]);
    }
    free(file->name_override);
    free(file->description_override);
    free(file->path);
    free(file);
}

void zipccl_cluster_cost_params(const struct zipccl_cluster *cluster,
                                struct zipccl_cost_params *out)
{
    memset(out, 0, sizeof(*out));
    out->gpus_per_node = cluster->gpus_per_node;
    out->nics_per_node = cluster->nics_per_node;
    out->nvlink_Bps = cluster->nvlink_Bps;
    out->nvlink_alpha_s = cluster->nvlink_alpha_s;
    out->nic_Bps = cluster->nic_Bps;
    out->nic_alpha_s = cluster->nic_alpha_s;
    /* At 1:1 the fabric carries what the NICs can give and is no limit of its own. */
    if (cluster->fabric_oversubscription > 1)
        out->fabric_Bps =
            cluster->nics_per_node * cluster->nic_Bps / cluster->fabric_oversubscription;
    out->encode_Bps = cluster->encode_Bps;
    out->decode_Bps = cluster->decode_Bps;
    out->ratio_encode_Bps = cluster->ratio_encode_Bps;
    out->ratio_decode_Bps = cluster->ratio_decode_Bps;
    out->codec_launch_s = cluster->codec_launch_s;
    out->fence_s = cluster->fence_s;
    out->reduce_Bps = cluster->reduce_Bps;
    out->nic_burst_bytes = cluster->nic_burst_bytes;
    out->shared_cores = cluster->shared_cores;
    out->copy_Bps = cluster->gpu_hbm_Bps / 2; /* a copy reads and writes */
    out->channels = cluster->channels;
    out->codec_sm_share = (double)cluster->codec_sms / cluster->gpu_sms;
}
