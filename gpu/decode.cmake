# SPDX-License-Identifier: Apache-2.0
# decode.cmake - kernels that decode, add up and look at headers, and their tests on the emulator
zipccl_kernels(zipccl_gpu_decode SOURCES decode_index.cu decode.cu reduce.cu resolve.cu gate.cu
    LIBS zipccl_core)
if(ZIPCCL_HAVE_EMULATOR)
    # Damaged messages go the same ways.
    foreach(test test_decode test_gpu_reduce test_decode_corrupt)
        if(test STREQUAL test_decode_corrupt)
            set(threads)
        else()
            set(threads THREADS)
        endif()
        zipccl_plain_test(${test} ${threads} SOURCES tests/${test}.c tests/gpu_data.c
            ${PROJECT_SOURCE_DIR}/core/tests/codec_data.c LIBS zipccl_gpu_decode_emu)
        set_target_properties(${test} PROPERTIES LINKER_LANGUAGE CXX)
    endforeach()
endif()
