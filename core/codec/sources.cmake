# SPDX-License-Identifier: Apache-2.0
# sources.cmake - the codec's files and the flags of its instruction-set rows
target_sources(zipccl_core PRIVATE
    codec/layout.c
    codec/choose.c
    codec/superblock.c
    codec/message.c
    codec/isa.c
    codec/row_scalar.c
)
# The scalar row is written for the compiler's vectoriser.
set_source_files_properties(codec/row_scalar.c PROPERTIES COMPILE_OPTIONS "-O3")
