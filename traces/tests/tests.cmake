# SPDX-License-Identifier: Apache-2.0
# tests.cmake - tests of traces
zipccl_criterion_test(test_trace_errors SOURCES tests/test_trace_errors.c tests/scratch.c
    LIBS zipccl_traces ZLIB::ZLIB)
