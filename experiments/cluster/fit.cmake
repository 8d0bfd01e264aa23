# SPDX-License-Identifier: Apache-2.0
# fit.cmake - `zipccl cluster fit`; only where GSL was found
if(NOT TARGET zipccl_link)
    return()
endif()
target_sources(zipccl PRIVATE cluster/cluster_fit.c cluster/cluster_fit_command.c cluster/cluster_fit_print.c)
target_link_libraries(zipccl PRIVATE zipccl_link zipccl_analysis zipccl_perf_common m)
target_compile_definitions(zipccl PRIVATE ZIPCCL_HAVE_CLUSTER_FIT)
