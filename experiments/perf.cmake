# SPDX-License-Identifier: Apache-2.0
# perf.cmake - `zipccl perf`: zipccl-perf on real ranks, what is shared with the simulated one apart
zipccl_library(zipccl_perf_common
    perf_files.c
    perf_options.c
    perf_report.c
    perf_rows.c
    perf_values.c
)
target_link_libraries(zipccl_perf_common PUBLIC zipccl_core zipccl_programs
    PRIVATE zipccl::yajl m)

# Real ranks.
zipccl_library(zipccl_real
    perf_check.c
    perf_data.c
    perf_measure.c
    perf_rank.c
    perf_run.c
    real_replay.c
    real_replay_call.c
    real_replay_rank.c
    real_replay_result.c
    real_world.c
    state_files.c
    timed_exec.c
    world.c
)
target_link_libraries(zipccl_real PUBLIC zipccl_perf_common zipccl_core zipccl_program
    PRIVATE zipccl_bench_data zipccl_reference zipccl_traces m)
if(ZIPCCL_HAVE_MPI)
    target_link_libraries(zipccl_real PRIVATE zipccl_world_mpi)
    target_compile_definitions(zipccl_real PRIVATE ZIPCCL_HAVE_MPI)
endif()

add_executable(zipccl-perf zipccl_perf.c perf_command.c real_replay_command.c)
target_link_libraries(zipccl-perf PRIVATE zipccl_real zipccl_bench_data zipccl_replay_input
    zipccl_import_programs)

zipccl_criterion_test(test_perf SOURCES tests/test_perf.c LIBS zipccl_real zipccl::yajl)
zipccl_plain_test(test_real SOURCES tests/test_real.c LIBS zipccl_real)
add_test(NAME cli_perf COMMAND ${PROJECT_SOURCE_DIR}/experiments/tests/test_cli_perf.sh
    ${CMAKE_BINARY_DIR} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(cli_perf PROPERTIES TIMEOUT 300)
