# SPDX-License-Identifier: Apache-2.0
# link.cmake - the fit of links and codec to measured calls; with GSL, so for offline programs only
if(NOT TARGET PkgConfig::GSL)
    return()
endif()
zipccl_library(zipccl_link link.c link_call.c)
target_link_libraries(zipccl_link PUBLIC zipccl_core PRIVATE PkgConfig::GSL m)
zipccl_criterion_test(test_link SOURCES tests/test_link.c LIBS zipccl_link m)
