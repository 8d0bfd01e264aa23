# SPDX-License-Identifier: Apache-2.0
# tests.cmake - tests of the emulator and of the doubles
zipccl_kernels(emu_compact SOURCES compact.cu)
zipccl_plain_test(test_emu_compact SOURCES test_compact.cpp LIBS emu_compact_emu)
