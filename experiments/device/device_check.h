/*
 * device_check.h - one GPU looked at: kernels against the scalar row, speed against a copy, NCCL
 *
 * Parts of the program that gpu/device_check.sh runs.  Each prints lines of a table as it goes and
 * fills a struct for the JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_DEVICE_CHECK_H
#define ZIPCCL_EXPERIMENTS_DEVICE_CHECK_H

#include "core/dtype.h"
#include "core/status.h"
#include "gpu/gate_check.h"
#include "gpu/kernels.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Return from a function of this program with 'error' filled if a call of CUDA fails. */
#define DEVICE_TRY(call)                                                                           \
    do {                                                                                           \
        cudaError_t device_rc_ = (call);                                                           \
        if (device_rc_ != cudaSuccess)                                                             \
            return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", #call,                              \
                               cudaGetErrorString(device_rc_));                                    \
    } while (0)

/* What is on the device for the messages of one launch; all owned. */
struct device_buffers {
    void *d_elements, *d_wire, *d_out, *d_sums, *d_workspace;
    struct zipccl_gpu_result *d_results;
    size_t workspace_nbytes, capacity;
};

/* Room for 'n' elements of 'dtype' as one message.  ZIPCCL_ERR_IO. */
zipccl_status device_buffers_open(struct device_buffers *b, enum zipccl_dtype dtype, size_t n,
                                  uint32_t nsms, struct zipccl_error *error);
void device_buffers_close(struct device_buffers *b);

struct device_conform {
    uint64_t cases, messages_wrong, elements_wrong, sums_wrong, overflows_wrong;
    uint32_t modes;  /* bit p: a superblock had program p; bit 31: one had a bitmap of zeros */
    char first[160]; /* the first that is wrong; "" */
};

/* Every type and kind of data at odd sizes: bytes, elements, sums, and one byte too little room. */
zipccl_status device_conform(bool tiny, uint32_t nsms, struct device_conform *out,
                             struct zipccl_error *error);

enum device_work { DEVICE_COPY, DEVICE_ENCODE, DEVICE_DECODE, DEVICE_DECODE_ADD, DEVICE_NUM_WORKS };
extern const char *const device_work_names[DEVICE_NUM_WORKS];

struct device_row {
    enum device_work work;
    const char *peer; /* another library's; NULL: ours */
    size_t nbytes;    /* raw */
    uint32_t nsms;    /* 0: a copy, the driver's choice */
    double median_s, q1_s, q3_s, moved_bytes, ratio;
    double share; /* bytes moved per second, over the copy's of the same size */
};

/* Time each work at one size; rows [DEVICE_NUM_WORKS] in their order. */
zipccl_status device_speed(size_t nbytes, uint32_t nsms, uint32_t repeats, struct device_row *rows,
                           struct zipccl_error *error);

/* Fill in median and quartiles from 'ms' [n], which is sorted. */
void device_row_times(struct device_row *row, float *ms, uint32_t n);

/* Put 'n' Gaussian bf16 elements at 'd_elements'. */
zipccl_status device_fill_gauss(void *d_elements, size_t n, struct zipccl_error *error);

enum { DEVICE_MOST_PEER_ROWS = 64 };

struct device_peers {
    uint32_t version; /* nvCOMP's number; 0: no library */
    char why[200];    /* what was not measured; "" */
    size_t nrows;
    struct device_row rows[DEVICE_MOST_PEER_ROWS]; /* encode and decode by turns; share is 0 */
};

/* nvCOMP's ANS and Bitcomp, where a library 'path' (NULL: in the loader's places) of version 5 is. */
void device_nvcomp(const char *path, size_t most_nbytes, uint32_t repeats,
                   struct device_peers *out);

struct device_nccl {
    int version; /* 0: not run */
    bool fits_right, overflow_seen, overflow_right;
    char why[160]; /* not run, and why */
    struct zipccl_gate_check gate;
};

/* One rank: encode, ncclAllGather of fixed messages, look, decode; then with too little room. */
zipccl_status device_nccl(uint32_t nsms, size_t n, struct device_nccl *out,
                          struct zipccl_error *error);

#endif
