# SPDX-License-Identifier: Apache-2.0
# fuzz.cmake - fuzz targets as plain programs on fixed mutations
#
# With libFuzzer: clang -fsanitize=fuzzer,address -I. -Ibuild -D_POSIX_C_SOURCE=200809L
#     traces/fuzz/fuzz_trace.c traces/fuzz/file.c traces/*.c build/traces/chakra.pb-c.c
#     core/status.c core/dtype.c -lyajl -lprotobuf-c -larchive -lz
zipccl_plain_test(fuzz_trace SOURCES fuzz/fuzz_trace.c fuzz/driver.c fuzz/file.c
    LIBS zipccl_traces ZLIB::ZLIB ARGS 20000)
zipccl_plain_test(fuzz_safetensors SOURCES fuzz/fuzz_safetensors.c fuzz/driver.c fuzz/file.c
    LIBS zipccl_traces ARGS 20000)
zipccl_plain_test(fuzz_simai SOURCES fuzz/fuzz_simai.c fuzz/import.c fuzz/driver.c fuzz/file.c
    LIBS zipccl_traces ARGS 1000)
zipccl_plain_test(fuzz_kineto SOURCES fuzz/fuzz_kineto.c fuzz/import.c fuzz/driver.c fuzz/file.c
    LIBS zipccl_traces ARGS 1500)
zipccl_plain_test(fuzz_nccl SOURCES fuzz/fuzz_nccl.c fuzz/import.c fuzz/driver.c fuzz/file.c
    LIBS zipccl_traces ARGS 1500)
zipccl_plain_test(fuzz_aicb SOURCES fuzz/fuzz_aicb.c fuzz/import.c fuzz/driver.c fuzz/file.c
    LIBS zipccl_traces ARGS 500)
zipccl_plain_test(fuzz_et SOURCES fuzz/fuzz_et.c fuzz/import.c fuzz/driver.c fuzz/file.c
    LIBS zipccl_traces ARGS 500)
zipccl_plain_test(fuzz_chakra SOURCES fuzz/fuzz_chakra.c fuzz/import.c fuzz/driver.c fuzz/file.c
    LIBS zipccl_traces ARGS 500)
zipccl_plain_test(fuzz_archive SOURCES fuzz/fuzz_archive.c fuzz/driver.c fuzz/file.c
    LIBS zipccl_traces zipccl::archive ARGS 500)
