/*
 * world_no_nccl.c - for programs that are not linked with NCCL
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/ranks/world_nccl.h"

zipccl_world_open_fn *zipccl_world_nccl_opener(void)
{
    return NULL;
}
