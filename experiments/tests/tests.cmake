# SPDX-License-Identifier: Apache-2.0
# tests.cmake - tests of the programs and of what they write
zipccl_criterion_test(test_report SOURCES tests/test_report.c tests/example_result.c
    LIBS zipccl_programs zipccl_analysis zipccl::yajl)
zipccl_criterion_test(test_output SOURCES tests/test_output.c LIBS zipccl_programs)

# Checkers of result and timeline files, and the programs' behaviour at the command line.
add_executable(check_result tests/check_result.c)
target_link_libraries(check_result PRIVATE zipccl_analysis zipccl::yajl)
set_target_properties(check_result PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
add_executable(check_timeline tests/check_timeline.c)
target_link_libraries(check_timeline PRIVATE zipccl_analysis zipccl::yajl ZLIB::ZLIB m)
set_target_properties(check_timeline PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
add_test(NAME cli COMMAND ${PROJECT_SOURCE_DIR}/experiments/tests/test_cli.sh
    ${CMAKE_BINARY_DIR} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(cli PROPERTIES TIMEOUT 900)
add_test(NAME cli_kineto COMMAND ${PROJECT_SOURCE_DIR}/experiments/tests/test_cli_kineto.sh
    ${CMAKE_BINARY_DIR} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(cli_kineto PROPERTIES TIMEOUT 600)
add_test(NAME cli_formats COMMAND ${PROJECT_SOURCE_DIR}/experiments/tests/test_cli_formats.sh
    ${CMAKE_BINARY_DIR} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(cli_formats PROPERTIES TIMEOUT 600)
add_test(NAME cli_files COMMAND ${PROJECT_SOURCE_DIR}/experiments/tests/test_cli_files.sh
    ${CMAKE_BINARY_DIR} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(cli_files PROPERTIES TIMEOUT 600)
zipccl_criterion_test(test_launch SOURCES tests/test_launch.c LIBS zipccl_programs)
zipccl_plain_test(test_rendezvous THREADS SOURCES tests/test_rendezvous.c ranks/rendezvous.c LIBS zipccl_programs)
# Not under ThreadSanitizer: see core/tests/mpi_tests.cmake.
if(ZIPCCL_HAVE_MPI AND NOT ZIPCCL_SANITIZE STREQUAL "thread")
    add_executable(mpi_world_run tests/mpi_world_run.c ranks/world.c)
    target_link_libraries(mpi_world_run PRIVATE zipccl_world_mpi)
    set_target_properties(mpi_world_run PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_test(NAME world_mpi COMMAND ${PROJECT_SOURCE_DIR}/experiments/tests/test_world_mpi.sh
        ${PROJECT_SOURCE_DIR}/tests/run_mpi.sh $<TARGET_FILE:mpi_world_run>)
    set_tests_properties(world_mpi PROPERTIES TIMEOUT 120 SKIP_RETURN_CODE 77)
    # Launchers and links, not code of ours: once, without a sanitizer, is enough.
    if(NOT ZIPCCL_SANITIZE)
        add_test(NAME testbed COMMAND ${PROJECT_SOURCE_DIR}/experiments/tests/test_testbed.sh
            ${CMAKE_BINARY_DIR} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
        set_tests_properties(testbed PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
    endif()
endif()
if(TARGET zipccl_link)
    add_test(NAME cli_fit COMMAND ${PROJECT_SOURCE_DIR}/experiments/tests/test_cli_fit.sh
        ${CMAKE_BINARY_DIR} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(cli_fit PROPERTIES TIMEOUT 300)
endif()
add_test(NAME cli_generate COMMAND ${PROJECT_SOURCE_DIR}/experiments/tests/test_cli_generate.sh
    ${CMAKE_BINARY_DIR} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(cli_generate PROPERTIES TIMEOUT 300)
add_test(NAME cli_plan COMMAND ${PROJECT_SOURCE_DIR}/experiments/tests/test_cli_plan.sh
    ${CMAKE_BINARY_DIR} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(cli_plan PROPERTIES TIMEOUT 300)
add_test(NAME cli_bundle COMMAND ${PROJECT_SOURCE_DIR}/experiments/tests/test_cli_bundle.sh
    ${CMAKE_BINARY_DIR} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(cli_bundle PROPERTIES TIMEOUT 60)
