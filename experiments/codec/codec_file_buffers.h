/*
 * codec_file_buffers.h - memory and streams that both ways of codec_file.h share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_CODEC_FILE_BUFFERS_H
#define ZIPCCL_EXPERIMENTS_CODEC_FILE_BUFFERS_H

#include "core/codec_mt.h"
#include "experiments/codec/codec_file.h"

#include <xxhash.h>

/* "\x89ZCF\r\n\x1a\n": programs that treat it as text break it in ways that show. */
#define ZIPCCL_FILE_MAGIC        "\x89ZCF\r\n\x1a\n"
#define ZIPCCL_FILE_TRAILER_MARK "ZEND"

/* A file on its way. */
struct zipccl_file_work {
    const struct zipccl_file_job *job;
    struct zipccl_file_stats stats;
    struct zipccl_error *error;
    enum zipccl_isa isa;
    uint8_t *raw, *wire, *check; /* elements, message and sum, elements decoded again */
    struct zipccl_pool *pool;
    XXH3_state_t *hash; /* of the original so far */
};

/* ZIPCCL_ERR_NOMEM, also if threads cannot be had.  Destroy it in any case. */
zipccl_status zipccl_file_work_create(struct zipccl_file_work *work,
                                      const struct zipccl_file_job *job, size_t limit,
                                      struct zipccl_error *error);
void zipccl_file_work_destroy(struct zipccl_file_work *work);

/* Read up to 'nbytes'; '*got' is less only at the end of the file.  ZIPCCL_ERR_IO. */
zipccl_status zipccl_file_read(struct zipccl_file_work *work, void *to, size_t nbytes, size_t *got);

/* ZIPCCL_ERR_IO. */
zipccl_status zipccl_file_write(struct zipccl_file_work *work, const void *from, size_t nbytes);

#endif
