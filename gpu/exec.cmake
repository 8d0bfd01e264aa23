# SPDX-License-Identifier: Apache-2.0
# exec.cmake - plans on CUDA streams over NCCL, and what tests them
if(NOT ZIPCCL_HAVE_CUDA OR NOT NCCL_INCLUDE_DIR)
    return()
endif()

# Host code alone: who links it brings kernels, cudart and NCCL, real ones or doubles.
zipccl_library(zipccl_gpu
    exec_cuda.c
    exec_cuda_late.c
    exec_cuda_launch.c
    exec_cuda_memory.c
    exec_cuda_run.c
    exec_cuda_time.c
    gate.c
    gate_calls.c
    gate_check.c
    gate_helper.c
    gate_sites.c
    gpu_calls.c
    gpu_group.c
    host_hash.c
    params.c
    transport_nccl.c
    transport_nccl_native.c
    zipccl_gpu.c
)
target_link_libraries(zipccl_gpu PUBLIC zipccl_core zipccl::cuda_headers)
zipccl_library(zipccl_nccl_linked nccl_linked.c)
target_link_libraries(zipccl_nccl_linked PUBLIC zipccl::cuda_headers)

if(NOT ZIPCCL_HAVE_EMULATOR)
    return()
endif()
zipccl_library(zipccl_gpu_test tests/gpu_world.c tests/gpu_calls_run.c
    ${PROJECT_SOURCE_DIR}/core/tests/codec_data.c)
target_link_libraries(zipccl_gpu_test PUBLIC zipccl_core zipccl::cuda_headers)
# The launchers over core's codec, for tests that run many plans.
zipccl_library(zipccl_host_kernels tests/host_kernels.c tests/host_gate.c)
target_link_libraries(zipccl_host_kernels PUBLIC zipccl_core zipccl::cuda_headers)

# In the order in which they need each other.
set(ZIPCCL_GPU_HOST_TEST zipccl_gpu_test zipccl_gpu zipccl_host_kernels zipccl_nccl_linked zipccl_emu)
foreach(test test_gpu_plans test_gpu_calls test_gpu_group test_gpu_faults
        test_gpu_many test_gpu_overlap)
    zipccl_plain_test(${test} THREADS SOURCES tests/${test}.c LIBS ${ZIPCCL_GPU_HOST_TEST})
    set_target_properties(${test} PROPERTIES LINKER_LANGUAGE CXX)
endforeach()
zipccl_plain_test(test_gpu_gate THREADS SOURCES tests/test_gpu_gate.c tests/test_gpu_gate_faults.c tests/test_gpu_gate_learn.c
    LIBS ${ZIPCCL_GPU_HOST_TEST})
set_target_properties(test_gpu_gate PROPERTIES LINKER_LANGUAGE CXX)
target_link_options(test_gpu_gate PRIVATE -Wl,--wrap=pthread_create)
add_test(NAME test_gpu_plans_gate COMMAND test_gpu_plans gate WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
zipccl_threads_test(test_gpu_plans_gate test_gpu_plans)
if(TARGET zipccl_traces) # which reads captured tensors
    zipccl_plain_test(test_gpu_wire THREADS SOURCES ${PROJECT_SOURCE_DIR}/tests/test_gpu_wire.c LIBS zipccl_traces
        ${ZIPCCL_GPU_HOST_TEST})
    set_target_properties(test_gpu_wire PROPERTIES LINKER_LANGUAGE CXX)
endif()
if(TARGET zipccl_gpu_encode_emu AND TARGET zipccl_gpu_decode_emu)
    # The kernels themselves on the emulator: fewer plans.
    zipccl_plain_test(test_gpu_plans_emulated THREADS SOURCES tests/test_gpu_plans.c ARGS few
        LIBS zipccl_gpu_test zipccl_gpu zipccl_nccl_linked zipccl_gpu_encode_emu
        zipccl_gpu_decode_emu)
    set_target_properties(test_gpu_plans_emulated PROPERTIES LINKER_LANGUAGE CXX)
    add_test(NAME test_gpu_plans_gate_emulated COMMAND test_gpu_plans_emulated few gate
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endif()
# The emulated bodies of all kernels, to preload into what nvcc has built (gpu/tests/emu/README.md).
if(ZIPCCL_HAVE_NVCC AND TARGET zipccl_gpu_encode_emu_bodies AND TARGET zipccl_gpu_decode_emu_bodies)
    add_library(zipccl_gpu_bodies MODULE $<TARGET_OBJECTS:zipccl_gpu_encode_emu_bodies>
        $<TARGET_OBJECTS:zipccl_gpu_decode_emu_bodies>)
    target_link_libraries(zipccl_gpu_bodies PRIVATE zipccl_core zipccl_emu_cudart m)
    target_link_options(zipccl_gpu_bodies PRIVATE -Wl,--exclude-libs,ALL)
    set_target_properties(zipccl_gpu_bodies PROPERTIES LINKER_LANGUAGE CXX
        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/tests/emu/lib)
endif()
