# SPDX-License-Identifier: Apache-2.0
# sweep.cmake - many configurations: axes, points, runs, result files
zipccl_library(zipccl_sweep_programs
    sweep/sweep_command.c
    sweep/sweep_csv.c
    sweep/sweep_json.c
    sweep/sweep_open.c
    sweep/sweep_options.c
    sweep/sweep_points.c
    sweep/sweep_print.c
    sweep/sweep_run.c
    sweep/sweep_spec.c
    sweep/sweep_summary.c
)
target_link_libraries(zipccl_sweep_programs PUBLIC zipccl_replay_input zipccl_import_programs
    zipccl_generate_set zipccl_sim PRIVATE zipccl_analysis zipccl::yajl m)
target_compile_definitions(zipccl_sweep_programs PRIVATE
    ZIPCCL_SAMPLES_DIR="${ZIPCCL_SAMPLES_DIR}" ZIPCCL_MODEL_DIR="${ZIPCCL_MODEL_DIR}")
# mkdtemp()
set_source_files_properties(sweep/sweep_run.c PROPERTIES COMPILE_DEFINITIONS _XOPEN_SOURCE=700)
zipccl_criterion_test(test_sweep_spec SOURCES tests/test_sweep_spec.c
    LIBS zipccl_sweep_programs zipccl_analysis)
add_test(NAME cli_sweep COMMAND ${PROJECT_SOURCE_DIR}/experiments/tests/test_cli_sweep.sh
    ${CMAKE_BINARY_DIR} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(cli_sweep PROPERTIES TIMEOUT 300)
