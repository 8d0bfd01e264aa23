/*
 * params.c - rates that plans are priced with when nobody gives others
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/gpu_state.h"

/*
 * Nodes of 8 H100, a 400 Gb/s NIC each: the values of models/clusters/h100-8x8-400g.yaml, which names
 * the source of each; the test preload_rates compares them.  No GPU has measured the codec's: assumptions.
 */
void zipccl_gpu_options_init(struct zipccl_gpu_options *options, const struct zipccl_nccl_api *nccl)
{
    *options = (struct zipccl_gpu_options){
        .nccl = nccl,
        .mode = ZIPCCL_MODE_ADAPTIVE,
        .ops = ZIPCCL_GPU_OPS_MOVE,
        .min_bytes = (size_t)1 << 20,
        .gate = ZIPCCL_GATE_OFF,
        .capacity_class = ZIPCCL_CLASS_LEARN,
        .learning = ZIPCCL_LEARN_TIMES,
        .params = {.gpus_per_node = 0,
                   .nics_per_node = 8,
                   .nvlink_Bps = 370e9,
                   .nvlink_alpha_s = 2e-6,
                   .nic_Bps = 48e9,
                   .nic_alpha_s = 5e-6,
                   .encode_Bps = 410e9,
                   .decode_Bps = 410e9,
                   .codec_launch_s = 5e-6,
                   .fence_s = 15e-6,
                   .copy_Bps = 1.675e12, /* HBM at 3350 GB/s reads and writes each byte */
                   .channels = 8,
                   .codec_sm_share = 32.0 / 132.0},
    };
}
