/*
 * fuzz_file_encode.c - any bytes as a file to code: refused with a reason, or back bit for bit
 *
 * Tried as .safetensors and, by the last byte, as elements of one type.  For libFuzzer, or with
 * core/fuzz/fuzz_main.c as a plain program over files and changes of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/fuzz/fuzz.h"
#include "experiments/codec/codec_file.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

static FILE *open_bytes(const void *bytes, size_t nbytes)
{
    /* fmemopen() refuses an empty one. */
    FILE *file = nbytes > 0 ? fmemopen((void *)bytes, nbytes, "rb") : fopen("/dev/null", "rb");
    check(file != NULL);
    return file;
}

static void there_and_back(const uint8_t *data, size_t nbytes, enum zipccl_dtype dtype)
{
    struct zipccl_error error = {""};
    struct zipccl_file_stats stats;
    struct zipccl_file_job job = {.in_name = "in", .out_name = "out"};
    char *coded = NULL, *back = NULL;
    size_t ncoded = 0, nback = 0;
    job.in = open_bytes(data, nbytes);
    job.out = open_memstream(&coded, &ncoded);
    check(job.out != NULL);
    zipccl_status status = zipccl_file_encode(&job, dtype, &stats, &error);
    fclose(job.in);
    fclose(job.out);
    if (status == ZIPCCL_OK) {
        job.in = open_bytes(coded, ncoded);
        job.out = open_memstream(&back, &nback);
        check(job.out != NULL && zipccl_file_decode(&job, &stats, &error) == ZIPCCL_OK);
        fclose(job.in);
        fclose(job.out);
        check(nback == nbytes && (nbytes == 0 || memcmp(back, data, nbytes) == 0));
    } else {
        check(status == ZIPCCL_ERR_INPUT && dtype == ZIPCCL_FILE_SAFETENSORS);
        check(strncmp(error.text, "in: ", 4) == 0);
    }
    free(coded);
    free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    there_and_back(data, nbytes, ZIPCCL_FILE_SAFETENSORS);
    there_and_back(data, nbytes,
                   (enum zipccl_dtype)(nbytes > 0 ? data[nbytes - 1] % ZIPCCL_NUM_DTYPES : 0));
    return 0;
}
