# SPDX-License-Identifier: Apache-2.0
# tests.cmake - tests of core
zipccl_criterion_test(test_dtype SOURCES tests/test_dtype.c LIBS zipccl_core)
