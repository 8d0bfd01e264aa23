# SPDX-License-Identifier: Apache-2.0
# tests.cmake - tests of core
zipccl_criterion_test(test_dtype SOURCES tests/test_dtype.c LIBS zipccl_core)
foreach(test test_codec test_codec_rows test_codec_ratio)
    zipccl_criterion_test(${test} SOURCES tests/${test}.c tests/codec_data.c LIBS zipccl_core)
endforeach()

# A program to look at, not a test.
add_executable(codec_speed tests/codec_speed.c tests/codec_data.c)
target_link_libraries(codec_speed PRIVATE zipccl_core m)

# Plans need of the codec only the size of the largest message.
if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/codec/message.c)
    set(plan_extra)
else()
    set(plan_extra tests/bound_stub.c)
endif()
zipccl_criterion_test(test_topology SOURCES tests/test_topology.c LIBS zipccl_core)
zipccl_criterion_test(test_plan SOURCES tests/test_plan.c ${plan_extra} LIBS zipccl_core)
