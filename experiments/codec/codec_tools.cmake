# SPDX-License-Identifier: Apache-2.0
# codec_tools.cmake - `zipccl codec encode`, `decode` and `conform`
zipccl_library(zipccl_codec_file codec/codec_file_buffers.c codec/codec_file_encode.c codec/codec_file_decode.c
    codec/codec_file_print.c)
target_link_libraries(zipccl_codec_file PUBLIC zipccl_core
    PRIVATE zipccl_programs zipccl_traces zipccl::xxhash zipccl::yajl)
zipccl_library(zipccl_conform codec/codec_vectors.c codec/filter_process.c codec/codec_conform.c)
target_link_libraries(zipccl_conform PUBLIC zipccl_core
    PRIVATE zipccl_programs zipccl::md zipccl::yajl)

target_sources(zipccl PRIVATE codec/codec_command.c codec/codec_file_command.c codec/codec_conform_command.c)
target_link_libraries(zipccl PRIVATE zipccl_codec_file zipccl_conform m)
# Found relative to the program: no path of this machine enters it.
file(RELATIVE_PATH ZIPCCL_VECTORS_DIR ${CMAKE_BINARY_DIR} ${PROJECT_SOURCE_DIR}/core/tests/vectors)
set_source_files_properties(codec/codec_conform_command.c PROPERTIES
    COMPILE_DEFINITIONS ZIPCCL_VECTORS_DIR="${ZIPCCL_VECTORS_DIR}")

zipccl_criterion_test(test_codec_file SOURCES tests/test_codec_file.c
    LIBS zipccl_codec_file)
zipccl_criterion_test(test_codec_conform SOURCES tests/test_codec_conform.c
    LIBS zipccl_conform zipccl_programs)
add_test(NAME cli_codec COMMAND ${PROJECT_SOURCE_DIR}/experiments/tests/test_cli_codec.sh
    ${CMAKE_BINARY_DIR} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(cli_codec PROPERTIES TIMEOUT 600)

# Any bytes as a coded file, and as a file to code; seeds are files of other tests.
file(GLOB ZIPCCL_FILE_SEEDS ${CMAKE_CURRENT_SOURCE_DIR}/tests/files/*.zcf)
zipccl_plain_test(fuzz_file_decode LIBS zipccl_codec_file zipccl::xxhash
    SOURCES fuzz/fuzz_file_decode.c ${PROJECT_SOURCE_DIR}/core/fuzz/fuzz_main.c
    ARGS 1500 ${ZIPCCL_FILE_SEEDS})
file(GLOB ZIPCCL_TENSOR_SEEDS ${CMAKE_CURRENT_SOURCE_DIR}/tests/files/*.safetensors)
zipccl_plain_test(fuzz_file_encode LIBS zipccl_codec_file
    SOURCES fuzz/fuzz_file_encode.c ${PROJECT_SOURCE_DIR}/core/fuzz/fuzz_main.c
    ARGS 1500 ${ZIPCCL_TENSOR_SEEDS})
