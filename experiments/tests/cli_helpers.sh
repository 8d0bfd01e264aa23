# SPDX-License-Identifier: Apache-2.0
# cli_helpers.sh - what tests at the command line share; sourced with BUILD as first argument
#
# Changes to a scratch folder that is removed at the end; $OLDPWD is the root of the source tree.
set -u
build=$(cd "$1" && pwd -P) || exit 1
zipccl=$build/zipccl
sim=$build/zipccl-sim
check=$build/tests/check_result
timeline=$build/tests/check_timeline
moe=$PWD/traces/samples/moe64
llama=$PWD/traces/samples/llama2-7b-fsdp64
a100=a100-8x8-200g
tensors=$PWD/traces/samples/tensors/moe.safetensors
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
ntests=0
nfailed=0

failed() {
    echo "FAILED: $*"
    nfailed=$((nfailed + 1))
}

# SimGrid switches stacks, which AddressSanitizer remarks on; its real reports stay.
drop_remarks() {
    sed -i -e '/ASan is ignoring requested __asan_handle_no_return/d' \
        -e '/^False positive error reports may follow$/d' -e '/sanitizers\/issues\/189$/d' err
}

# works TEXT COMMAND... - exit code 0, nothing on stderr, TEXT in the output
works() {
    local text=$1
    shift
    ntests=$((ntests + 1))
    "$@" >out 2>err </dev/null || failed "exit code $? of: $*: $(cat err)"
    drop_remarks
    [ ! -s err ] || failed "stderr of: $*: $(cat err)"
    [ -z "$text" ] || grep -qF -- "$text" out || failed "no '$text' in the output of: $*: $(head -5 out)"
}

# refuses TEXT COMMAND... - exit code 2, one line on stderr that begins with the command typed and
# holds TEXT, nothing on stdout, no file left
refuses() {
    local text=$1 code
    shift
    ntests=$((ntests + 1))
    ls -A >before
    "$@" >out 2>err </dev/null
    code=$?
    [ $code -eq 2 ] || failed "exit code $code, not 2, of: $*: $(head -3 err)"
    [ "$(wc -l <err)" -eq 1 ] || failed "$(wc -l <err) lines on stderr of: $*: $(cat err)"
    grep -q "^$(basename "$1"): " err || failed "no '$(basename "$1"):' in: $(cat err)"
    grep -qiF -- "$text" err || failed "no '$text' in: $(cat err)"
    ! grep -q '\([^ :]\+: \)\1' err || failed "a prefix twice in: $(cat err)"
    [ ! -s out ] || failed "output of: $*: $(head -3 out)"
    ls -A | diff before - >left || failed "files left by: $*: $(cat left)"
}
touch before out err left

# loses COMMAND... - exit code 1 and one line on stderr where standard output cannot be written
loses() {
    local code
    ntests=$((ntests + 1))
    "$@" >/dev/full 2>err </dev/null
    code=$?
    drop_remarks
    [ $code -eq 1 ] || failed "exit code $code, not 1, with a full standard output: $*"
    [ "$(wc -l <err)" -eq 1 ] || failed "$(wc -l <err) lines on stderr of: $*: $(cat err)"
    grep -q "^$(basename "$1"): standard output: cannot write" err || failed "told as: $(cat err)"
}

finish() {
    echo "$ntests command lines, $nfailed failures"
    [ $nfailed -eq 0 ]
}
