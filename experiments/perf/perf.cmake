# SPDX-License-Identifier: Apache-2.0
# perf.cmake - `zipccl perf`: zipccl-perf on real ranks, what is shared with the simulated one apart
zipccl_library(zipccl_perf_common
    perf/perf_files.c
    perf/perf_options.c
    perf/perf_report.c
    perf/perf_rows.c
    perf/perf_values.c
)
target_link_libraries(zipccl_perf_common PUBLIC zipccl_core zipccl_programs
    PRIVATE zipccl::yajl m)

# One plan as a file, which 'zipccl plan -o' writes too.
zipccl_library(zipccl_plan_file plan/plan_file_fields.c plan/plan_file_read.c plan/plan_file_write.c)
target_link_libraries(zipccl_plan_file PUBLIC zipccl_core
    PRIVATE zipccl_programs zipccl_analysis zipccl::yajl)

# Real ranks.
zipccl_library(zipccl_real
    perf/perf_check.c
    perf/perf_data.c
    perf/perf_measure.c
    perf/perf_plan.c
    perf/perf_rank.c
    perf/perf_run.c
    replay/real_replay.c
    replay/real_replay_call.c
    replay/real_replay_rank.c
    replay/real_replay_result.c
    replay/real_world.c
    perf/state_files.c
    perf/timed_exec.c
    ranks/world.c
)
target_link_libraries(zipccl_real PUBLIC zipccl_perf_common zipccl_core zipccl_program
    PRIVATE zipccl_bench_data zipccl_plan_file zipccl_reference zipccl_traces m)
if(ZIPCCL_HAVE_MPI)
    target_link_libraries(zipccl_real PRIVATE zipccl_world_mpi)
    target_compile_definitions(zipccl_real PRIVATE ZIPCCL_HAVE_MPI)
endif()

# zipccl_perf_program(NAME WORLD.c... LIBS...) - one with the worlds of NCCL that WORLD.c opens
function(zipccl_perf_program name)
    cmake_parse_arguments(P "" "" "SOURCES;LIBS" ${ARGN})
    add_executable(${name} zipccl_perf.c perf/perf_command.c replay/real_replay_command.c ${P_SOURCES})
    target_link_libraries(${name} PRIVATE zipccl_real zipccl_bench_data zipccl_replay_input
        zipccl_import_programs ${P_LIBS})
endfunction()
zipccl_perf_program(zipccl-perf SOURCES ranks/world_no_nccl.c)
if(TARGET zipccl_gpu)
    set(nccl_world ranks/world_nccl.c ranks/rendezvous.c)
    # The real one: a program of its own, since it needs libnccl and libcudart to start.
    if(ZIPCCL_HAVE_NCCL AND TARGET zipccl_gpu_encode AND TARGET zipccl_gpu_decode)
        zipccl_perf_program(zipccl-perf-nccl SOURCES ${nccl_world} LIBS zipccl_gpu
            zipccl_gpu_encode zipccl_gpu_decode zipccl_nccl_linked ${NCCL_LIBRARY} CUDA::cudart)
        set_target_properties(zipccl-perf-nccl PROPERTIES LINKER_LANGUAGE CXX)
        if(TARGET zipccl_gpu_bodies AND NOT ZIPCCL_SANITIZE)
            add_test(NAME perf_unmodified COMMAND ${CMAKE_COMMAND} -E env
                LD_LIBRARY_PATH=${ZIPCCL_EMU_LIBRARY_PATH}
                LD_PRELOAD=$<TARGET_FILE:zipccl_gpu_bodies> $<TARGET_FILE:zipccl-perf-nccl>
                perf all_reduce --on nccl -b 64K -e 64K -t 2 -n 1 -w 0 --mode native,compressed)
            set_tests_properties(perf_unmodified PROPERTIES TIMEOUT 120
                PASS_REGULAR_EXPRESSION "Out of bounds values : 0 OK")
            add_dependencies(zipccl-perf-nccl zipccl_emu_nccl)
        endif()
    endif()
    # The same over the doubles, for tests.
    if(ZIPCCL_HAVE_EMULATOR)
        zipccl_perf_program(perf_emulated SOURCES ${nccl_world} LIBS zipccl_gpu
            zipccl_host_kernels zipccl_nccl_linked zipccl_emu)
        set_target_properties(perf_emulated PROPERTIES LINKER_LANGUAGE CXX
            RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
        add_test(NAME cli_perf_nccl
            COMMAND ${PROJECT_SOURCE_DIR}/experiments/tests/test_cli_perf_nccl.sh
            ${CMAKE_BINARY_DIR}/tests/perf_emulated
            $<$<BOOL:${ZIPCCL_WITH_TOOLS}>:${CMAKE_BINARY_DIR}/zipccl> WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
        set_tests_properties(cli_perf_nccl PROPERTIES TIMEOUT 120)
        # Launchers and scripts: once, without a sanitizer, is enough.
        if(NOT ZIPCCL_SANITIZE)
            add_test(NAME real_gpu COMMAND
                ${PROJECT_SOURCE_DIR}/experiments/tests/test_real_gpu.sh ${CMAKE_BINARY_DIR}
                WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
            set_tests_properties(real_gpu PROPERTIES TIMEOUT 120)
        endif()
    endif()
endif()

if(NOT ZIPCCL_WITH_TESTS)
    return()
endif()
zipccl_criterion_test(test_perf SOURCES tests/test_perf.c ranks/world_no_nccl.c
    LIBS zipccl_real zipccl::yajl)
zipccl_plain_test(test_real THREADS SOURCES tests/test_real.c ranks/world_no_nccl.c
    LIBS zipccl_real zipccl_plan_file)
add_test(NAME cli_perf COMMAND ${PROJECT_SOURCE_DIR}/experiments/tests/test_cli_perf.sh
    ${CMAKE_BINARY_DIR} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(cli_perf PROPERTIES TIMEOUT 300)
