/*
 * open_cluster.c - a cluster as the command line gives it: name or file, folder, --set
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/program/open_cluster.h"

#include "experiments/program/program.h"

#include <string.h>

zipccl_status zipccl_cluster_folder(const char *given, char *out, size_t size,
                                    struct zipccl_error *error)
{
    if (given == NULL)
        return zipccl_beside_program(ZIPCCL_CLUSTER_DIR, out, size, error);
    if (snprintf(out, size, "%s", given) >= (int)size)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "--cluster-dir: the path is too long");
    return ZIPCCL_OK;
}

/* Of two values for one key only one can be meant. */
static zipccl_status check_once(const char *const *sets, size_t nsets, struct zipccl_error *error)
{
    for (size_t i = 1; i < nsets; i++)
        for (size_t k = 0; k < i; k++) {
            size_t n = strcspn(sets[i], "=");

            if (n == strcspn(sets[k], "=") && strncmp(sets[i], sets[k], n) == 0)
                return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                                   "--set %.*s is given twice, with \"%.40s\" and \"%.40s\"",
                                   n < 60 ? (int)n : 60, sets[i], sets[k] + n, sets[i] + n);
        }
    return ZIPCCL_OK;
}

zipccl_status zipccl_cluster_open_with(const char *name, const char *folder,
                                       const char *const *sets, size_t nsets,
                                       struct zipccl_cluster_file **out, struct zipccl_error *error)
{
    struct zipccl_cluster_file *file = NULL;
    struct zipccl_cluster cluster;

    ZIPCCL_TRY(check_once(sets, nsets, error));
    ZIPCCL_TRY(zipccl_cluster_open(name, folder, &file, error));
    zipccl_status status = ZIPCCL_OK;
    for (size_t i = 0; status == ZIPCCL_OK && i < nsets; i++)
        status = zipccl_cluster_set(file, sets[i], error);
    if (status == ZIPCCL_OK)
        status = zipccl_cluster_get(file, &cluster, error);
    if (status != ZIPCCL_OK) {
        zipccl_cluster_close(file);
        return status;
    }
    *out = file;
    return ZIPCCL_OK;
}
