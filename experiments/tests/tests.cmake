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
