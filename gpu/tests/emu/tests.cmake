# SPDX-License-Identifier: Apache-2.0
# tests.cmake - tests of the emulator and of the doubles
zipccl_kernels(emu_compact SOURCES compact.cu)
zipccl_plain_test(test_emu_compact THREADS SOURCES test_compact.cpp LIBS emu_compact_emu)

add_library(emu_nccl_rank STATIC nccl_rank.cpp)
target_link_libraries(emu_nccl_rank PUBLIC zipccl_emu)
zipccl_plain_test(test_emu_nccl THREADS SOURCES test_nccl.cpp LIBS emu_nccl_rank)
zipccl_plain_test(test_emu_nccl_errors THREADS SOURCES test_nccl_errors.cpp LIBS zipccl_emu)
zipccl_plain_test(test_emu_cuda THREADS SOURCES test_cuda.cpp LIBS zipccl_emu)
if(ZIPCCL_HAVE_MPI)
    add_executable(test_emu_nccl_mpi test_nccl_mpi.cpp)
    if(ZIPCCL_SANITIZE MATCHES "address")
        target_sources(test_emu_nccl_mpi PRIVATE ${PROJECT_SOURCE_DIR}/core/tests/mpi_keep_loaded.c)
    endif()
    # Open MPI's C library is enough for C++ too.
    target_link_libraries(test_emu_nccl_mpi PRIVATE emu_nccl_rank MPI::MPI_C)
    set_target_properties(test_emu_nccl_mpi PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    foreach(n 2 4)
        add_test(NAME test_emu_nccl_mpi_${n} COMMAND ${PROJECT_SOURCE_DIR}/tests/run_mpi.sh ${n}
            $<TARGET_FILE:test_emu_nccl_mpi> WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
        set_tests_properties(test_emu_nccl_mpi_${n} PROPERTIES TIMEOUT 120 SKIP_RETURN_CODE 77
            PROCESSORS ${n})
        zipccl_threads_test(test_emu_nccl_mpi_${n} test_emu_nccl_mpi)
    endforeach()
endif()

# Planted bugs.  The emulator's own checks find the first sort; those that need a sanitizer have
# programs of their own, so that a plain build tests them too.
function(zipccl_bugs_program name emulator)
    zipccl_emulated_kernels(${name}_kernels SOURCES bugs.cu)
    target_link_libraries(${name}_kernels PUBLIC ${emulator})
    add_executable(${name} test_bugs.cpp)
    target_link_libraries(${name} PRIVATE ${name}_kernels)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endfunction()
function(zipccl_bugs_test name)
    add_test(NAME ${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/test_bugs.sh
        $<TARGET_FILE:${name}> ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES TIMEOUT 120)
endfunction()

if(NOT ZIPCCL_SANITIZE)
    zipccl_bugs_program(test_emu_bugs zipccl_emu)
    add_test(NAME test_emu_bugs COMMAND test_emu_bugs WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(test_emu_bugs PROPERTIES TIMEOUT 120)
    # clang 14's ThreadSanitizer misses races between blocks.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        foreach(sanitizer thread address)
            zipccl_emu_library(zipccl_emu_${sanitizer} ${sanitizer})
            zipccl_bugs_program(test_emu_bugs_${sanitizer} zipccl_emu_${sanitizer})
        endforeach()
        target_compile_options(test_emu_bugs_address_kernels PRIVATE -fsanitize-recover=address)
        zipccl_bugs_test(test_emu_bugs_thread "ThreadSanitizer: data race" missing_syncwarp
            missing_barrier ballot_is_no_fence same_word relaxed_flag)
        zipccl_bugs_test(test_emu_bugs_address "AddressSanitizer: heap-buffer-overflow"
            shared_overflow dynamic_overflow global_overflow)
    endif()
endif()

# An nvcc-built program, linked with the real cudart and NCCL, on the shared forms of the doubles.
if(ZIPCCL_HAVE_NVCC AND ZIPCCL_HAVE_NCCL)
    file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/compact_plugin.cpp
        CONTENT "#include \"gpu/tests/emu/compact.cu\"\n")
    add_library(emu_compact_plugin MODULE ${CMAKE_CURRENT_BINARY_DIR}/compact_plugin.cpp)
    target_link_libraries(emu_compact_plugin PRIVATE zipccl_emu_cudart)
    add_executable(test_emu_unmodified test_unmodified.cpp)
    target_link_libraries(test_emu_unmodified PRIVATE emu_compact CUDA::cudart ${NCCL_LIBRARY})
    set_target_properties(test_emu_unmodified PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests CUDA_RUNTIME_LIBRARY Shared)
    add_test(NAME test_emu_unmodified COMMAND ${CMAKE_COMMAND} -E env
        LD_LIBRARY_PATH=${ZIPCCL_EMU_LIBRARY_PATH} LD_PRELOAD=$<TARGET_FILE:emu_compact_plugin>
        $<TARGET_FILE:test_emu_unmodified>)
    add_dependencies(test_emu_unmodified zipccl_emu_nccl)
endif()

if(ZIPCCL_HAVE_NVCC)
    add_test(NAME test_ptxas_gate COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/test_ptxas_gate.sh
        ${CMAKE_CUDA_COMPILER})
    set_tests_properties(test_ptxas_gate PROPERTIES TIMEOUT 120)
endif()
