# SPDX-License-Identifier: Apache-2.0
# fuzz.cmake - fuzz targets: plain programs under ctest, and with clang for libFuzzer
file(GLOB ZIPCCL_CODEC_VECTORS ${PROJECT_SOURCE_DIR}/core/tests/vectors/*.zccl)
zipccl_plain_test(fuzz_decode SOURCES fuzz/fuzz_decode.c fuzz/fuzz_main.c LIBS zipccl_core
    ARGS 15000 ${ZIPCCL_CODEC_VECTORS})

# build-fuzz/tests/libfuzzer_decode CORPUS core/tests/vectors
option(ZIPCCL_FUZZ "build libFuzzer targets (needs clang)" OFF)
if(ZIPCCL_FUZZ)
    target_compile_options(zipccl_core PRIVATE -fsanitize=fuzzer-no-link)
    add_executable(libfuzzer_decode fuzz/fuzz_decode.c)
    target_compile_options(libfuzzer_decode PRIVATE -fsanitize=fuzzer)
    target_link_options(libfuzzer_decode PRIVATE -fsanitize=fuzzer)
    target_link_libraries(libfuzzer_decode PRIVATE zipccl_core)
    set_target_properties(libfuzzer_decode PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endif()
