#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gpu_only.sh - build preset "gpu" in the root of another distribution: only a compiler, cmake, CUDA, NCCL
#
# gpu_only.sh [--root] [RELEASE]    a Debian release (default trixie); the mirror is that of this
#                                   machine's apt; --root makes the root and builds nothing
#
# The root is made once with debootstrap and kept (ZIPCCL_ROOT_CACHE, default ~/.cache/zipccl); its
# /proc and network are not touched by the build.  No library is in it but libc, which is checked: JSON is
# read and written by json/ of this tree.  77: skipped, since debootstrap, root, namespaces, CUDA or NCCL is
# missing here.  Kernels are compiled for one architecture.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
only_root=
[ "${1:-}" != --root ] || { only_root=1 && shift; }
release=${1:-trixie}
# It becomes part of a path that root removes.
[[ $release =~ ^[a-z]+$ ]] || { echo "gpu_only.sh: release \"$release\": expected the name of a Debian release, a-z" >&2 && exit 2; }
cache=${ZIPCCL_ROOT_CACHE:-${HOME:-/root}/.cache/zipccl}
root=$cache/$release
packages=gcc,g++,make,cmake,mawk,libc6-dev

skip() {
    echo "skipped: $*"
    exit 77
}
[ "$(id -u)" -eq 0 ] || skip "no root, which makes and enters the other root"
unshare --mount --net --pid --fork mount -t tmpfs none /mnt 2>/dev/null || skip "no namespaces with mounts of their own here"
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null) || skip "no CUDA toolkit"
# nvcc itself tells its toolkit's folder: what is on PATH may be a script, far from it.
cuda=$("$nvcc" --dryrun -x cu -c /dev/null -o /dev/null 2>&1 | sed -n 's/^#[$] TOP=//p' || true)
cuda=$(cd "${cuda:-/nonexistent}" 2>/dev/null && pwd -P) || skip "nvcc does not tell its toolkit's folder"
[ -e "$cuda/include/nccl.h" ] || skip "no nccl.h in the CUDA toolkit's folder"

started=$SECONDS
if [ ! -e "$root/.complete" ]; then
    command -v debootstrap >/dev/null || skip "no debootstrap"
    # The first Debian archive that apt here uses; debootstrap follows the release's signature.
    mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null |
        grep '/debian/*$' | sort -u | head -n 1 || true)
    [ -n "$mirror" ] || mirror=$(sed -n 's/^URIs: *\([^ ]*\/debian\)\/*$/\1/p' /etc/apt/sources.list.d/*.sources 2>/dev/null | head -n 1)
    [ -n "$mirror" ] || skip "apt's configuration names no Debian mirror"
    rm -rf "$root"
    mkdir -p "$cache"
    debootstrap --variant=minbase --include="$packages" "$release" "$root" "$mirror" >"$cache/$release.log" 2>&1 || {
        tail -n 3 "$cache/$release.log" >&2
        rm -rf "$root"
        skip "debootstrap could not make a root of $release"
    }
    rm -rf "$root"/var/cache/apt/archives/*.deb
    touch "$root/.complete"
fi
echo "root of $release: $((SECONDS - started)) s"
[ -z "$only_root" ] || exit 0

# In namespaces of its own: no network, and what is mounted goes with the last process.
began=$SECONDS
root=$root cuda=$cuda source=$PWD unshare --mount --net --pid --fork --kill-child sh -euc '
    mkdir -p "$root/cuda" "$root/source" "$root/build" "$root/proc"
    mount --bind "$cuda" "$root/cuda"
    mount --bind "$source" "$root/source"
    mount -o remount,ro,bind "$root/source"
    mount -t tmpfs none "$root/build"
    mount -t proc proc "$root/proc"
    exec chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin:/cuda/bin HOME=/root sh -euc "
        for header in yajl/yajl_parse.h cyaml/cyaml.h archive.h zlib.h gsl/gsl_math.h mpi.h; do
            [ ! -e /usr/include/\$header ] || { echo \"\$header is here: no clean root\" >&2; exit 1; }
        done
        began=\$(date +%s)
        cmake -S /source --preset gpu -B /build -DCUDAToolkit_ROOT=/cuda \
            -DCMAKE_CUDA_COMPILER=/cuda/bin/nvcc -DCMAKE_CUDA_ARCHITECTURES=90-real -DCMAKE_C_FLAGS=-O1 \
            -DCMAKE_BUILD_TYPE=Debug >/build/log 2>&1 || { cat /build/log; exit 1; }
        configured=\$(date +%s)
        cmake --build /build -j 2 >/build/log 2>&1 || { tail -n 60 /build/log; exit 1; }
        built=\$(date +%s)
        cd /build
        ls -l zipccl-perf zipccl-perf-nccl libzipccl-preload.so libzipccl-nccl.so forwarding/libnccl.so.2
        ./zipccl-perf perf all_gather --on threads -t 2 -b 64K -n 1 -w 0 -J perf.json
        grep -q zipccl.perf perf.json
        ./zipccl-perf perf all_gather --plan /source/experiments/tests/files/plan_steps_2.json --on threads -t 2 -n 1 -w 0
        ./zipccl-perf replay /source/traces/samples/moe4 --on threads --gaps skip -n 1 -w 0 --summary
        echo \"configured in \$((configured - began)) s, built in \$((built - configured)) s, run in \$((\$(date +%s) - built)) s\"
    "
'
echo "built and run in $((SECONDS - began)) s; $((SECONDS - started)) s in all"
