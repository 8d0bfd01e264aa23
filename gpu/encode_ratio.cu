/*
 * encode_ratio.cu - messages written on a GPU: the kernel for max ratio, of all types
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/encode_ratio.cuh"

ENC_HERE(ENC_ANY, true);
