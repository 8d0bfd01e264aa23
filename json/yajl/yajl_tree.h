/*
 * yajl_tree.h - a JSON text as a tree: the part of yajl's interface that this tree calls
 *
 * Names, values and structure are yajl 2.1's, the code is ours.  Strict as yajl_parse.h; as with yajl, comments
 * count as white space here, and a string ends, for its reader, at its first U+0000.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_JSON_YAJL_TREE_H
#define ZIPCCL_JSON_YAJL_TREE_H

#include <stddef.h>

typedef enum {
    yajl_t_string = 1,
    yajl_t_number = 2,
    yajl_t_object = 3,
    yajl_t_array = 4,
    yajl_t_true = 5,
    yajl_t_false = 6,
    yajl_t_null = 7,
    yajl_t_any = 8 /* for yajl_tree_get() alone */
} yajl_type;

#define YAJL_NUMBER_INT_VALID    1u
#define YAJL_NUMBER_DOUBLE_VALID 2u

typedef struct yajl_val_s *yajl_val;

struct yajl_val_s {
    yajl_type type;
    union {
        char *string;
        struct {
            long long i;    /* if flags has YAJL_NUMBER_INT_VALID */
            double d;       /* if flags has YAJL_NUMBER_DOUBLE_VALID */
            char *r;        /* as written */
            unsigned flags; /* neither: out of range */
        } number;
        struct {
            const char **keys; /* [len], in the text's order; a key may stand twice */
            yajl_val *values;  /* [len] */
            size_t len;
        } object;
        struct {
            yajl_val *values; /* [len] */
            size_t len;
        } array;
    } u;
};

/*
 * Parse 'text', which ends with a NUL, into a tree for yajl_tree_free().  NULL if it is no JSON;
 * 'reason' [size], which may be NULL, then says why and where (yajl_get_error(), verbose).
 */
yajl_val yajl_tree_parse(const char *text, char *reason, size_t size);

/* Free 'root' and all below; it may be NULL. */
void yajl_tree_free(yajl_val root);

/* Follow the keys of 'path', up to a NULL, down from 'root'; NULL if one is missing or the type differs. */
yajl_val yajl_tree_get(yajl_val root, const char **path, yajl_type type);

#define YAJL_IS_STRING(v)  ((v) != NULL && (v)->type == yajl_t_string)
#define YAJL_IS_NUMBER(v)  ((v) != NULL && (v)->type == yajl_t_number)
#define YAJL_IS_OBJECT(v)  ((v) != NULL && (v)->type == yajl_t_object)
#define YAJL_IS_ARRAY(v)   ((v) != NULL && (v)->type == yajl_t_array)
#define YAJL_GET_STRING(v) (YAJL_IS_STRING(v) ? (v)->u.string : NULL)
#define YAJL_GET_NUMBER(v) ((v)->u.number.r)

#endif
