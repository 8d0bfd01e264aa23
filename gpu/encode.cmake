# SPDX-License-Identifier: Apache-2.0
# encode.cmake - kernels that encode, and their test on the emulator
zipccl_kernels(zipccl_gpu_encode SOURCES encode.cu encode_bf16.cu encode_fp16.cu
    encode_fp32.cu encode_fp8.cu encode_ratio.cu)
if(ZIPCCL_HAVE_EMULATOR)
    zipccl_plain_test(test_gpu_encode THREADS SOURCES tests/test_encode.cpp
        ${PROJECT_SOURCE_DIR}/core/tests/codec_data.c LIBS zipccl_gpu_encode_emu zipccl_core)
    # The kernel for bf16 as it is on sm_80; its objects come before those of the library.
    zipccl_emulated_kernels(gpu_encode_sm80 SOURCES encode_bf16.cu)
    target_compile_definitions(gpu_encode_sm80 PRIVATE ENC_FORGETS)
    zipccl_plain_test(test_gpu_encode_sm80 SOURCES tests/test_encode.cpp
        ${PROJECT_SOURCE_DIR}/core/tests/codec_data.c $<TARGET_OBJECTS:gpu_encode_sm80>
        ARGS bf16 LIBS zipccl_gpu_encode_emu zipccl_core)
endif()
