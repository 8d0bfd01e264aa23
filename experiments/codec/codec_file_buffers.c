/*
 * codec_file_buffers.c - memory and streams that both ways of codec_file.h share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/codec/codec_file_buffers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void *allocate(size_t nbytes)
{
    return aligned_alloc(64, (nbytes + 63) & ~(size_t)63);
}

zipccl_status zipccl_file_work_create(struct zipccl_file_work *work,
                                      const struct zipccl_file_job *job, size_t limit,
                                      struct zipccl_error *error)
{
    memset(work, 0, sizeof *work);
    work->job = job;
    work->error = error;
    work->isa = zipccl_isa_best();
    work->raw = allocate(limit);
    work->check = allocate(limit);
    work->wire = allocate(zipccl_bound(ZIPCCL_UINT8, limit) + ZIPCCL_FILE_SUM_BYTES);
    work->hash = XXH3_createState();
    if (!work->raw || !work->check || !work->wire || !work->hash ||
        XXH3_64bits_reset(work->hash) != XXH_OK)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", job->in_name);
    uint32_t nthreads = job->nthreads > 0 ? job->nthreads : 1;
    zipccl_status status = zipccl_pool_create(nthreads, &work->pool);
    if (status != ZIPCCL_OK)
        return zipccl_fail(error, status,
                           "%s: no memory for %u threads, or the system starts no more",
                           job->in_name, nthreads);
    return ZIPCCL_OK;
}

void zipccl_file_work_destroy(struct zipccl_file_work *work)
{
    free(work->raw);
    free(work->check);
    free(work->wire);
    zipccl_pool_destroy(work->pool);
    XXH3_freeState(work->hash);
}

zipccl_status zipccl_file_read(struct zipccl_file_work *work, void *to, size_t nbytes, size_t *got)
{
    errno = 0;
    *got = fread(to, 1, nbytes, work->job->in);
    if (*got < nbytes && ferror(work->job->in))
        return zipccl_fail(work->error, ZIPCCL_ERR_IO, "%s: cannot read: %s", work->job->in_name,
                           strerror(errno));
    return ZIPCCL_OK;
}

zipccl_status zipccl_file_write(struct zipccl_file_work *work, const void *from, size_t nbytes)
{
    errno = 0;
    if (fwrite(from, 1, nbytes, work->job->out) != nbytes)
        return zipccl_fail(work->error, ZIPCCL_ERR_IO, "%s: cannot write: %s", work->job->out_name,
                           strerror(errno));
    return ZIPCCL_OK;
}
