/*
 * device_nvcomp.h - nvCOMP's batched C interface, for a library that is found at run time
 *
 * Written from NVIDIA's documentation of nvCOMP 5 (docs.nvidia.com/cuda/nvcomp/c_api.html); nothing of
 * nvCOMP is part of this tree.  Versions 5.x have one layout: options of 64 bytes, passed by value,
 * of which what is not used must be zero.  Other versions have others and are not called.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_DEVICE_NVCOMP_H
#define ZIPCCL_EXPERIMENTS_DEVICE_NVCOMP_H

#include "core/status.h"

#include <cuda_runtime_api.h>

#include <stddef.h>
#include <stdint.h>

enum { NVCOMP_SUCCESS = 0, NVCOMP_USHORT = 3, NVCOMP_FLOAT16 = 9 };

/* Compression: algorithm and type of data.  Decompression: back end, 0 for the default. */
struct nvcomp_options {
    int32_t first, data_type;
    char reserved[56];
};

/* Of nvcompGetProperties(): 1000 * major + 100 * minor + patch. */
struct nvcomp_properties {
    uint32_t version, cudart_version;
};

/* One format. */
struct nvcomp_format {
    int (*compress_temp)(size_t nchunks, size_t max_chunk, struct nvcomp_options options,
                         size_t *temp_nbytes, size_t max_total);
    int (*max_output)(size_t max_chunk, struct nvcomp_options options, size_t *nbytes);
    int (*compress)(const void *const *d_chunks, const size_t *d_nbytes, size_t max_chunk,
                    size_t nchunks, void *d_temp, size_t temp_nbytes, void *const *d_out,
                    size_t *d_out_nbytes, struct nvcomp_options options, int *d_statuses,
                    cudaStream_t stream);
    int (*decompress_temp)(size_t nchunks, size_t max_chunk, struct nvcomp_options options,
                           size_t *temp_nbytes, size_t max_total);
    int (*decompress)(const void *const *d_chunks, const size_t *d_nbytes, const size_t *d_room,
                      size_t *d_got, size_t nchunks, void *d_temp, size_t temp_nbytes,
                      void *const *d_out, struct nvcomp_options options, int *d_statuses,
                      cudaStream_t stream);
};

struct nvcomp_library {
    void *handle; /* NULL: there is none, or none that can be called */
    struct nvcomp_properties properties;
    char why[200]; /* what keeps it from being called; "" */
};

/*
 * Load the library 'path', or NULL: libnvcomp.so.5 or libnvcomp.so, wherever the loader finds one.
 * The caller closes it.
 */
void nvcomp_open(const char *path, struct nvcomp_library *out);
void nvcomp_close(struct nvcomp_library *library);

/* The functions of format 'name' ("ANS", "Bitcomp"); ZIPCCL_ERR_UNSUPPORTED names the one missing. */
zipccl_status nvcomp_find(const struct nvcomp_library *library, const char *name,
                          struct nvcomp_format *out, struct zipccl_error *error);

#endif
