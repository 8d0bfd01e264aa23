/*
 * objects.c - questions about the shared objects of this process
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "gpu/preload/objects.h"

#include <dlfcn.h>
#include <elf.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char own_marker;

static const void *base_of(const void *address)
{
    Dl_info info;

    return dladdr(address, &info) != 0 ? info.dli_fbase : NULL;
}

bool zipccl_object_is_ours(const void *address)
{
    return base_of(address) == base_of(&own_marker);
}

bool zipccl_object_is_our_file(const char *path)
{
    struct stat theirs, ours;
    Dl_info info;

    return dladdr(&own_marker, &info) != 0 && stat(path, &theirs) == 0 &&
           stat(info.dli_fname, &ours) == 0 && theirs.st_dev == ours.st_dev &&
           theirs.st_ino == ours.st_ino;
}

void *zipccl_object_own_symbol(const char *name)
{
    Dl_info info;
    void *self, *symbol;

    if (dladdr(&own_marker, &info) == 0)
        return NULL;
    self = dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
    if (self == NULL)
        return NULL;
    symbol = dlsym(self, name);
    dlclose(self);
    return symbol != NULL && zipccl_object_is_ours(symbol) ? symbol : NULL;
}

void zipccl_object_hide(void *address)
{
    ElfW(Sym) *symbol = NULL;
    Dl_info info;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first, last;

    if (dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT) == 0 || symbol == NULL ||
        info.dli_saddr != address || !zipccl_object_is_ours(address))
        return;
    first = (uintptr_t)symbol & ~(page - 1);
    last = ((uintptr_t)(symbol + 1) + page - 1) & ~(page - 1);
    if (mprotect((void *)first, last - first, PROT_READ | PROT_WRITE) != 0)
        return;
    symbol->st_shndx = SHN_UNDEF;
    symbol->st_value = 0;
    (void)mprotect((void *)first, last - first, PROT_READ);
}

static int see_adds(struct dl_phdr_info *info, size_t size, void *arg)
{
    unsigned long long *adds = arg;

    *adds = size >= offsetof(struct dl_phdr_info, dlpi_subs) ? info->dlpi_adds : *adds + 1;
    return 1;
}

bool zipccl_objects_changed(void)
{
    static unsigned long long seen;
    unsigned long long adds = __atomic_load_n(&seen, __ATOMIC_RELAXED);

    (void)dl_iterate_phdr(see_adds, &adds);
    return __atomic_exchange_n(&seen, adds, __ATOMIC_RELAXED) != adds;
}

/* The names of all objects, since no dlopen() is allowed while they are iterated over. */
struct names {
    size_t n, room;
    char **list;
};

static int collect(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct names *names = arg;
    char **grown;

    (void)size;
    if (info->dlpi_name == NULL || info->dlpi_name[0] == '\0')
        return 0;
    if (names->n == names->room) {
        grown = realloc(names->list, (names->room + 64) * sizeof *grown);
        if (grown == NULL)
            return 1;
        names->list = grown;
        names->room += 64;
    }
    names->list[names->n] = strdup(info->dlpi_name);
    if (names->list[names->n] == NULL)
        return 1;
    names->n++;
    return 0;
}

/* The version of 'path' if that object itself, not one that it needs, is an NCCL library; else 0. */
static int version_of(const char *path, const void *known_base)
{
    void *handle = dlopen(path, RTLD_NOLOAD | RTLD_LAZY), *symbol;
    int (*get)(int *);
    int version = 0;
    Dl_info info;

    if (handle == NULL)
        return 0;
    symbol = dlsym(handle, "pncclGetVersion");
    if (symbol != NULL && dladdr(symbol, &info) != 0 && info.dli_fbase != known_base &&
        !zipccl_object_is_ours(symbol) && strcmp(info.dli_fname, path) == 0) {
        memcpy(&get, &symbol, sizeof get);
        if (get(&version) != 0)
            version = 0;
    }
    dlclose(handle);
    return version;
}

bool zipccl_object_find_other(const char *path, char *other, size_t room, int *version)
{
    struct names names = {0};
    void *handle = path != NULL ? dlopen(path, RTLD_NOLOAD | RTLD_LAZY) : NULL;
    const void *known = NULL;
    bool found = false;

    if (handle != NULL) {
        known = base_of(dlsym(handle, "pncclGetVersion"));
        dlclose(handle);
    }
    (void)dl_iterate_phdr(collect, &names);
    for (size_t i = 0; i < names.n; i++) {
        int v = found || zipccl_object_is_our_file(names.list[i])
                    ? 0
                    : version_of(names.list[i], known);

        if (v != 0) {
            (void)snprintf(other, room, "%s", names.list[i]);
            *version = v;
            found = true;
        }
        free(names.list[i]);
    }
    free(names.list);
    return found;
}
