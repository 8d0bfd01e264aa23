# SPDX-License-Identifier: Apache-2.0
# tests.cmake - tests of core
zipccl_criterion_test(test_dtype SOURCES tests/test_dtype.c LIBS zipccl_core)
foreach(test test_codec test_codec_rows test_codec_ratio)
    zipccl_criterion_test(${test} SOURCES tests/${test}.c tests/codec_data.c LIBS zipccl_core)
endforeach()

# A program to look at, not a test.
add_executable(codec_speed tests/codec_speed.c tests/codec_data.c)
target_link_libraries(codec_speed PRIVATE zipccl_core m)
