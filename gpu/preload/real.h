/*
 * real.h - the NCCL library that the job uses: found, its functions as pointers
 *
 * Built against one nccl.h, used with any libnccl from 2.18: what the library in use lacks is NULL in the
 * table, is not called, and is taken out of this library's own symbol table, so that dlsym() tells
 * callers the truth.  Functions are taken by their pnccl* names, which nobody interposes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_REAL_H
#define ZIPCCL_GPU_PRELOAD_REAL_H

#include <nccl.h>
#include <nccl_table.h>

#include <stdbool.h>
#include <stddef.h>

struct zipccl_nccl {
    int version;           /* as ncclGetVersion() says; 0: no library was found */
    char path[512];        /* of its file */
    const char *found;     /* how: "ZIPCCL_NCCL", "next in line", "already loaded", ... */
    char second_path[512]; /* another copy in this process; "" if there is none */
    int second_version;
#define ZIPCCL_MEMBER(ret, name, params, args) ret(*name) params;
    ZIPCCL_NCCL_FUNCTIONS(ZIPCCL_MEMBER)
#undef ZIPCCL_MEMBER
};

extern const struct zipccl_nccl *zipccl_nccl_known;

/* Look for the library in use; always a table, whose functions are NULL while none is found. */
const struct zipccl_nccl *zipccl_nccl_find(void);

/* The same before main(), when it is no harm if there is none: nothing is said. */
void zipccl_nccl_find_early(void);

/* The table; costs a load once the library has been found.  Any thread. */
static inline const struct zipccl_nccl *zipccl_nccl_get(void)
{
    const struct zipccl_nccl *nccl = __atomic_load_n(&zipccl_nccl_known, __ATOMIC_ACQUIRE);

    return __builtin_expect(nccl != NULL, 1) ? nccl : zipccl_nccl_find();
}

/* Say so if 'nccl' was found and is older than any that this library was made for. */
void zipccl_nccl_say_old(const struct zipccl_nccl *nccl);

/* Say, once for each name, that the library in use has no 'name'; what its caller is told. */
ncclResult_t zipccl_nccl_missing(const char *name);
const char *zipccl_nccl_missing_text(const char *name);

/*
 * Look whether NCCL has been loaded a second time since the last look; costs a few ns where nothing was
 * loaded.  True the first time that it is found: 'nccl' then names it.
 */
bool zipccl_nccl_look_twice(void);

#endif
