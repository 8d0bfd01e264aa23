# SPDX-License-Identifier: Apache-2.0
# tests.cmake - tests of the emulator and of the doubles
zipccl_kernels(emu_compact SOURCES compact.cu)
zipccl_plain_test(test_emu_compact SOURCES test_compact.cpp LIBS emu_compact_emu)

add_library(emu_nccl_rank STATIC nccl_rank.cpp)
target_link_libraries(emu_nccl_rank PUBLIC zipccl_emu)
zipccl_plain_test(test_emu_nccl SOURCES test_nccl.cpp LIBS emu_nccl_rank)
zipccl_plain_test(test_emu_nccl_errors SOURCES test_nccl_errors.cpp LIBS zipccl_emu)
zipccl_plain_test(test_emu_cuda SOURCES test_cuda.cpp LIBS zipccl_emu)
if(ZIPCCL_HAVE_MPI)
    add_executable(test_emu_nccl_mpi test_nccl_mpi.cpp)
    # Open MPI's C library is enough for C++ too.
    target_link_libraries(test_emu_nccl_mpi PRIVATE emu_nccl_rank MPI::MPI_C)
    set_target_properties(test_emu_nccl_mpi PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    foreach(n 2 4)
        add_test(NAME test_emu_nccl_mpi_${n} COMMAND ${PROJECT_SOURCE_DIR}/tests/run_mpi.sh ${n}
            $<TARGET_FILE:test_emu_nccl_mpi> WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
        set_tests_properties(test_emu_nccl_mpi_${n} PROPERTIES TIMEOUT 120 SKIP_RETURN_CODE 77
            PROCESSORS ${n})
    endforeach()
endif()
