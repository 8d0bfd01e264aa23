/*
 * rates.c - what the cost model takes for links and codec
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/rates.h"

#include "gpu/zipccl_gpu.h"
#include "models/cluster.h"

#include <string.h>

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

bool zipccl_shim_rates_read(const char *path, char *problem, size_t room)
{
    struct zipccl_cluster_file *file = NULL;
    struct zipccl_cluster cluster;
    struct zipccl_error error = {""};
    zipccl_status status;
    char name[520];

    preset();
    if (path[0] == '\0')
        return true;
    /* A word alone would be the name of a cluster, which are in no folder that this library knows. */
    (void)snprintf(name, sizeof name, "%s%s", strchr(path, '/') == NULL ? "./" : "", path);
    status = zipccl_cluster_open(name, NULL, &file, &error);
    if (status == ZIPCCL_OK)
        status = zipccl_cluster_get(file, &cluster, &error);
    zipccl_cluster_close(file);
    if (status != ZIPCCL_OK) {
        (void)snprintf(problem, room, "ZIPCCL_CLUSTER: %s", error.text);
        return false;
    }
    zipccl_cluster_cost_params(&cluster, &rates);
    (void)snprintf(source, sizeof source, "of %s, from %s", cluster.name, path);
    return true;
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
    const struct {
        const char *name;
        double value;
    } members[] = {
        {"GPUs a node", rates.gpus_per_node},
        {"NICs a node", rates.nics_per_node},
        {"NVLink bytes/s", rates.nvlink_Bps},
        {"NVLink latency s", rates.nvlink_alpha_s},
        {"NIC bytes/s", rates.nic_Bps},
        {"NIC latency s", rates.nic_alpha_s},
        {"NIC burst bytes", rates.nic_burst_bytes},
        {"fabric bytes/s of a node", rates.fabric_Bps},
        {"encode bytes/s", rates.encode_Bps},
        {"decode bytes/s", rates.decode_Bps},
        {"encode bytes/s, effort ratio", rates.ratio_encode_Bps},
        {"decode bytes/s, effort ratio", rates.ratio_decode_Bps},
        {"codec launch s", rates.codec_launch_s},
        {"fence s", rates.fence_s},
        {"copy bytes/s", rates.copy_Bps},
        {"channels", rates.channels},
        {"codec's share of SMs", rates.codec_sm_share},
        {"sums bytes/s", rates.reduce_Bps},
        {"shared cores", rates.shared_cores},
    };

    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        fprintf(out, "  %s %.6g\n", members[i].name, members[i].value);
}
