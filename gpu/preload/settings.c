/*
 * settings.c - what the ZIPCCL_ variables of the environment say
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/settings.h"

#include "core/wire.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const op_names[ZIPCCL_SHIM_NUM_OPS] = {
    "all_gather",     "alltoall",   "alltoallv", "sendrecv", "broadcast",
    "reduce_scatter", "all_reduce", "reduce",    "gather",   "scatter"};

const char *zipccl_shim_op_name(enum zipccl_shim_op op)
{
    return op_names[op];
}

void zipccl_shim_ops_text(const struct zipccl_shim_settings *settings, char *out, size_t room)
{
    size_t n = 0;

    (void)snprintf(out, room, "none");
    for (size_t i = 0; i < ZIPCCL_SHIM_NUM_OPS && n < room; i++)
        if (settings->compress[i] && i != ZIPCCL_SHIM_ALLTOALLV) /* which is sendrecv's name */
            n += (size_t)snprintf(out + n, room - n, "%s%s", n > 0 ? "," : "", op_names[i]);
}

const char *zipccl_shim_mode_name(enum zipccl_shim_mode mode)
{
    return mode == ZIPCCL_SHIM_OFF ? "off" : mode == ZIPCCL_SHIM_OBSERVE ? "observe" : "on";
}

struct reader {
    zipccl_shim_lookup *lookup;
    char *problem;
    size_t room;
    bool ok;
};

static void refuse(struct reader *r, const char *name, const char *value, const char *expected)
{
    if (r->ok)
        (void)snprintf(r->problem, r->room, "%s=%.80s: expected %s", name, value, expected);
    r->ok = false;
}

/* A variable that is set and not empty, else NULL. */
static const char *value_of(const struct reader *r, const char *name)
{
    const char *value = r->lookup(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

static void read_text(struct reader *r, const char *name, char *out, size_t room)
{
    const char *value = value_of(r, name);

    out[0] = '\0';
    if (value == NULL)
        return;
    if (strlen(value) >= room) {
        refuse(r, name, value, "a shorter text");
        return;
    }
    (void)snprintf(out, room, "%s", value);
}

/* A whole number; with 'binary' also 64K, 1M, 2G. */
static uint64_t read_number(struct reader *r, const char *name, uint64_t preset, bool binary)
{
    static const char units[] = "KMG";
    const char *value = value_of(r, name), *unit;
    unsigned long long number;
    unsigned shift = 0;
    char *end;

    if (value == NULL)
        return preset;
    errno = 0;
    number = strtoull(value, &end, 10);
    if (binary && *end != '\0' && (unit = strchr(units, toupper((unsigned char)*end))) != NULL) {
        shift = 10 * (unsigned)(unit - units + 1);
        end++;
    }
    if (!isdigit((unsigned char)value[0]) || *end != '\0' || errno != 0 ||
        number > UINT64_MAX >> (shift + 1)) {
        refuse(r, name, value, binary ? "a size such as 65536, 64K, 1M" : "a whole number");
        return preset;
    }
    return (uint64_t)number << shift;
}

static bool read_flag(struct reader *r, const char *name, bool preset)
{
    const char *value = value_of(r, name);

    if (value == NULL)
        return preset;
    if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
        refuse(r, name, value, "0 or 1");
    return value[0] == '1';
}

static void read_mode(struct reader *r, struct zipccl_shim_settings *out)
{
    const char *value = value_of(r, "ZIPCCL_MODE");

    out->mode = ZIPCCL_SHIM_OFF;
    if (value == NULL || strcmp(value, "off") == 0)
        return;
    if (strcmp(value, "observe") == 0)
        out->mode = ZIPCCL_SHIM_OBSERVE;
    else if (strcmp(value, "on") == 0)
        out->mode = ZIPCCL_SHIM_ON;
    else
        refuse(r, "ZIPCCL_MODE", value, "off, observe or on");
}

/* Turn on the ops of a list; those that move data, or those that reduce, or both. */
static void read_ops(struct reader *r, const char *name, const char *list, bool moves,
                     struct zipccl_shim_settings *out)
{
    const char *expected = moves ? "none, or a list of all_gather, alltoall, sendrecv, broadcast, "
                                   "reduce_scatter, all_reduce"
                                 : "a list of reduce_scatter, all_reduce";

    if (moves && strcmp(list, "none") == 0)
        return;
    for (const char *at = list; *at != '\0';) {
        size_t length = strcspn(at, ","), i;

        for (i = 0; i < ZIPCCL_SHIM_REDUCE; i++)
            if (strlen(op_names[i]) == length && memcmp(op_names[i], at, length) == 0)
                break;
        if (i == ZIPCCL_SHIM_REDUCE || (!moves && i < ZIPCCL_SHIM_REDUCE_SCATTER)) {
            refuse(r, name, list, expected);
            return;
        }
        out->compress[i] = true;
        /* Whether sends and receives are one or the other is the job's way of writing it. */
        if (i == ZIPCCL_SHIM_SENDRECV || i == ZIPCCL_SHIM_ALLTOALLV)
            out->compress[ZIPCCL_SHIM_SENDRECV] = out->compress[ZIPCCL_SHIM_ALLTOALLV] = true;
        at += length;
        at += *at == ',';
    }
}

/* A whole number of an entry, up to 'end'; moves 'at' behind it. */
static bool scan_number(const char **at, const char *end)
{
    const char *first = *at;

    while (*at < end && isdigit((unsigned char)**at))
        ++*at;
    return *at > first && *at - first < 9;
}

/* first-last:..., as in 0-7:16 */
static bool is_rank_list(const char *at, const char *end)
{
    for (;; at++) {
        const char *first = at;

        if (!scan_number(&at, end))
            return false;
        if (at < end && *at == '-') {
            at++;
            if (!scan_number(&at, end) || atol(first) > atol(strchr(first, '-') + 1))
                return false;
        }
        if (at == end)
            return true;
        if (*at != ':')
            return false;
    }
}

/* Entries that are not names must have numbers where they belong. */
static void check_groups(struct reader *r, const char *groups)
{
    for (const char *at = groups; *at != '\0'; at += *at == ',') {
        const char *end = at + strcspn(at, ","), *entry = at + (*at == '!');

        at = end;
        if (end - entry >= 5 && memcmp(entry, "size=", 5) == 0) {
            entry += 5;
            if (!scan_number(&entry, end) || entry != end)
                refuse(r, "ZIPCCL_GROUPS", groups, "size=NUMBER, as in size=8");
        } else if (end - entry >= 6 && memcmp(entry, "ranks=", 6) == 0) {
            if (!is_rank_list(entry + 6, end))
                refuse(r, "ZIPCCL_GROUPS", groups, "ranks=LIST, as in ranks=0-7:16");
        }
    }
}

static int read_rank(struct reader *r, const char *const *names, int preset)
{
    for (; *names != NULL; names++) {
        const char *value = value_of(r, *names);
        char *end;
        long number;

        if (value == NULL)
            continue;
        number = strtol(value, &end, 10);
        if (*end == '\0' && number >= 0 && number < 1 << 24)
            return (int)number;
    }
    return preset;
}

static void read_launcher(struct reader *r, struct zipccl_shim_settings *out)
{
    static const char *const ranks[] = {"RANK",      "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                        "PMIX_RANK", "SLURM_PROCID",         NULL};
    static const char *const sizes[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                        "SLURM_NTASKS", NULL};

    out->rank = read_rank(r, ranks, -1);
    out->world = read_rank(r, sizes, 0);
}

bool zipccl_shim_settings_read(zipccl_shim_lookup *lookup, struct zipccl_shim_settings *out,
                               char *problem, size_t room)
{
    struct reader r = {lookup, problem, room, true};
    const char *value;

    memset(out, 0, sizeof *out);
    problem[0] = '\0';
    read_mode(&r, out);
    value = value_of(&r, "ZIPCCL_OPS");
    read_ops(&r, "ZIPCCL_OPS", value != NULL ? value : "all_gather,alltoall,sendrecv,broadcast",
             true, out);
    value = value_of(&r, "ZIPCCL_REDUCTIONS");
    if (value != NULL)
        read_ops(&r, "ZIPCCL_REDUCTIONS", value, false, out);
    value = value_of(&r, "ZIPCCL_CHOOSE");
    if (value != NULL && strcmp(value, "adaptive") != 0 && strcmp(value, "always") != 0)
        refuse(&r, "ZIPCCL_CHOOSE", value, "adaptive or always");
    out->always = value != NULL && strcmp(value, "always") == 0;
    value = value_of(&r, "ZIPCCL_GATE");
    out->gate = zipccl_gate_mode_find(value != NULL ? value : "off");
    if (out->gate == ZIPCCL_NUM_GATE_MODES)
        refuse(&r, "ZIPCCL_GATE", value, "off, capture or all");
    out->min_bytes = read_number(&r, "ZIPCCL_MIN_BYTES", 1 << 20, true);
    out->memory_bytes = read_number(&r, "ZIPCCL_MEMORY", 256 << 20, true);
    if (out->memory_bytes == 0)
        refuse(&r, "ZIPCCL_MEMORY", "0", "at least 1");
    out->verify_every = read_number(&r, "ZIPCCL_VERIFY", 0, false);
    value = value_of(&r, "ZIPCCL_VERIFY_ACTION");
    if (value != NULL && strcmp(value, "abort") != 0 && strcmp(value, "disable") != 0)
        refuse(&r, "ZIPCCL_VERIFY_ACTION", value, "abort or disable");
    out->verify_disables = value != NULL && strcmp(value, "disable") == 0;
    read_text(&r, "ZIPCCL_CONTROL", out->control, sizeof out->control);
    out->control_every = read_number(&r, "ZIPCCL_CONTROL_EVERY", 1000, false);
    if (out->control_every == 0)
        refuse(&r, "ZIPCCL_CONTROL_EVERY", "0", "at least 1");
    read_text(&r, "ZIPCCL_GROUPS", out->groups, sizeof out->groups);
    check_groups(&r, out->groups);
    read_text(&r, "ZIPCCL_CLUSTER", out->cluster, sizeof out->cluster);
    read_text(&r, "ZIPCCL_STATS_FILE", out->stats_file, sizeof out->stats_file);
    out->stats = read_flag(&r, "ZIPCCL_STATS", out->mode != ZIPCCL_SHIM_OFF);
    read_launcher(&r, out);
    if (!r.ok)
        out->mode = ZIPCCL_SHIM_OFF;
    return r.ok;
}

static uint64_t mix(uint64_t hash, const void *data, size_t n)
{
    const unsigned char *byte = data;

    for (size_t i = 0; i < n; i++)
        hash = (hash ^ byte[i]) * 0x100000001b3u;
    return hash;
}

static uint64_t mix_number(uint64_t hash, uint64_t number)
{
    uint8_t bytes[8];

    zipccl_put_u64(bytes, number);
    return mix(hash, bytes, sizeof bytes);
}

uint64_t zipccl_shim_settings_digest(const struct zipccl_shim_settings *settings)
{
    uint64_t hash = 0xcbf29ce484222325u;

    hash = mix_number(hash, settings->mode);
    for (size_t i = 0; i < ZIPCCL_SHIM_NUM_OPS; i++)
        hash = mix_number(hash, settings->compress[i]);
    hash = mix_number(hash, settings->always);
    hash = mix_number(hash, settings->gate);
    hash = mix_number(hash, settings->min_bytes);
    hash = mix_number(hash, settings->memory_bytes);
    hash = mix_number(hash, settings->verify_every);
    hash = mix_number(hash, settings->verify_disables);
    hash = mix_number(hash, settings->control[0] != '\0' ? settings->control_every : 0);
    return mix(hash, settings->groups, strlen(settings->groups));
}

/* Whether 'text' [length] fits 'pattern' [plen] with * and ?. */
static bool fits(const char *pattern, size_t plen, const char *text)
{
    size_t p = 0, t = 0, star = SIZE_MAX, back = 0;

    while (text[t] != '\0') {
        if (p < plen && pattern[p] == '*') {
            star = p++;
            back = t;
        } else if (p < plen && (pattern[p] == '?' || pattern[p] == text[t])) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++back;
        } else {
            return false;
        }
    }
    while (p < plen && pattern[p] == '*')
        p++;
    return p == plen;
}

static bool lists_rank(const char *list, size_t length, int rank)
{
    const char *end = list + length;

    while (list < end) {
        char *next;
        long first = strtol(list, &next, 10), last = first;

        if (next == list)
            return false;
        if (*next == '-')
            last = strtol(next + 1, &next, 10);
        if (rank >= first && rank <= last)
            return true;
        list = *next == ':' ? next + 1 : end;
    }
    return false;
}

static bool entry_fits(const char *entry, size_t length, const char *name, const int *ranks,
                       int nranks)
{
    if (length > 5 && memcmp(entry, "size=", 5) == 0)
        return strtol(entry + 5, NULL, 10) == nranks;
    if (length > 6 && memcmp(entry, "ranks=", 6) == 0) {
        for (int i = 0; ranks != NULL && i < nranks; i++)
            if (!lists_rank(entry + 6, length - 6, ranks[i]))
                return false;
        return ranks != NULL;
    }
    return name[0] != '\0' && fits(entry, length, name);
}

bool zipccl_shim_group_selected(const char *groups, const char *name, const int *ranks, int nranks)
{
    bool selected = groups[0] == '\0' || groups[0] == '!';

    while (*groups != '\0') {
        size_t length = strcspn(groups, ",");
        bool out = groups[0] == '!';

        if (entry_fits(groups + out, length - out, name, ranks, nranks))
            selected = !out;
        groups += length;
        groups += *groups == ',';
    }
    return selected;
}
