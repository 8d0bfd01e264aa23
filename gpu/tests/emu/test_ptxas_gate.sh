#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_ptxas_gate.sh - a kernel that spills registers does not build, and one that does not builds
#
# test_ptxas_gate.sh NVCC
set -u
gate=$(cd "$(dirname "$0")/../../.." && pwd)/cmake/ptxas_gate.sh
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/k.cu" <<'END'
__global__ void k(float *p)
{
    float v[40];
#pragma unroll
    for (int i = 0; i < 40; i++)
        v[i] = p[i * 1024 + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 40; i++)
        p[i * 1024 + threadIdx.x] = v[i] * v[39 - i];
}
END
build() {
    "$gate" "$1" -arch=sm_90 -Xptxas=-v $2 -c "$dir/k.cu" -o "$dir/k.o" 2>"$dir/log"
}
build "$1" "" || { echo "refused without a spill"; cat "$dir/log"; exit 1; }
grep -q "sm_90 .* 0 spilled  _Z1kPf" "$dir/k.o.ptxas" || { echo "no table"; cat "$dir/k.o.ptxas"; exit 1; }
build "$1" -maxrregcount=24 && { echo "a spill was let through"; cat "$dir/k.o.ptxas"; exit 1; }
grep -q "ptxas spills registers of _Z1kPf for sm_90" "$dir/log" || { echo "no reason given"; cat "$dir/log"; exit 1; }
[ ! -e "$dir/k.o" ] || { echo "the object was left"; exit 1; }
echo "ptxas gate: ok"
