# SPDX-License-Identifier: Apache-2.0
# perf.cmake - `zipccl perf`: zipccl-perf on real ranks, what is shared with the simulated one apart
zipccl_library(zipccl_perf_common
    perf_files.c
    perf_options.c
    perf_report.c
    perf_rows.c
    perf_values.c
)
target_link_libraries(zipccl_perf_common PUBLIC zipccl_core zipccl_programs
    PRIVATE zipccl::yajl m)
