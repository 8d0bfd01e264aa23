/*
 * open_cluster.h - a cluster as the command line gives it: name or file, folder, --set
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_OPEN_CLUSTER_H
#define ZIPCCL_EXPERIMENTS_OPEN_CLUSTER_H

#include "models/cluster.h"

/* Folder of named clusters: 'given', or the one of the source tree if that is NULL. */
zipccl_status zipccl_cluster_folder(const char *given, char *out, size_t size,
                                    struct zipccl_error *error);

/*
 * Open 'name', a cluster in 'folder' or a file, apply 'sets' [nsets] and see that all fits.
 *
 * ZIPCCL_ERR_INPUT also if a key is set twice; else as zipccl_cluster_open() and
 * zipccl_cluster_set().
 */
zipccl_status zipccl_cluster_open_with(const char *name, const char *folder,
                                       const char *const *sets, size_t nsets,
                                       struct zipccl_cluster_file **out,
                                       struct zipccl_error *error);

#endif
