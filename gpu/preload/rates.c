/*
 * rates.c - what the cost model takes for links and codec
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/rates.h"

#include "gpu/zipccl_gpu.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    size_t offset;
    bool whole;
} members[] = {
#define ZIPCCL_RATE(name)                                                                          \
    {                                                                                              \
#name, offsetof(struct zipccl_cost_params, name), false                                    \
    }
#define ZIPCCL_WHOLE(name)                                                                         \
    {                                                                                              \
#name, offsetof(struct zipccl_cost_params, name), true                                     \
    }
    ZIPCCL_WHOLE(gpus_per_node),   ZIPCCL_WHOLE(nics_per_node), ZIPCCL_RATE(nvlink_Bps),
    ZIPCCL_RATE(nvlink_alpha_s),   ZIPCCL_RATE(nic_Bps),        ZIPCCL_RATE(nic_alpha_s),
    ZIPCCL_RATE(fabric_Bps),       ZIPCCL_RATE(encode_Bps),     ZIPCCL_RATE(decode_Bps),
    ZIPCCL_RATE(codec_launch_s),   ZIPCCL_RATE(fence_s),        ZIPCCL_RATE(copy_Bps),
    ZIPCCL_WHOLE(channels),        ZIPCCL_RATE(codec_sm_share), ZIPCCL_RATE(ratio_encode_Bps),
    ZIPCCL_RATE(ratio_decode_Bps), ZIPCCL_RATE(reduce_Bps),     ZIPCCL_RATE(nic_burst_bytes),
    ZIPCCL_WHOLE(shared_cores),
};

static struct zipccl_cost_params rates;
static char source[600];

static void preset(void)
{
    struct zipccl_gpu_options options;

    if (source[0] != '\0')
        return;
    zipccl_gpu_options_init(&options, NULL);
    rates = options.params;
    (void)snprintf(source, sizeof source,
                   "assumed: nodes of 8 H100 with a 400 Gb/s NIC each, codec rates not measured on "
                   "a GPU (set ZIPCCL_CLUSTER)");
}

/* The place of 'name' in members[]; their number if it is none of them. */
static size_t find(const char *name)
{
    size_t i = 0;

    while (i < sizeof members / sizeof members[0] && strcmp(members[i].name, name) != 0)
        i++;
    return i;
}

/* False if a whole number is needed and 'value' is none. */
static bool set(size_t i, double value)
{
    uint32_t whole;

    if (!members[i].whole) {
        memcpy((char *)&rates + members[i].offset, &value, sizeof value);
        return true;
    }
    if (value > UINT32_MAX || value != (double)(uint32_t)value)
        return false;
    whole = (uint32_t)value;
    memcpy((char *)&rates + members[i].offset, &whole, sizeof whole);
    return true;
}

static bool read_line(char *line, const char *path, unsigned number, char *problem, size_t room)
{
    char *name = line + strspn(line, " \t"), *text, *end;
    size_t member;
    double value;

    name[strcspn(name, "\r\n")] = '\0';
    if (name[0] == '\0' || name[0] == '#')
        return true;
    text = name + strcspn(name, " \t");
    if (*text != '\0')
        *text++ = '\0';
    errno = 0;
    value = strtod(text, &end);
    if (end == text || end[strspn(end, " \t")] != '\0' || errno != 0 || !(value >= 0) ||
        value > 1e18) {
        (void)snprintf(problem, room,
                       "ZIPCCL_CLUSTER=%s: line %u: \"%.40s\" after %.40s, expected a number in "
                       "bytes per second, bytes or seconds",
                       path, number, text, name);
        return false;
    }
    member = find(name);
    if (member == sizeof members / sizeof members[0]) {
        (void)snprintf(
            problem, room,
            "ZIPCCL_CLUSTER=%s: line %u: unknown name %.40s, expected those that 'zipccl "
            "cluster rates' prints",
            path, number, name);
        return false;
    }
    if (!set(member, value)) {
        (void)snprintf(problem, room,
                       "ZIPCCL_CLUSTER=%s: line %u: %s is \"%.40s\", expected a whole number up to "
                       "%u",
                       path, number, members[member].name, text, UINT32_MAX);
        return false;
    }
    return true;
}

/* Read a line of at most 'room' - 2 bytes; false at the end, or with *whole false if it is longer. */
static bool next_line(FILE *in, char *line, size_t room, bool *whole)
{
    size_t n;

    if (fgets(line, (int)room, in) == NULL)
        return false;
    n = strlen(line);
    *whole = n + 1 < room || line[n - 1] == '\n';
    return *whole;
}

bool zipccl_shim_rates_read(const char *path, char *problem, size_t room)
{
    char line[256];
    unsigned number = 0;
    bool ok = true, whole = true;
    FILE *in;

    preset();
    if (path[0] == '\0')
        return true;
    in = fopen(path, "re");
    if (in == NULL) {
        (void)snprintf(problem, room, "ZIPCCL_CLUSTER=%s: %s", path, strerror(errno));
        return false;
    }
    while (ok && next_line(in, line, sizeof line, &whole))
        ok = read_line(line, path, ++number, problem, room);
    if (!whole) {
        (void)snprintf(problem, room,
                       "ZIPCCL_CLUSTER=%s: line %u has more bytes, expected at most %zu", path,
                       number + 1, sizeof line - 2);
        ok = false;
    }
    (void)fclose(in);
    (void)snprintf(source, sizeof source, "from %s", path);
    return ok;
}

void zipccl_shim_rates(struct zipccl_cost_params *params, const char **from)
{
    preset();
    *params = rates;
    if (from != NULL)
        *from = source;
}

void zipccl_shim_rates_print(FILE *out)
{
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        uint32_t whole;
        double value;

        memcpy(&whole, (const char *)&rates + members[i].offset, sizeof whole);
        memcpy(&value, (const char *)&rates + members[i].offset, sizeof value);
        fprintf(out, "%s %.6g\n", members[i].name, members[i].whole ? (double)whole : value);
    }
}
