/*
 * real.c - find the NCCL library in use, under LD_PRELOAD or as the forwarding library
 *
 * Preloaded, it is the next library in line, or, where the program's loader gave it no global scope (as
 * Python does), the libnccl.so.2 that is already there.  As the forwarding library, whose SONAME is
 * libnccl.so.2 itself, it is the file that ZIPCCL_NCCL names, else an NCCL that is in the process (PyTorch's,
 * where something else opens this one by its path), else the next libnccl.so.2 on LD_LIBRARY_PATH or in the
 * usual folders.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "gpu/preload/real.h"

#include "gpu/preload/log.h"
#include "gpu/preload/objects.h"
#ifdef ZIPCCL_FORWARDING
#include "gpu/preload/extra.h"
#endif

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OLDEST = 21800 };

const struct zipccl_nccl *zipccl_nccl_known;

static struct zipccl_nccl table, nothing;
static bool look_twice, quiet;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* What this library exports under a name of nccl.h, to be hidden where the one in use lacks it. */
static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define ZIPCCL_ENTRY(ret, name, params, args) {#name, offsetof(struct zipccl_nccl, name)},
    ZIPCCL_NCCL_FUNCTIONS(ZIPCCL_ENTRY)
#undef ZIPCCL_ENTRY
};

/* 'name' or its pnccl twin in 'handle', unless that is a symbol of ours. */
static void *symbol_of(void *handle, const char *name)
{
    char twin[128];
    void *symbol;

    (void)snprintf(twin, sizeof twin, "p%s", name);
    symbol = dlsym(handle, twin);
    if (symbol == NULL || zipccl_object_is_ours(symbol))
        symbol = dlsym(handle, name);
    return symbol != NULL && !zipccl_object_is_ours(symbol) ? symbol : NULL;
}

static bool usable(void *handle)
{
    return handle != NULL && symbol_of(handle, "ncclGetUniqueId") != NULL;
}

#ifdef ZIPCCL_FORWARDING
static void *open_file(const char *folder, size_t length, char *path, size_t room)
{
    void *handle;

    if (length == 0 || snprintf(path, room, "%.*s/libnccl.so.2", (int)length, folder) >= (int)room)
        return NULL;
    if (zipccl_object_is_our_file(path))
        return NULL;
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle != NULL && !usable(handle)) {
        dlclose(handle);
        handle = NULL;
    }
    return handle;
}

static void *open_next(const char **found)
{
    static const char *const usual[] = {"/usr/lib/x86_64-linux-gnu",
                                        "/usr/lib/aarch64-linux-gnu",
                                        "/usr/lib64",
                                        "/usr/lib",
                                        "/usr/local/cuda/lib64",
                                        "/usr/local/lib",
                                        NULL};
    const char *at = getenv("LD_LIBRARY_PATH"), *end;
    char path[512];
    int version;
    void *handle;

    *found = "already loaded";
    handle = zipccl_object_find_other(NULL, path, sizeof path, &version)
                 ? dlopen(path, RTLD_NOLOAD | RTLD_LAZY)
                 : NULL;
    if (usable(handle))
        return handle;
    for (; at != NULL && *at != '\0'; at = *end != '\0' ? end + 1 : NULL) {
        end = at + strcspn(at, ":");
        handle = open_file(at, (size_t)(end - at), path, sizeof path);
        if (handle != NULL) {
            *found = "next on LD_LIBRARY_PATH";
            return handle;
        }
    }
    for (size_t i = 0; usual[i] != NULL; i++) {
        handle = open_file(usual[i], strlen(usual[i]), path, sizeof path);
        if (handle != NULL) {
            *found = "in a usual folder";
            return handle;
        }
    }
    return NULL;
}
#else
static void *open_next(const char **found)
{
    void *next = dlsym(RTLD_NEXT, "ncclGetUniqueId"), *handle;
    Dl_info info;

    /* A handle finds pnccl names where RTLD_NEXT would take those of another library. */
    if (next != NULL && dladdr(next, &info) != 0 && info.dli_fname != NULL) {
        handle = dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
        *found = "next in line";
        if (usable(handle))
            return handle;
        if (!zipccl_object_is_ours(next)) /* linked into the program itself */
            return dlopen(NULL, RTLD_LAZY);
    }
    *found = "already loaded";
    handle = dlopen("libnccl.so.2", RTLD_NOLOAD | RTLD_LAZY);
    return usable(handle) ? handle : NULL;
}
#endif

/* Not while it is looked for before anyone has called it: a job's shells and tools have this library as well. */
#define COMPLAIN(...)                                                                              \
    do {                                                                                           \
        if (!quiet)                                                                                \
            zipccl_log_warn_once("ZIPCCL_NCCL", __VA_ARGS__);                                      \
    } while (0)

static void *open_library(const char **found)
{
    const char *path = getenv("ZIPCCL_NCCL");
    void *handle;

    if (path == NULL || path[0] == '\0')
        return open_next(found);
    *found = "ZIPCCL_NCCL";
    if (zipccl_object_is_our_file(path)) {
        COMPLAIN("ZIPCCL_NCCL=%s names this library itself, expected the library to call", path);
        return NULL;
    }
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        COMPLAIN("ZIPCCL_NCCL=%s cannot be loaded: %s", path, dlerror());
    else if (!usable(handle))
        COMPLAIN("ZIPCCL_NCCL=%s is no NCCL library: it has no ncclGetUniqueId", path);
    return usable(handle) ? handle : NULL;
}

#ifdef ZIPCCL_FORWARDING
static ncclResult_t extra_missing(void)
{
    return zipccl_nccl_missing("a function that nccl.h of this build does not declare");
}

static void fill_extra(void *handle)
{
    for (size_t i = 0; zipccl_extra_names[i] != NULL; i++) {
        void *symbol = handle != NULL ? dlsym(handle, zipccl_extra_names[i]) : NULL;

        if (symbol == NULL || zipccl_object_is_ours(symbol)) {
            zipccl_extra_slots[i] = (void *)extra_missing;
            if (handle != NULL)
                zipccl_object_hide(zipccl_extra_symbols[i]);
        } else {
            zipccl_extra_slots[i] = symbol;
        }
    }
}
#endif

/* Where both are in use, the preloaded library does the work and the forwarding one forwards. */
static bool stand_aside(void *handle)
{
    void *symbol = dlsym(handle, "zipccl_shim_stand_aside");
    void (*tell)(void);

    if (symbol == NULL || zipccl_object_is_ours(symbol))
        return false;
    memcpy(&tell, &symbol, sizeof tell);
    tell();
    return true;
}

static void hide_own(const char *name)
{
    void *own = zipccl_object_own_symbol(name);

    if (own != NULL)
        zipccl_object_hide(own);
}

static void fill(void *handle, const char *found)
{
    Dl_info info;
    void *some;

    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *symbol = symbol_of(handle, functions[i].name);

        memcpy((char *)&table + functions[i].offset, &symbol, sizeof symbol);
        if (symbol == NULL) {
            char twin[128];

            (void)snprintf(twin, sizeof twin, "p%s", functions[i].name);
            hide_own(functions[i].name);
            hide_own(twin);
        }
    }
    table.found = found;
    look_twice = !stand_aside(handle);
    memcpy(&some, &table.ncclGetUniqueId, sizeof some);
    if (dladdr(some, &info) != 0 && info.dli_fname != NULL)
        (void)snprintf(table.path, sizeof table.path, "%s", info.dli_fname);
    if (table.ncclGetVersion == NULL || table.ncclGetVersion(&table.version) != ncclSuccess)
        table.version = 0;
}

const struct zipccl_nccl *zipccl_nccl_find(void)
{
    const struct zipccl_nccl *result;
    const char *found = NULL;
    void *handle;

    pthread_mutex_lock(&lock);
    if (zipccl_nccl_known == NULL) {
        handle = open_library(&found);
#ifdef ZIPCCL_FORWARDING
        fill_extra(handle);
#endif
        if (handle != NULL) {
            fill(handle, found);
            __atomic_store_n(&zipccl_nccl_known, &table, __ATOMIC_RELEASE);
        }
    }
    result = zipccl_nccl_known != NULL ? zipccl_nccl_known : &nothing;
    pthread_mutex_unlock(&lock);
    return result;
}

#ifdef ZIPCCL_FORWARDING
void zipccl_nccl_find_early(void)
{
    quiet = true;
    (void)zipccl_nccl_find();
    quiet = false;
}
#endif

ncclResult_t zipccl_nccl_missing(const char *name)
{
    const struct zipccl_nccl *nccl = zipccl_nccl_get();

    if (nccl->version == 0)
        zipccl_log_warn_once(name,
                             "%s was called, but no NCCL library was found: set ZIPCCL_NCCL to the "
                             "path of the libnccl.so.2 to use",
                             name);
    else
        zipccl_log_warn_once(name, "%s was called, which NCCL %d (%s) does not have", name,
                             nccl->version, nccl->path);
    return ncclInvalidUsage;
}

const char *zipccl_nccl_missing_text(const char *name)
{
    (void)zipccl_nccl_missing(name);
    return "zipccl: the NCCL library in use lacks this function";
}

void zipccl_nccl_say_old(const struct zipccl_nccl *nccl)
{
    if (nccl->path[0] != '\0' && nccl->version < OLDEST)
        zipccl_log_warn("%s is NCCL %d, expected 2.18 or newer (%d): calls are passed on",
                        nccl->path, nccl->version, OLDEST);
}

bool zipccl_nccl_look_twice(void)
{
    char path[sizeof table.second_path];
    const char *ours;
    bool is_new = false;
    int version;

    if (zipccl_nccl_get()->version == 0 || !look_twice || !zipccl_objects_changed())
        return false;
    pthread_mutex_lock(&lock);
    ours = table.path;
    if (table.second_path[0] == '\0' &&
        zipccl_object_find_other(ours, path, sizeof path, &version)) {
        (void)snprintf(table.second_path, sizeof table.second_path, "%s", path);
        table.second_version = version;
        is_new = true;
    }
    pthread_mutex_unlock(&lock);
    return is_new;
}
