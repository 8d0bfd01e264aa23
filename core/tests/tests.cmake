# SPDX-License-Identifier: Apache-2.0
# tests.cmake - tests of core
zipccl_criterion_test(test_dtype SOURCES tests/test_dtype.c LIBS zipccl_core)
set(ZIPCCL_CODEC_TESTS test_codec test_codec_rows test_codec_ratio test_codec_capacity
    test_codec_corrupt test_codec_vectors test_codec_tensors
    test_codec_types test_codec_fused test_codec_parts test_codec_many test_codec_choice
    test_codec_ans test_codec_isa test_codec_directory)
foreach(test ${ZIPCCL_CODEC_TESTS})
    zipccl_criterion_test(${test} SOURCES tests/${test}.c tests/codec_data.c LIBS zipccl_core)
endforeach()

# Programs to run by hand: figures to look at, and a row's digest.
foreach(program codec_speed isa_probe)
    add_executable(${program} tests/${program}.c tests/codec_data.c)
    target_link_libraries(${program} PRIVATE zipccl_core m)
    set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endforeach()
include(tests/vectors.cmake)

# Emulated processors without some features; sanitizers do not run there.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$" AND NOT ZIPCCL_SANITIZE)
    add_test(NAME codec_cpus COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tests/cpus.sh
        $<TARGET_FILE:isa_probe>)
    set_tests_properties(codec_cpus PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
endif()

include(fuzz/fuzz.cmake)

zipccl_criterion_test(test_topology SOURCES tests/test_topology.c LIBS zipccl_core)
zipccl_criterion_test(test_plan SOURCES tests/test_plan.c LIBS zipccl_core)
zipccl_criterion_test(test_plan_broken SOURCES tests/test_plan_broken.c LIBS zipccl_core)
zipccl_criterion_test(test_plan_reduce SOURCES tests/test_plan_reduce.c LIBS zipccl_core)
zipccl_criterion_test(test_plan_print SOURCES tests/test_plan_print.c LIBS zipccl_core)
zipccl_criterion_test(test_lower SOURCES tests/test_lower.c LIBS zipccl_core)
zipccl_criterion_test(test_lower_sums SOURCES tests/test_lower_sums.c LIBS zipccl_core)
zipccl_criterion_test(test_cost SOURCES tests/test_cost.c LIBS zipccl_core)
zipccl_criterion_test(test_cost_levels SOURCES tests/test_cost_levels.c LIBS zipccl_core)
zipccl_criterion_test(test_choose SOURCES tests/test_choose.c LIBS zipccl_core)
