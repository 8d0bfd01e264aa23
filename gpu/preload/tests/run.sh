#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh - run the test program on the doubles with the preloaded library: run.sh FOLDER CASE [LIBNCCL]
#
# FOLDER has what CMakeLists.txt built: double/ and old/ (libnccl.so.2, libcudart), lib/ (preloaded library
# and back end), forwarding/ (libnccl.so.2 that forwards), the programs.
set -u
room=$1
case=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
preload=$room/lib/libzipccl-preload.so
double=$room/double/libnccl.so.2
# Sanitizers want to come before what is preloaded; they are in the program itself.
export ASAN_OPTIONS="verify_asan_link_order=0:${ASAN_OPTIONS:-}"
unset ZIPCCL_MODE ZIPCCL_NCCL

fail() {
    echo "$case: $*"
    exit 1
}

# run NAME [VARIABLE=VALUE...] -- COMMAND...: what it writes goes to $work/NAME
run() {
    name=$1
    shift
    set_these=
    while [ "$1" != -- ]; do
        set_these="$set_these $1"
        shift
    done
    shift
    # shellcheck disable=SC2086
    env $set_these "$@" >"$work/$name" 2>&1
    rc=$?
    [ $rc -eq 0 ] || { cat "$work/$name"; fail "$name: exit code $rc"; }
}

has() {
    grep -Eq -e "$2" "$work/$1" || { cat "$work/$1"; fail "$1: no line like '$2'"; }
}

hasnt() {
    ! grep -Eq -e "$2" "$work/$1" || { cat "$work/$1"; fail "$1: a line like '$2'"; }
}

app=$room/zipccl_test_app
on="LD_LIBRARY_PATH=$room/double LD_PRELOAD=$preload ZIPCCL_MODE=on ZIPCCL_CHOOSE=always ZIPCCL_MIN_BYTES=64K"
reductions="ZIPCCL_REDUCTIONS=reduce_scatter,all_reduce"
stats="ZIPCCL_STATS_FILE=$work/stats.json"

case $case in
plain)
    run a LD_LIBRARY_PATH="$room/double" -- "$app" collectives 4
    run b LD_LIBRARY_PATH="$room/double" -- "$app" groups 4
    ;;
off)
    run plain LD_LIBRARY_PATH="$room/double" APP_SAY=1 -- "$app" collectives 3
    run a LD_LIBRARY_PATH="$room/double" LD_PRELOAD="$preload" ZIPCCL_DEBUG=INFO APP_SAY=1 "$stats" -- \
        "$app" collectives 3
    # No device memory, no stream, no thread.
    [ "$(grep '^used:' "$work/a")" = "$(grep '^used:' "$work/plain")" ] || {
        cat "$work/a" "$work/plain"
        fail "mode off used something"
    }
    has a 'INFO mode off, NCCL 228'
    hasnt a 'calls by what became'
    [ ! -e "$work/stats.json" ] || fail "statistics in mode off"
    ;;
observe)
    run a LD_LIBRARY_PATH="$room/double" LD_PRELOAD="$preload" ZIPCCL_MODE=observe ZIPCCL_MIN_BYTES=64K "$stats" -- \
        "$app" collectives 3
    has a 'all_gather +12 .* observing 12'
    has a 'all_reduce +12 .* op not selected 12'
    has a 'rates assumed'
    has a 'selected calls: .* ms'
    has stats.json '"op": "alltoall", "calls": 6'
    run b LD_LIBRARY_PATH="$room/double" LD_PRELOAD="$preload" ZIPCCL_MODE=observe ZIPCCL_MIN_BYTES=64K -- \
        "$app" groups 3
    has b 'alltoallv +9 '
    ;;
on)
    # shellcheck disable=SC2086
    run a $on $reductions "$stats" -- "$app" collectives 3
    has a 'all_gather +12 .* given to the back end 12'
    has a 'reduce +6 .* op not selected 6'
    has a 'all_gather +12 +12 .* [1-9]\.[0-9]+ '
    has stats.json '"op": "reduce_scatter", "calls": 12, "compressed": 12'
    ;;
groups)
    # shellcheck disable=SC2086
    run a $on -- "$app" groups 4
    has a 'all_gather +24 .* given to the back end 24'
    has a 'sendrecv +[0-9]+ +[1-9][0-9]* '
    ;;
gate)
    # Captured calls are compressed as well, and none waits on the host.
    # shellcheck disable=SC2086
    run a $on $reductions ZIPCCL_GATE=all -- "$app" collectives 3
    has a 'all_gather +12 .* given to the back end 12'
    # shellcheck disable=SC2086
    run b $on ZIPCCL_GATE=capture -- "$app" rare 4
    has b 'all_gather +[0-9]+ .*given to the back end 31' # those of 'rare' and the 4 that are captured
    has b 'all_gather +27 +27 '
    hasnt b 'captured into a graph [1-9]'
    ;;
split)
    # shellcheck disable=SC2086
    run a $on -- "$app" split 4
    has a 'all_gather +7 .* given to the back end 7'
    ;;
rare)
    # A communicator of several ids (4 calls), one without the last rank (3), after a simulated group (4), registered
    # memory (4), beside a communicator in progress (4) and a capture (4); one call a rank is captured, one made while a window is
    # registered.  Those of the simulated group count (4), but the back end never sees them.
    # shellcheck disable=SC2086
    run a $on $reductions -- "$app" rare 4
    has a 'all_gather +[0-9]+ .*given to the back end 27'
    has a 'all_gather +23 +23 '
    has a 'all_gather +[0-9]+ .*captured into a graph 4'
    has a 'all_gather +[0-9]+ .*registered windows 4'
    has a 'all_gather +[0-9]+ .*non-blocking communicator 8'
    has a 'all_reduce +4 .*reduction that is not sum or avg 4'
    run b LD_LIBRARY_PATH="$room/double" -- "$app" rare 4
    ;;
endings)
    # shellcheck disable=SC2086
    run a $on APP_DEFERS=1 -- "$app" endings 4
    has a 'text of a wrong root: zipccl: root 99 is not one of 4 ranks'
    has a 'all_gather +[0-9]+ .*aborted communicator 8'
    run b LD_LIBRARY_PATH="$room/double" LD_PRELOAD="$preload" ZIPCCL_MODE=observe -- "$app" endings 4
    run c LD_LIBRARY_PATH="$room/double" -- "$app" endings 4
    ;;
many)
    # 40 communicators one after another and the world's, all alike: each rank keeps one record.
    # shellcheck disable=SC2086
    run a $on "$stats" -- "$app" many 2
    has a '82 communicators'
    has a 'all_gather +80 .* given to the back end 80'
    has a 'all_gather +80 +80 '
    [ "$(grep -c '"communicators": 41, "rank": [01], "ranks": 2' "$work/stats.json")" -eq 2 ] || {
        cat "$work/stats.json"
        fail "not one record a rank"
    }
    ;;
torch)
    for mode in off observe on; do
        # shellcheck disable=SC2086
        run $mode $on ZIPCCL_MODE=$mode $reductions -- "$app" torch 4
    done
    # The doubles do not end what hangs: only the watchdogs do.
    for mode in observe on; do
        # shellcheck disable=SC2086
        run $mode.hang $on ZIPCCL_MODE=$mode ZIPCCL_EMU=peer_ms=300000 -- "$app" torch_hang 4
    done
    # Two steps of 4 ranks: one of the world and three coalesced; sums, with a factor or not; two kinds of messages.
    has on 'all_gather +32 .* given to the back end 32'
    has on 'reduce_scatter +16 .* given to the back end 8, reduction that is not sum or avg 8'
    has on 'sendrecv +[0-9]+ .* given to the back end'
    has observe 'dp +2 +1 all_gather'
    # shellcheck disable=SC2086
    run named $on ZIPCCL_GROUPS=dp -- "$app" torch 4
    has named 'all_gather +32 .* given to the back end 8, process group not selected 24'
    ;;
abort)
    # shellcheck disable=SC2086
    run a $on -- "$app" abort 3
    run b LD_LIBRARY_PATH="$room/double" LD_PRELOAD="$preload" ZIPCCL_MODE=observe -- "$app" abort 3
    ;;
watched)
    # shellcheck disable=SC2086
    run a $on -- "$app" watched 2
    has a 'given to the back end 16'
    ;;
stuck)
    bad=$(echo "$on" | sed "s#$preload#$room/faulty/libzipccl-preload.so#")
    # shellcheck disable=SC2086
    run a $bad APP_RELEASE="$work/release" -- "$app" stuck 2
    has a 'left to the process'
    ;;
one_fails)
    bad=$(echo "$on" | sed "s#$preload#$room/faulty/libzipccl-preload.so#")
    # NAME VARIABLE=VALUE: rank 1 alone cannot have what the others have.
    for fault in FAULTY_CREATE=1 APP_FAIL=cudaMallocHost:1 APP_FAIL=cudaStreamCreate:4; do
        pids=
        rm -f "$work/id"
        for rank in 0 1 2; do
            extra=
            [ $rank -ne 1 ] || extra=$fault
            # shellcheck disable=SC2086
            env $bad ZIPCCL_VERIFY=1 ZIPCCL_CONTROL="$work/control" RANK=$rank WORLD_SIZE=3 APP_ID="$work/id" $extra \
                timeout 60 "$app" collectives processes >"$work/$fault.$rank" 2>&1 &
            pids="$pids $!"
        done
        for pid in $pids; do
            wait "$pid" || { cat "$work/$fault".*; fail "$fault: a rank failed"; }
        done
        has "$fault.1" 'communicator of 3 ranks: rank 1: .*; its calls are plain NCCL'
        has "$fault.0" 'all_gather +4 .* no back end 4'
        [ "$(cat "$work/$fault".* | grep -c 'calls are plain NCCL')" -eq 1 ] || fail "$fault: not one warning"
    done
    ;;
single_thread)
    # shellcheck disable=SC2086
    run a $on LD_PRELOAD= LD_LIBRARY_PATH="$room/forwarding:$room/double" ZIPCCL_MIN_BYTES=4K -- "$room/zipccl_test_loader"
    has a 'several ranks in one thread 2'
    ;;
forwarding)
    for mode in off observe on; do
        run $mode LD_LIBRARY_PATH="$room/forwarding:$room/double" ZIPCCL_MODE=$mode ZIPCCL_CHOOSE=always \
            ZIPCCL_MIN_BYTES=64K ZIPCCL_DEBUG=INFO -- "$app" collectives 3
        has $mode 'double/lib(nccl|cudart).so.[0-9]+, next on LD_LIBRARY_PATH'
    done
    has on 'all_gather +12 .* given to the back end 12'
    run named LD_LIBRARY_PATH="$room/forwarding:$room/double" ZIPCCL_NCCL="$double" ZIPCCL_DEBUG=INFO -- "$app" groups 2
    has named 'double/lib(nccl|cudart).so.[0-9]+, ZIPCCL_NCCL'
    # Both at once: one of them does the work.
    run both LD_LIBRARY_PATH="$room/forwarding:$room/double" LD_PRELOAD="$preload" ZIPCCL_MODE=on \
        ZIPCCL_CHOOSE=always ZIPCCL_MIN_BYTES=64K -- "$app" collectives 3
    has both 'all_gather +12 .* given to the back end 12'
    [ "$(grep -c 'calls by what became' "$work/both")" -eq 1 ] || fail "two libraries counted"
    # Preloaded, it is every libnccl.so.2 of the process, linked or opened by its name.
    itself="LD_LIBRARY_PATH=$room/double LD_PRELOAD=$room/forwarding/libnccl.so.2 ZIPCCL_NCCL=$double ZIPCCL_MODE=observe"
    # shellcheck disable=SC2086
    run linked $itself ZIPCCL_MIN_BYTES=64K -- "$app" collectives 3
    has linked 'all_gather +12 .* observing 12'
    # shellcheck disable=SC2086
    run opened $itself -- "$room/zipccl_test_loader"
    has opened 'all_gather +2 '
    # Opened by its path where an NCCL is in the process, it calls that one and not the next on the path.
    run beside LD_LIBRARY_PATH="$room/old" ZIPCCL_MODE=observe ZIPCCL_DEBUG=INFO -- \
        "$room/zipccl_test_loader" beside "$double" "$room/forwarding/libnccl.so.2"
    has beside 'double/lib(nccl|cudart).so.[0-9]+, already loaded'
    has beside 'all_gather +2 '
    hasnt beside 'twice'
    ;;
real)
    # The NCCL library of this machine, without a GPU: nothing that a program sees may change.
    nccl=${3:-}
    names=$(nm -D --defined-only "$nccl" 2>/dev/null | sed -n 's/.* \(p\{0,1\}nccl[A-Za-z0-9_]*\)$/\1/p')
    ASAN_OPTIONS="detect_leaks=0:$ASAN_OPTIONS" # NCCL's own are not looked for
    # shellcheck disable=SC2086
    if ! LD_LIBRARY_PATH=$(dirname "$nccl") "$room/zipccl_test_real" >"$work/plain" 2>&1 || [ -z "$names" ]; then
        cat "$work/plain"
        echo "skipped: \"$nccl\" is no NCCL library that a program can be run with here"
        exit 77
    fi
    # All of its names are in the forwarding library, none under a version; what is preloaded has no others.
    nm -D --defined-only "$room/forwarding/libnccl.so.2" >"$work/forwarded"
    nm -D --defined-only "$preload" | sed -n 's/.* \(p\{0,1\}nccl[A-Za-z0-9_]*\)$/\1/p' >"$work/preloaded"
    echo "$names" >"$work/names"
    for name in $names; do
        grep -Eq " [TW] $name\$" "$work/forwarded" || fail "$nccl has $name, the forwarding library has not"
    done
    for name in $(cat "$work/preloaded"); do
        grep -Fqx "$name" "$work/names" || fail "$nccl has no $name, which is preloaded over it"
    done
    # shellcheck disable=SC2086
    run plain LD_LIBRARY_PATH="$(dirname "$nccl")" -- "$room/zipccl_test_real" $names
    for mode in off observe on; do
        # shellcheck disable=SC2086
        run preloaded.$mode LD_LIBRARY_PATH="$(dirname "$nccl")" LD_PRELOAD="$preload" ZIPCCL_MODE=$mode ZIPCCL_STATS=0 -- \
            "$room/zipccl_test_real" $names
        # shellcheck disable=SC2086
        run forwarded.$mode LD_LIBRARY_PATH="$room/forwarding:$(dirname "$nccl")" ZIPCCL_MODE=$mode ZIPCCL_STATS=0 -- \
            "$room/zipccl_test_real" $names
        for way in preloaded forwarded; do
            diff "$work/plain" "$work/$way.$mode" || fail "$nccl answers otherwise $way in mode $mode"
        done
    done
    hasnt plain ': not there'
    ;;
loader)
    run a LD_LIBRARY_PATH="$room/forwarding:$room/double" ZIPCCL_MODE=observe -- "$room/zipccl_test_loader"
    has a 'all_gather +2 '
    run b LD_LIBRARY_PATH="$room/forwarding:$room/double" ZIPCCL_MODE=on -- "$room/zipccl_test_loader"
    has b 'wrong 0'
    ;;
old)
    for name in ncclAlltoAll ncclMemAlloc ncclCommRegister ncclCommShrink ncclGroupSimulateEnd pncclGather; do
        run $name LD_LIBRARY_PATH="$room/forwarding:$room/old" -- "$room/zipccl_test_loader" missing $name
        has $name 'not there'
    done
    # What it exports stays: the same name with the whole double.
    LD_LIBRARY_PATH="$room/forwarding:$room/double" "$room/zipccl_test_loader" missing ncclAlltoAll >/dev/null 2>&1 &&
        fail "ncclAlltoAll is hidden although the library has it"
    # One that is far too old is told of with the first communicator, and by no program that makes none.
    far="LD_LIBRARY_PATH=$room/double LD_PRELOAD=$room/forwarding/libnccl.so.2 ZIPCCL_NCCL=$room/null/libnccl.so.2 NULL_NCCL_VERSION=21600"
    # shellcheck disable=SC2086
    run quiet $far ASAN_OPTIONS="detect_leaks=0:$ASAN_OPTIONS" -- sh -c "exit 0"
    hasnt quiet .
    # shellcheck disable=SC2086
    run told $far -- "$room/zipccl_preload_bench" 1
    has told 'null/libnccl.so.2.* is NCCL 21600, expected 2.18'
    # So is one that is not there, once.
    # shellcheck disable=SC2086
    env $far ZIPCCL_NCCL="$work/nothing" "$room/zipccl_preload_bench" 1 >"$work/nothing.said" 2>&1 &&
        fail "NCCL works without NCCL"
    [ "$(grep -c 'ZIPCCL_NCCL=.* cannot be loaded' "$work/nothing.said")" -eq 1 ] || fail "not told once"
    # shellcheck disable=SC2086
    run a $on LD_LIBRARY_PATH="$room/old" -- "$app" groups 3
    has a 'given to the back end'
    LD_LIBRARY_PATH="$room/old" LD_PRELOAD="$preload" "$app" collectives 2 >"$work/b" 2>&1
    [ $? -ne 0 ] || fail "a call of what is missing did not fail"
    has b 'ncclAlltoAll was called, which NCCL 22809 .* does not have|undefined symbol: ncclAlltoAll'
    ;;
control)
    # shellcheck disable=SC2086
    run a $on ZIPCCL_CONTROL="$work/control" ZIPCCL_CONTROL_EVERY=3 APP_CONTROL="$work/control" -- "$app" control 3
    has a 'compression is off from collective 1[0-9] on'
    has a 'switched off by the control file [1-9]'
    ;;
verify)
    # shellcheck disable=SC2086
    run a $on $reductions ZIPCCL_VERIFY=1 -- "$app" collectives 3
    has a 'verified all_gather: 12 calls equal, 0 not'
    has a 'verified reduce_scatter: 12 calls equal, 0 not'
    # shellcheck disable=SC2086
    run b $on ZIPCCL_VERIFY=2 -- "$app" groups 3
    has b 'verified sendrecv: [1-9]'
    # shellcheck disable=SC2086
    run c $on $reductions ZIPCCL_VERIFY=1 -- "$app" steady 2
    has c 'verified reduce_scatter: 16 calls equal, 0 not'
    ;;
mismatch)
    bad=$(echo "$on" | sed "s#$preload#$room/corrupt/libzipccl-preload.so#")
    # shellcheck disable=SC2086
    env $bad ZIPCCL_VERIFY=2 "$app" collectives 2 >"$work/a" 2>&1
    [ $? -eq 134 ] || { cat "$work/a"; fail "a mismatch did not end the process"; }
    has a 'VERIFY: communicator without a name of 2 ranks, all_gather, count 70003, rank [01]: element 12345 of rank 0 is 0x7b7b, expected 0x.... by plain NCCL'
    # shellcheck disable=SC2086
    env $bad ZIPCCL_VERIFY=1 ZIPCCL_VERIFY_ACTION=disable APP_SAY=1 "$app" collectives 2 >"$work/b" 2>&1
    has b 'VERIFY: compression is disabled on communicator'
    has b 'all_gather +8 .* given to the back end 2, disabled after a mismatch 6'
    has b 'verified all_gather: 0 calls equal, 2 not, 0 not checked'
    has b 'last error: zipccl: VERIFY: communicator'
    # shellcheck disable=SC2086
    env $bad ZIPCCL_OPS=all_reduce ZIPCCL_VERIFY=1 "$app" collectives 2 >"$work/c" 2>&1
    has c "VERIFY: .* all_reduce, count 70003, rank [01]: element 12345 is 0x7b7b, expected 0x.... by the plan's order"
    # shellcheck disable=SC2086
    env $bad ZIPCCL_OPS=sendrecv ZIPCCL_VERIFY=1 "$app" groups 3 >"$work/d" 2>&1
    [ $? -eq 134 ] || { cat "$work/d"; fail "a mismatch of a message did not end the process"; }
    has d 'VERIFY: .* sendrecv, count [0-9]+, rank [012]: element 12345 of rank [012] is 0x7b7b'
    ;;
nodes)
    # Two nodes, as NCCL itself is told: what crosses between them is what compression gains on.
    pids=
    for rank in 0 1 2 3; do
        env LD_LIBRARY_PATH="$room/double" LD_PRELOAD="$preload" ZIPCCL_MODE=observe ZIPCCL_MIN_BYTES=64K \
            ZIPCCL_CLUSTER="$here/slow.txt" NCCL_HOSTID=node$((rank / 2)) RANK=$rank WORLD_SIZE=4 APP_ID="$work/id" \
            "$app" collectives processes >"$work/a.$rank" 2>&1 &
        pids="$pids $!"
    done
    for pid in $pids; do
        wait "$pid" || { cat "$work"/a.*; fail "a rank failed"; }
    done
    has a.0 'all_gather +bf16 .* yes .*(fixed|exact)'
    has a.0 "rates of slow, from $here/slow.txt"
    has a.0 'selected calls: .* [1-9][0-9.]* % less than NCCL'
    hasnt a.1 'calls by what became'
    ;;
rates)
    [ -x "$room/../zipccl" ] || { echo "skipped: no zipccl program in this build"; exit 77; }
    "$room/../zipccl" cluster plain h100-8x8-400g >"$work/rates" || fail "no rates"
    run a LD_LIBRARY_PATH="$room/double" LD_PRELOAD="$preload" ZIPCCL_MODE=observe ZIPCCL_CLUSTER="$work/rates" -- \
        "$app" abort 2
    has a "rates of h100-8x8-400g, from $work/rates"
    has a 'NIC bytes/s 4.8e\+10'
    # What is assumed without a cluster is this one: gpu/params.c repeats its values.
    run b LD_LIBRARY_PATH="$room/double" LD_PRELOAD="$preload" ZIPCCL_MODE=observe -- "$app" abort 2
    for name in a b; do
        sed -n '/^rates in use:/,$p' "$work/$name" | grep '^  [A-Za-z]' |
            grep -v 'GPUs a node' >"$work/$name.rates" # which is the job's own, where nothing is said
    done
    diff "$work/a.rates" "$work/b.rates" || fail "gpu/params.c differs from models/clusters/h100-8x8-400g.yaml"
    ;;
twice)
    cp "$double" "$work/libnccl-second.so"
    run a LD_LIBRARY_PATH="$room/forwarding:$room/double" ZIPCCL_MODE=observe -- \
        "$room/zipccl_test_loader" twice "$work/libnccl-second.so"
    has a 'NCCL is in this process twice: .*double/lib.* .*libnccl-second.so'
    ;;
settings)
    run a LD_LIBRARY_PATH="$room/double" LD_PRELOAD="$preload" ZIPCCL_MODE=maybe -- "$app" collectives 2
    has a 'ZIPCCL_MODE=maybe: expected off, observe or on; zipccl is off'
    run b LD_LIBRARY_PATH="$room/double" LD_PRELOAD="$preload" ZIPCCL_MODE=observe ZIPCCL_GROUPS=size=5 \
        ZIPCCL_DEBUG_FILE="$work/log.%h.%p" -- "$app" collectives 2
    cat "$work"/log.*.* >"$work/log" || fail "no log file"
    has log 'process group not selected'
    hasnt b ZIPCCL
    # What is no file stays what it is, and is not waited for.
    mkfifo "$work/pipe"
    # shellcheck disable=SC2086
    run c $on ZIPCCL_STATS_FILE="$work/pipe" ZIPCCL_CONTROL="$work/pipe" ZIPCCL_CONTROL_EVERY=3 -- \
        timeout 60 "$app" collectives 2
    [ -p "$work/pipe" ] || fail "ZIPCCL_STATS_FILE replaced a pipe"
    has c 'ZIPCCL_STATS_FILE: cannot write .*/pipe: '
    hasnt c 'could not be shared'
    # A full disk is told, and told once.
    # shellcheck disable=SC2086
    run d $on ZIPCCL_STATS_FILE=/dev/full -- "$app" many 2
    [ "$(grep -c 'ZIPCCL_STATS_FILE: cannot write /dev/full' "$work/d")" -eq 1 ] || fail "not told once"
    # Programs without NCCL, which a job's launcher preloads it into as well.
    for mode in on nonsense; do
        for words in "exit 3" "kill -TERM \$\$" "echo a | grep a" "exec env -i echo b"; do
            sh -c "$words" >"$work/plain" 2>&1
            echo $? >>"$work/plain"
            env LD_PRELOAD="$preload" ZIPCCL_MODE=$mode ZIPCCL_MEMORY=nonsense ZIPCCL_DEBUG=INFO ZIPCCL_STATS=1 \
                ZIPCCL_STATS_FILE="$work/nothing.%p" ZIPCCL_DEBUG_FILE="$work/nothing.log.%p" \
                ASAN_OPTIONS="detect_leaks=0:$ASAN_OPTIONS" sh -c "$words" >"$work/e" 2>&1
            echo $? >>"$work/e"
            diff "$work/plain" "$work/e" || fail "sh -c '$words' in mode $mode"
            env LD_PRELOAD="$room/forwarding/libnccl.so.2" ZIPCCL_MODE=$mode ZIPCCL_NCCL="$work/nothing" \
                ASAN_OPTIONS="detect_leaks=0:$ASAN_OPTIONS" sh -c "$words" >"$work/f" 2>&1
            echo $? >>"$work/f"
            diff "$work/plain" "$work/f" || fail "sh -c '$words' in mode $mode, forwarding"
        done
    done
    ! ls "$work" | grep nothing || fail "a file of a program without NCCL"
    ;;
differ)
    # Processes, since the settings are a process's: rank 1 has another least size, then another mode.
    for other in ZIPCCL_MIN_BYTES=2M ZIPCCL_MODE=off ZIPCCL_MODE=observe; do
        pids=
        rm -f "$work/id"
        for rank in 0 1 2; do
            extra=
            [ $rank -ne 1 ] || extra=$other
            # shellcheck disable=SC2086
            env $on RANK=$rank WORLD_SIZE=3 APP_ID="$work/id" $extra "$app" collectives processes \
                >"$work/$other.$rank" 2>&1 &
            pids="$pids $!"
        done
        for pid in $pids; do
            wait "$pid" || { cat "$work/$other".*; fail "$other: a rank failed"; }
        done
        has "$other.0" 'rank 1 differs from rank 0 \((ZIPCCL_MODE|other ZIPCCL_ variables)\)'
        has "$other.0" 'settings differ between ranks'
        hasnt "$other.2" 'differs from rank'
    done
    # The other way round: rank 0, which makes the unique id, is off.
    pids=
    rm -f "$work/id"
    for rank in 0 1; do
        extra=
        [ $rank -ne 0 ] || extra=ZIPCCL_MODE=off
        # shellcheck disable=SC2086
        env $on RANK=$rank WORLD_SIZE=2 APP_ID="$work/id" $extra "$app" collectives processes >"$work/zero.$rank" 2>&1 &
        pids="$pids $!"
    done
    for pid in $pids; do
        wait "$pid" || { cat "$work"/zero.*; fail "rank 0 off: a rank failed"; }
    done
    has zero.1 'runs without zipccl, or off'
    ;;
mpi)
    # shellcheck disable=SC2086
    run a $on APP_ID="$work/id" -- "$here/../../../tests/run_mpi.sh" 3 "$app" groups processes
    has a 'all_gather +6 .* given to the back end 6'
    [ "$(grep -c 'wrong 0' "$work/a")" -eq 3 ] || fail "not three ranks"
    ;;
*) fail "no such case" ;;
esac
echo "preload $case: ok"
