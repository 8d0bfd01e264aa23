# SPDX-License-Identifier: Apache-2.0
# mpi_tests.cmake - tests of the MPI transport: plain programs under mpirun
#
# None under ThreadSanitizer: it sees neither Open MPI's locks nor its atomics, which are not built for
# it, and reports each of their uses.
if(NOT ZIPCCL_HAVE_MPI OR ZIPCCL_SANITIZE STREQUAL "thread")
    return()
endif()

# zipccl_mpi_program(NAME SOURCES file...)
function(zipccl_mpi_program name)
    cmake_parse_arguments(T "" "" "SOURCES" ${ARGN})
    add_executable(${name} ${T_SOURCES})
    target_link_libraries(${name} PRIVATE zipccl_mpi m)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endfunction()

# zipccl_mpi_test(NAME NRANKS SOURCES file...) - a program that mpirun starts
function(zipccl_mpi_test name nranks)
    zipccl_mpi_program(${name} ${ARGN})
    add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/tests/run_mpi.sh ${nranks}
        $<TARGET_FILE:${name}> WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
endfunction()

zipccl_mpi_test(test_mpi_plans 8 SOURCES tests/test_mpi_plans.c tests/mpi_world.c tests/coll_run.c
    ${ZIPCCL_REDUCE_SOURCES})
zipccl_mpi_test(test_mpi_native 5 SOURCES tests/test_mpi_native.c tests/mpi_world.c
    tests/coll_world.c)
zipccl_mpi_test(test_mpi_faults 3 SOURCES tests/test_mpi_faults.c tests/mpi_world.c
    tests/coll_world.c)
add_test(NAME mpi_killed COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tests/check_mpi_killed.sh
    ${PROJECT_SOURCE_DIR}/tests/run_mpi.sh $<TARGET_FILE:test_mpi_faults>)
set_tests_properties(mpi_killed PROPERTIES SKIP_RETURN_CODE 77)
