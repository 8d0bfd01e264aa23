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

static bool set(const char *name, double value)
{
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        uint32_t whole = (uint32_t)value;

        if (strcmp(members[i].name, name) != 0)
            continue;
        if (members[i].whole)
            memcpy((char *)&rates + members[i].offset, &whole, sizeof whole);
        else
            memcpy((char *)&rates + members[i].offset, &value, sizeof value);
        return true;
    }
    return false;
}

static bool read_line(char *line, const char *path, unsigned number, char *problem, size_t room)
{
    char *name = line + strspn(line, " \t"), *text, *end;
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
    if (!set(name, value)) {
        (void)snprintf(
            problem, room,
            "ZIPCCL_CLUSTER=%s: line %u: unknown name %.40s, expected those that 'zipccl "
            "cluster rates' prints",
            path, number, name);
        return false;
    }
    return true;
}

bool zipccl_shim_rates_read(const char *path, char *problem, size_t room)
{
    char line[256];
    unsigned number = 0;
    bool ok = true;
    FILE *in;

    preset();
    if (path[0] == '\0')
        return true;
    in = fopen(path, "re");
    if (in == NULL) {
        (void)snprintf(problem, room, "ZIPCCL_CLUSTER=%s: %s", path, strerror(errno));
        return false;
    }
    while (ok && fgets(line, sizeof line, in) != NULL)
        ok = read_line(line, path, ++number, problem, room);
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
