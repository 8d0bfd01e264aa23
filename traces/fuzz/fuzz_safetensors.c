/*
 * fuzz_safetensors.c - any bytes as a tensor file: refused, or every byte of every tensor readable
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/fuzz/fuzz.h"
#include "traces/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t zipccl_fuzz_seed(unsigned i, uint8_t *out)
{
    static const char *const headers[] = {
        "{\"a.x\":{\"dtype\":\"BF16\",\"shape\":[2,2],\"data_offsets\":[0,8]},\"a.y\":{\"dtype\":"
        "\"F32\",\"shape\":[1],\"data_offsets\":[8,12]},\"__metadata__\":{\"k\":\"v\"}}   ",
        "{\"t\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},\"e\":{\"dtype\":\"BOOL\","
        "\"shape\":[0],\"data_offsets\":[8,8]}}",
        "{}"};
    static const size_t ndata[] = {12, 8, 0};
    size_t n;

    if (i >= sizeof headers / sizeof headers[0])
        return 0;
    n = strlen(headers[i]);
    memset(out, 0, 8);
    out[0] = (uint8_t)n;
    memcpy(out + 8, headers[i], n);
    memset(out + 8 + n, 0x5a, ndata[i]);
    return 8 + n + ndata[i];
}

static void open_and_read(const char *path, bool loose, size_t nbytes)
{
    const struct zipccl_safetensors *file;
    struct zipccl_error error = {""};
    uint64_t total = 0, sum = 0;

    if ((loose ? zipccl_safetensors_open_loose : zipccl_safetensors_open)(path, &file, &error) !=
        ZIPCCL_OK) {
        if (error.text[0] == '\0')
            abort();
        return;
    }
    for (size_t i = 0; i < file->ntensors; i++) {
        const struct zipccl_tensor *t = &file->tensors[i];

        for (uint64_t k = 0; k < t->nbytes; k++)
            sum += ((const uint8_t *)t->data)[k];
        total += t->nbytes;
        if (zipccl_safetensors_find(file, t->name) != t || t->offset + t->nbytes > nbytes)
            abort();
    }
    if (total > file->data_nbytes || (total != file->data_nbytes && !loose) || sum > total * 255)
        abort();
    zipccl_safetensors_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    const char *path = zipccl_fuzz_file(data, nbytes);

    open_and_read(path, false, nbytes);
    open_and_read(path, true, nbytes);
    return 0;
}
