/*
 * state_files.c - folders of learnt state: checked, loaded, saved
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/perf/state_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

static zipccl_status fail_path(const char *option, const char *path, int reason,
                               struct zipccl_error *error)
{
    return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s %.300s: %s", option, path, strerror(reason));
}

/* The folder in which 'path' is. */
static void parent_of(const char *path, char out[PATH_SIZE])
{
    size_t n = strlen(path);
    const char *slash;

    while (n > 1 && path[n - 1] == '/')
        n--;
    snprintf(out, PATH_SIZE, "%.*s", (int)n, path);
    slash = strrchr(out, '/');
    if (slash == NULL)
        snprintf(out, PATH_SIZE, ".");
    else
        out[slash > out ? slash - out : 1] = '\0';
}

static zipccl_status check_folder(const char *option, const char *path, int may, bool missing,
                                  struct zipccl_error *error)
{
    char parent[PATH_SIZE];
    struct stat info;

    if (strlen(path) > PATH_SIZE - 64 || path[0] == '\0')
        return fail_path(option, path, path[0] == '\0' ? ENOENT : ENAMETOOLONG, error);
    if (stat(path, &info) != 0) {
        if (errno != ENOENT || !missing)
            return fail_path(option, path, errno, error);
        parent_of(path, parent);
        return access(parent, W_OK | X_OK) == 0 ? ZIPCCL_OK : fail_path(option, path, errno, error);
    }
    if (!S_ISDIR(info.st_mode))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%s %.300s: found a file, expected a folder, with a file for each rank",
                           option, path);
    return access(path, may | X_OK) == 0 ? ZIPCCL_OK : fail_path(option, path, errno, error);
}

zipccl_status zipccl_state_files_check(const struct zipccl_state_files *files,
                                       struct zipccl_error *error)
{
    if (files->load != NULL)
        ZIPCCL_TRY(check_folder("--state-load", files->load, R_OK, false, error));
    if (files->save != NULL)
        ZIPCCL_TRY(check_folder("--state-save", files->save, W_OK, true, error));
    return ZIPCCL_OK;
}

void zipccl_state_files_config(const struct zipccl_state_files *files,
                               struct zipccl_comm_config *config)
{
    if (files->freeze)
        config->learning = ZIPCCL_LEARN_NOTHING;
}

static void path_of(const char *folder, const char *name, uint32_t rank, char out[PATH_SIZE])
{
    snprintf(out, PATH_SIZE, "%s/%s%srank-%u.state", folder, name, name[0] != '\0' ? "." : "",
             rank);
}

zipccl_status zipccl_state_files_load(const struct zipccl_state_files *files, const char *name,
                                      uint32_t rank, struct zipccl_comm *comm)
{
    char path[PATH_SIZE];

    if (files->load == NULL)
        return ZIPCCL_OK;
    path_of(files->load, name, rank, path);
    return zipccl_comm_load_state_file(comm, path);
}

zipccl_status zipccl_state_files_save(const struct zipccl_state_files *files, const char *name,
                                      uint32_t rank, struct zipccl_comm *comm,
                                      struct zipccl_error *error)
{
    char path[PATH_SIZE];
    zipccl_status status;

    if (files->save == NULL)
        return ZIPCCL_OK;
    if (mkdir(files->save, 0777) != 0 && errno != EEXIST)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "--state-save %.300s: %s", files->save,
                           strerror(errno));
    path_of(files->save, name, rank, path);
    status = zipccl_comm_save_state_file(comm, path);
    if (status != ZIPCCL_OK)
        zipccl_fail(error, status, "--state-save: %.400s", zipccl_comm_error(comm));
    return status;
}

zipccl_status zipccl_state_files_status(zipccl_status status, bool not_loaded)
{
    bool others = status == ZIPCCL_ERR_MISMATCH || status == ZIPCCL_ERR_ABORTED;

    return not_loaded && others ? ZIPCCL_ERR_INPUT : status;
}

bool zipccl_tells_less(zipccl_status status, zipccl_status other)
{
    static const zipccl_status order[] = {ZIPCCL_ERR_ABORTED, ZIPCCL_ERR_MISMATCH};

    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (status == order[i] || other == order[i])
            return status == order[i] && other != order[i];
    return false;
}
