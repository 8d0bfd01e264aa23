# SPDX-License-Identifier: Apache-2.0
# codec_stat.cmake - `zipccl codec stat`; only where GSL was found
if(NOT TARGET zipccl_exponent OR NOT TARGET zipccl_traces)
    return()
endif()
zipccl_library(zipccl_codec_stat codec/codec_stat.c)
target_link_libraries(zipccl_codec_stat PUBLIC zipccl_core PRIVATE zipccl_exponent zipccl_traces)
zipccl_criterion_test(test_codec_stat SOURCES tests/test_codec_stat.c
    LIBS zipccl_codec_stat zipccl::yajl)
target_sources(zipccl PRIVATE codec/codec_stat_command.c)
target_link_libraries(zipccl PRIVATE zipccl_codec_stat PkgConfig::GSL)
target_compile_definitions(zipccl PRIVATE ZIPCCL_HAVE_CODEC_STAT)
