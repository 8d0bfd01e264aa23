/*
 * test_dtype.c - names, numbers and sizes of types, operations and operators
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/dtype.h"
#include "core/status.h"

#include <criterion/criterion.h>

Test(dtype, names_round_trip)
{
    for (unsigned i = 0; i < ZIPCCL_NUM_DTYPES; i++) {
        enum zipccl_dtype got = ZIPCCL_NUM_DTYPES;

        cr_assert(zipccl_dtype_parse(zipccl_dtype_name((enum zipccl_dtype)i), &got));
        cr_assert_eq((unsigned)got, i);
        cr_assert_gt(zipccl_dtype_size((enum zipccl_dtype)i), 0);
    }
    for (unsigned i = 0; i < ZIPCCL_NUM_OPS; i++) {
        enum zipccl_op got = ZIPCCL_NUM_OPS;

        cr_assert(zipccl_op_parse(zipccl_op_name((enum zipccl_op)i), &got));
        cr_assert_eq((unsigned)got, i);
    }
    for (unsigned i = 0; i < ZIPCCL_NUM_REDOPS; i++) {
        enum zipccl_redop got = ZIPCCL_NUM_REDOPS;

        cr_assert(zipccl_redop_parse(zipccl_redop_name((enum zipccl_redop)i), &got));
        cr_assert_eq((unsigned)got, i);
    }
}

Test(dtype, unknown_names_and_numbers_are_refused)
{
    enum zipccl_dtype dtype = ZIPCCL_INT8;

    cr_assert_not(zipccl_dtype_parse("bf17", &dtype));
    cr_assert_eq(dtype, ZIPCCL_INT8);
    cr_assert_eq(zipccl_dtype_size((enum zipccl_dtype)99), 0);
    cr_assert_str_eq(zipccl_dtype_name((enum zipccl_dtype)99), "?");
}

Test(status, failure_writes_its_text)
{
    struct zipccl_error error = {""};

    cr_assert_eq(zipccl_fail(&error, ZIPCCL_ERR_INPUT, "%s:%d: bad", "f", 3), ZIPCCL_ERR_INPUT);
    cr_assert_str_eq(error.text, "f:3: bad");
    cr_assert_eq(zipccl_fail(NULL, ZIPCCL_ERR_IO, "x"), ZIPCCL_ERR_IO);
}
