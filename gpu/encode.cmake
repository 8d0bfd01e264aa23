# SPDX-License-Identifier: Apache-2.0
# encode.cmake - kernels that encode, and their test on the emulator
zipccl_kernels(zipccl_gpu_encode SOURCES encode.cu encode_bf16.cu encode_fp16.cu
    encode_fp32.cu encode_fp8.cu encode_ratio.cu)
if(ZIPCCL_HAVE_EMULATOR)
    zipccl_plain_test(test_gpu_encode THREADS SOURCES tests/test_encode.cpp
        ${PROJECT_SOURCE_DIR}/core/tests/codec_data.c LIBS zipccl_gpu_encode_emu zipccl_core)
endif()
