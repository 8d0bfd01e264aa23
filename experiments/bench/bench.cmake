# SPDX-License-Identifier: Apache-2.0
# bench.cmake - `zipccl codec bench`; zstd and lz4 are measured beside the codec where they are found
zipccl_library(zipccl_bench_data bench/bench_input.c program/machine.c)
target_link_libraries(zipccl_bench_data PUBLIC zipccl_core PRIVATE zipccl_traces m)

zipccl_library(zipccl_bench
    bench/bench_codec.c
    bench/bench_options.c
    bench/bench_peers.c
    bench/bench_report.c
    bench/bench_rows.c
    bench/codec_bench.c
    bench/codec_bench_command.c
    bench/plain_copy.c
)
target_link_libraries(zipccl_bench PUBLIC zipccl_core zipccl_bench_data
    PRIVATE zipccl_exponent_code zipccl_programs zipccl_traces zipccl::yajl ZLIB::ZLIB m)
# Splitting planes for the Huffman codes should not be what is measured.
set_source_files_properties(bench/bench_peers.c PROPERTIES COMPILE_OPTIONS "-O3")

foreach(library zstd lz4)
    string(TOUPPER ${library} name)
    pkg_check_modules(${name} QUIET IMPORTED_TARGET lib${library})
    if(${name}_FOUND)
        target_link_libraries(zipccl_bench PRIVATE PkgConfig::${name})
        target_compile_definitions(zipccl_bench PRIVATE ZIPCCL_HAVE_${name})
    else()
        message(STATUS "lib${library} not found: codec bench does not measure ${library}")
    endif()
endforeach()

zipccl_criterion_test(test_codec_bench SOURCES tests/test_codec_bench.c
    LIBS zipccl_bench zipccl_exponent_code zipccl_core zipccl::yajl)
if(NOT ZIPCCL_SANITIZE)
    add_test(NAME codec_plots COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tests/test_plots.sh
        ${CMAKE_BINARY_DIR})
    set_tests_properties(codec_plots PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
endif()
