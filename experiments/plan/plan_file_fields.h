/*
 * plan_file_fields.h - the numbers of a plan, its steps and their places, by the names of the file
 *
 * Private to plan_file_read.c and plan_file_write.c, which walk the same tables.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_PLAN_FILE_FIELDS_H
#define ZIPCCL_EXPERIMENTS_PLAN_FILE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A member of a struct; 'name' NULL ends a table. */
struct plan_field {
    const char *name;
    size_t offset, width;     /* width: 1, 2, 4 or 8 bytes */
    const char *const *words; /* its values by name, NULL at the end; NULL: a number */
    uint64_t most;            /* of a number */
    bool none;                /* null stands for the largest value of its width, ZIPCCL_STEP_NONE */
};

extern const struct plan_field plan_fields[], plan_step_fields[], plan_place_fields[];

/* Names of 'src', 'dst' and 'self', and where they are in a step. */
struct plan_place_name {
    const char *name;
    size_t offset;
};
enum { PLAN_NUM_PLACES = 3 };
extern const struct plan_place_name plan_place_names[PLAN_NUM_PLACES];

uint64_t plan_field_get(const void *from, const struct plan_field *field);
void plan_field_set(void *to, const struct plan_field *field, uint64_t value);

#endif
