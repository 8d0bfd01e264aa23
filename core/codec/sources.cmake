# SPDX-License-Identifier: Apache-2.0
# sources.cmake - the codec's files and the flags of its instruction-set rows
target_sources(zipccl_core PRIVATE
    codec/layout.c
    codec/choose.c
    codec/ans.c
    codec/superblock.c
    codec/message.c
    codec/directory.c
    codec/reader.c
    codec/fused.c
    codec/pool.c
    codec/parallel.c
    codec/isa.c
    codec/row_scalar.c
)
# The scalar row and the choice are written for the compiler's vectoriser.
set_source_files_properties(codec/row_scalar.c codec/choose.c PROPERTIES COMPILE_OPTIONS "-O3")

# The vector rows are built with their instructions enabled for one file alone, on x86-64 only;
# isa.c asks the machine before a row is used.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(avx2 codec/row_avx2.c codec/row_avx2_ans.c codec/sample_avx2.c codec/tiers_avx2.c)
    target_sources(zipccl_core PRIVATE ${avx2} codec/row_avx512.c codec/row_avx512_ans.c
        codec/sample_avx512.c codec/tiers_avx512.c)
    set_source_files_properties(${avx2} PROPERTIES COMPILE_OPTIONS
        "-O3;-mavx2;-mbmi;-mbmi2;-mpopcnt")
    set_source_files_properties(codec/row_avx512.c codec/row_avx512_ans.c
        codec/sample_avx512.c codec/tiers_avx512.c
        PROPERTIES COMPILE_OPTIONS
        "-O3;-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mavx512vbmi;-mavx512vbmi2;-mgfni;-mbmi;-mbmi2;-mpopcnt")
    target_compile_definitions(zipccl_core PRIVATE ZIPCCL_HAVE_X86_ROWS)
endif()

# So are the loops over sums.
set_source_files_properties(codec/fused.c PROPERTIES COMPILE_OPTIONS "-O3")
