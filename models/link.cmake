# SPDX-License-Identifier: Apache-2.0
# link.cmake - prices of measured calls, and the fit to them; the fit needs GSL: offline programs only
zipccl_library(zipccl_link_call link_call.c)
target_link_libraries(zipccl_link_call PUBLIC zipccl_core PRIVATE m)
if(NOT TARGET PkgConfig::GSL)
    return()
endif()
zipccl_library(zipccl_link link.c)
target_link_libraries(zipccl_link PUBLIC zipccl_link_call PRIVATE PkgConfig::GSL m)
zipccl_criterion_test(test_link SOURCES tests/test_link.c LIBS zipccl_link m)
