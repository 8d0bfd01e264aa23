# SPDX-License-Identifier: Apache-2.0
# fuzz.cmake - fuzz targets: plain programs under ctest, and with clang for libFuzzer
file(GLOB ZIPCCL_CODEC_VECTORS ${PROJECT_SOURCE_DIR}/core/tests/vectors/*.zccl)
zipccl_plain_test(fuzz_decode SOURCES fuzz/fuzz_decode.c fuzz/fuzz_main.c LIBS zipccl_core
    ARGS 1000 ${ZIPCCL_CODEC_VECTORS})
file(GLOB ZIPCCL_ODD_VECTORS ${PROJECT_SOURCE_DIR}/core/tests/vectors/*/*.zccl)
add_test(NAME fuzz_decode_odd COMMAND fuzz_decode 400 ${ZIPCCL_ODD_VECTORS}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(fuzz_decode_odd PROPERTIES TIMEOUT 300)
file(GLOB ZIPCCL_CODEC_ELEMENTS ${PROJECT_SOURCE_DIR}/core/tests/vectors/*.raw)
zipccl_plain_test(fuzz_encode SOURCES fuzz/fuzz_encode.c fuzz/fuzz_main.c LIBS zipccl_core
    ARGS 60 ${ZIPCCL_CODEC_ELEMENTS})
file(GLOB ZIPCCL_STATE_TEXTS ${PROJECT_SOURCE_DIR}/core/tests/state/*.txt)
zipccl_plain_test(fuzz_state SOURCES fuzz/fuzz_state.c fuzz/fuzz_main.c LIBS zipccl_core
    ARGS 20000 ${ZIPCCL_STATE_TEXTS})

# build-fuzz/tests/libfuzzer_decode CORPUS core/tests/vectors
option(ZIPCCL_FUZZ "build libFuzzer targets (needs clang)" OFF)
if(ZIPCCL_FUZZ)
    target_compile_options(zipccl_core PRIVATE -fsanitize=fuzzer-no-link)
    foreach(target decode encode state)
        add_executable(libfuzzer_${target} fuzz/fuzz_${target}.c)
        target_compile_options(libfuzzer_${target} PRIVATE -fsanitize=fuzzer)
        target_link_options(libfuzzer_${target} PRIVATE -fsanitize=fuzzer)
        target_link_libraries(libfuzzer_${target} PRIVATE zipccl_core)
        set_target_properties(libfuzzer_${target} PROPERTIES
            RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    endforeach()
endif()
