/*
 * device_nvcomp.c - nvCOMP's batched C interface, for a library that is found at run time
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/device/device_nvcomp.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

void nvcomp_open(const char *path, struct nvcomp_library *out)
{
    const char *const names[] = {path != NULL ? path : "libnvcomp.so.5", "libnvcomp.so"};
    int (*properties)(struct nvcomp_properties *) = NULL;
    void *symbol = NULL;

    memset(out, 0, sizeof *out);
    for (int i = 0; i < (path != NULL ? 1 : 2) && out->handle == NULL; i++)
        out->handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (out->handle == NULL) {
        const char *text = path != NULL ? dlerror() : NULL;

        snprintf(out->why, sizeof out->why, "%.190s", text != NULL ? text : "not found");
        return;
    }
    symbol = dlsym(out->handle, "nvcompGetProperties");
    memcpy(&properties, &symbol, sizeof symbol);
    if (properties == NULL || properties(&out->properties) != NVCOMP_SUCCESS)
        snprintf(out->why, sizeof out->why, "it does not tell its version");
    else if (out->properties.version / 1000 != 5)
        snprintf(out->why, sizeof out->why, "found version number %u, expected 5000 to 5999",
                 out->properties.version);
    if (out->why[0] != '\0')
        nvcomp_close(out);
}

void nvcomp_close(struct nvcomp_library *library)
{
    if (library->handle != NULL)
        (void)dlclose(library->handle);
    library->handle = NULL;
}

zipccl_status nvcomp_find(const struct nvcomp_library *library, const char *name,
                          struct nvcomp_format *out, struct zipccl_error *error)
{
    static const char *const functions[] = {"CompressGetTempSizeAsync",
                                            "CompressGetMaxOutputChunkSize", "CompressAsync",
                                            "DecompressGetTempSizeAsync", "DecompressAsync"};
    void *symbols[5];
    char full[96];

    for (size_t i = 0; i < 5; i++) {
        snprintf(full, sizeof full, "nvcompBatched%s%s", name, functions[i]);
        symbols[i] = dlsym(library->handle, full);
        if (symbols[i] == NULL)
            return zipccl_fail(error, ZIPCCL_ERR_UNSUPPORTED, "it has no %s", full);
    }
    /* Pointers to objects and to functions are one size where there is dlsym(). */
    memcpy(&out->compress_temp, &symbols[0], sizeof symbols[0]);
    memcpy(&out->max_output, &symbols[1], sizeof symbols[1]);
    memcpy(&out->compress, &symbols[2], sizeof symbols[2]);
    memcpy(&out->decompress_temp, &symbols[3], sizeof symbols[3]);
    memcpy(&out->decompress, &symbols[4], sizeof symbols[4]);
    return ZIPCCL_OK;
}
