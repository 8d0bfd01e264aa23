# SPDX-License-Identifier: Apache-2.0
# decode.cmake - kernels that decode, add up and look at headers, and their tests on the emulator
zipccl_kernels(zipccl_gpu_decode SOURCES decode_index.cu decode.cu reduce.cu resolve.cu gate.cu
    LIBS zipccl_core)
if(ZIPCCL_HAVE_EMULATOR)
    foreach(test test_decode test_decode_corrupt test_gpu_reduce)
        zipccl_plain_test(${test} SOURCES tests/${test}.c tests/gpu_data.c
            ${PROJECT_SOURCE_DIR}/core/tests/codec_data.c LIBS zipccl_gpu_decode_emu)
        set_target_properties(${test} PROPERTIES LINKER_LANGUAGE CXX)
    endforeach()
endif()
