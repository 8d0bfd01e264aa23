#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cpus.sh ISA_PROBE - runs the codec on emulated processors that lack one feature after another
#
# The row must be the one that is left, its bytes those of this machine's best row.  An instruction
# that the emulated processor has not ends the program.  Exit 77 without qemu-x86_64.
set -u
probe=$1

command -v qemu-x86_64 >/dev/null || { echo "skipped: no qemu-x86_64 (apt-get install qemu-user)"; exit 77; }
native=$("$probe") || { echo "fails on this processor"; exit 1; }
echo "this processor: $native"
bad=0

# expect ROW CPU
expect() {
    # The emulator warns on stderr of what else of the model it lacks.
    found=$(qemu-x86_64 -cpu "$2" "$probe" 2>/dev/null) || found="exit code $?"
    if [ "$found" = "$1 ${native#* }" ]; then
        echo "ok      $2: $1"
    else
        echo "FAILED  $2: expected $1 ${native#* }, found $found"
        bad=1
    fi
}

# The emulator has no AVX-512; from AVX2 down it refuses what a processor has not.
expect avx2 Haswell
expect avx2 Haswell,-fma
expect scalar Haswell,-bmi2
expect scalar Haswell,-bmi1
expect scalar Haswell,-popcnt
expect scalar Haswell,-avx2
expect scalar Haswell,-avx,-avx2
expect scalar Haswell,-xsave,-avx,-avx2
expect scalar Nehalem
expect scalar qemu64
exit $bad
