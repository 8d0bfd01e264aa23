# SPDX-License-Identifier: Apache-2.0
# tests.cmake - tests of core
zipccl_criterion_test(test_dtype SOURCES tests/test_dtype.c LIBS zipccl_core)
set(ZIPCCL_CODEC_TESTS test_codec test_codec_rows test_codec_ratio test_codec_capacity
    test_codec_corrupt test_codec_vectors test_codec_tensors
    test_codec_types test_codec_fused test_codec_choice)
foreach(test ${ZIPCCL_CODEC_TESTS})
    zipccl_criterion_test(${test} SOURCES tests/${test}.c tests/codec_data.c LIBS zipccl_core)
endforeach()

# Programs to run by hand: figures to look at, and the test vectors' author.
foreach(program codec_speed make_vectors)
    add_executable(${program} tests/${program}.c tests/codec_data.c)
    target_link_libraries(${program} PRIVATE zipccl_core m)
    set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endforeach()

include(fuzz/fuzz.cmake)

zipccl_criterion_test(test_topology SOURCES tests/test_topology.c LIBS zipccl_core)
zipccl_criterion_test(test_plan SOURCES tests/test_plan.c LIBS zipccl_core)
zipccl_criterion_test(test_plan_broken SOURCES tests/test_plan_broken.c LIBS zipccl_core)
zipccl_criterion_test(test_plan_reduce SOURCES tests/test_plan_reduce.c LIBS zipccl_core)
zipccl_criterion_test(test_plan_print SOURCES tests/test_plan_print.c LIBS zipccl_core)
zipccl_criterion_test(test_lower SOURCES tests/test_lower.c LIBS zipccl_core)
zipccl_criterion_test(test_cost SOURCES tests/test_cost.c LIBS zipccl_core)
zipccl_criterion_test(test_cost_levels SOURCES tests/test_cost_levels.c LIBS zipccl_core)
zipccl_criterion_test(test_choose SOURCES tests/test_choose.c LIBS zipccl_core)
