/*
 * objects.h - questions about the shared objects of this process
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_OBJECTS_H
#define ZIPCCL_GPU_PRELOAD_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>

/* True if 'address' lies in the object that this code is part of. */
bool zipccl_object_is_ours(const void *address);

/* True if 'path' is the file of that object, under any name. */
bool zipccl_object_is_our_file(const char *path);

/* The address under which that object exports 'name'; NULL if it does not. */
void *zipccl_object_own_symbol(const char *name);

/*
 * Make the dynamic symbol of that object at 'address' undefined: from now on dlsym() and late binding
 * pass it over, as if this object had never exported it.  Those who bound it before keep their address.
 * Nothing happens where the table cannot be written.
 */
void zipccl_object_hide(void *address);

/* True if objects were loaded since the last call that said so. */
bool zipccl_objects_changed(void);

/* The file and version of an NCCL library in this process that is neither 'path', if that is not NULL, nor ours. */
bool zipccl_object_find_other(const char *path, char *other, size_t room, int *version);

#endif
