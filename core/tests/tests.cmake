# SPDX-License-Identifier: Apache-2.0
# tests.cmake - tests of core
zipccl_criterion_test(test_dtype SOURCES tests/test_dtype.c LIBS zipccl_core)
zipccl_criterion_test(test_codec SOURCES tests/test_codec.c tests/codec_data.c LIBS zipccl_core)

# A program to look at, not a test.
add_executable(codec_speed tests/codec_speed.c tests/codec_data.c)
target_link_libraries(codec_speed PRIVATE zipccl_core m)

zipccl_criterion_test(test_exec_reduce SOURCES tests/test_exec_reduce.c LIBS zipccl_core)
zipccl_criterion_test(test_exec_mem SOURCES tests/test_exec_mem.c LIBS zipccl_core)
zipccl_plain_test(test_collectives LIBS zipccl_core
    SOURCES tests/test_collectives.c tests/coll_world.c tests/coll_buffers.c)
