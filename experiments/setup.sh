# SPDX-License-Identifier: Apache-2.0
# setup.sh - installs what is missing and builds; sourced by quickstart.sh, test.sh and .ci/run
#
# The caller runs under "set -euo pipefail" and has changed to the root of the source tree.

zipccl_say() {
    printf '\n== %s\n' "$*"
}

zipccl_die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 2
}

# zipccl_install GROUP... - install the missing packages of these groups; nothing runs if none is
zipccl_install() {
    local group package missing=() as_root=()
    for group in "$@"; do
        for package in $(sed -n "s/^$group //p" experiments/packages.txt); do
            [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null)" = "ii " ] ||
                missing+=("$package")
        done
    done
    [ ${#missing[@]} -gt 0 ] || return 0

    if ! command -v apt-get >/dev/null; then
        if command -v cmake >/dev/null && command -v ninja >/dev/null && command -v cc >/dev/null; then
            echo "not a Debian system: the libraries of experiments/packages.txt must be installed"
            return 0
        fi
        zipccl_die "no apt-get here: install what stands for ${missing[*]}, or use the Dockerfile"
    fi
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null ||
            zipccl_die "neither root nor sudo; as root run: apt-get install ${missing[*]}"
        as_root=(sudo)
    fi
    zipccl_say "installing ${missing[*]}"
    "${as_root[@]}" apt-get update -qq </dev/null ||
        zipccl_die "apt-get update failed; the packages still needed: ${missing[*]}"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >/dev/null ||
        zipccl_die "apt-get could not install ${missing[*]}; Debian 12 has them all, see Dockerfile"
}

# zipccl_build PRESET FOLDER [TARGET...] - configure and build, quietly unless it fails
zipccl_build() {
    local preset=$1 folder=$2 cache=$2/CMakeCache.txt log
    shift 2
    if [ -e "$cache" ] && ! { grep -q '^CMAKE_GENERATOR:INTERNAL=Ninja$' "$cache" &&
        grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$(pwd -P)" "$cache"; }; then
        echo "$folder was made by another generator or in another place: configuring it anew"
        rm -rf "$cache" "$folder/CMakeFiles"
    fi
    mkdir -p "$folder"
    log=$folder/configure.log
    cmake --preset "$preset" >"$log" 2>&1 </dev/null || {
        cat "$log" >&2
        zipccl_die "configuring failed; the lines above tell why"
    }
    if ! cmake --build "$folder" ${1+--target "$@"} >"$folder/build.log" 2>&1 </dev/null; then
        tail -n 60 "$folder/build.log" >&2
        zipccl_die "building failed; all of it stands in $folder/build.log"
    fi
}

# zipccl_ctest FOLDER [OPTION...] - run the tests; their output is shown where one fails
zipccl_ctest() {
    local folder=$1
    shift
    CTEST_OUTPUT_ON_FAILURE=1 ctest --test-dir "$folder" --no-tests=error "$@" </dev/null
}
