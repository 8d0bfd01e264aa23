#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh - the validation on real GPUs, stage by stage; stopped and started again it goes on
#
# run.sh -n RANKS --launch 'COMMAND...' [-o DIR] [--one-node GROUP] [--program FILE] [--cluster FILE]
#        [--stages LIST] [--local N] [--tiny] [--list]
#
#   -n RANKS            ranks, one a GPU
#   --launch COMMAND    what starts them, program and arguments follow: 'mpirun -np 64', 'srun -n 64',
#                       'torchrun --nnodes 8 --nproc_per_node 8 ... --no_python'; 'local' starts
#                       processes on this machine
#   -o DIR              results (default real_gpu.out); a stage whose result is there is not run again.
#                       The folder keeps -n, --one-node, --cluster, --tiny: others are refused
#   --one-node GROUP    a single node whose groups of GROUP GPUs stand for nodes: P2P and shared
#                       memory of NCCL are switched off, so that all traffic takes a NIC or a socket
#   --program FILE      zipccl-perf-nccl (default: of build-gpu, then build)
#   --cluster FILE      what the chooser goes by, as zipccl-perf's --cluster
#   --local N           ranks that the command starts on this node, where run.sh runs on every node (torchrun)
#   --stages LIST       only these, with commas between; --list names them with their minutes
#   --tiny              small sizes, to try the script
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$(dirname "$here")")
ranks='' launch='' out=real_gpu.out group='' program='' cluster=() only='' tiny='' list='' local_ranks=''

die() {
    echo "run.sh: $*" >&2
    exit 2
}
# needs WHAT OPTION [VALUE]... - the value is there
needs() {
    [ -n "${3:-}" ] || die "$2 needs $1"
}
while [ $# -gt 0 ]; do
    case $1 in
    -n) needs 'a number' "$@" && ranks=$2 && shift 2 ;;
    --launch) needs 'a command' "$@" && launch=$2 && shift 2 ;;
    -o) needs 'a folder' "$@" && out=$2 && shift 2 ;;
    --one-node) needs 'a number' "$@" && group=$2 && shift 2 ;;
    --program) needs 'a file' "$@" && program=$2 && shift 2 ;;
    --cluster) needs 'a name or a file' "$@" && cluster=(--cluster "$2") && shift 2 ;;
    --stages) needs names "$@" && only=$2 && shift 2 ;;
    --local) needs 'a number' "$@" && local_ranks=$2 && shift 2 ;;
    --tiny) tiny=1 && shift ;;
    --list) list=1 && shift ;;
    -h | --help) sed -n '4,21s/^# \{0,1\}//p' "$0" && exit 0 ;;
    *) die "unknown argument '$1'; --help shows how" ;;
    esac
done

# Stage and its minutes on 64 GPUs: estimates, not measured on GPUs yet.
stages="preflight:1 all_gather:6 reduce_scatter:8 all_reduce:8 alltoall:6 alltoallv:8 broadcast:4 sendrecv:4 replay-moe64:15 replay-llama2-7b-fsdp64:20"
[[ $ranks =~ ^([1-9][0-9]{0,5})?$ ]] || die "-n '$ranks': expected the number of ranks"
[[ $group =~ ^([1-9][0-9]{0,5})?$ ]] || die "--one-node '$group': expected the number of ranks in a group"
[[ $local_ranks =~ ^([1-9][0-9]{0,5})?$ ]] || die "--local '$local_ranks': expected the number of ranks on this node"
for stage in ${only//,/ }; do
    case " $stages" in *" $stage:"*) ;; *) die "no stage '$stage'; --list names them" ;; esac
done

# is_wanted STAGE - it is one of --stages
is_wanted() {
    case ",$only," in ,, | *",$1,"*) ;; *) return 1 ;; esac
}

# fits STAGE - the traces have 64 ranks; that of data parallelism alone goes to fewer that divide 64
fits() {
    [ -z "$tiny" ] || return 0
    case $1 in
    replay-moe64) [ "${ranks:-64}" -eq 64 ] ;;
    replay-*) [ $((64 % ${ranks:-64})) -eq 0 ] ;;
    esac
}

if [ -n "$list" ]; then
    total=0
    for stage in $stages; do
        is_wanted "${stage%:*}" || continue
        fits "${stage%:*}" || { echo "${stage%:*}  left out: its trace of 64 ranks does not go to $ranks" && continue; }
        total=$((total + ${stage#*:}))
        echo "${stage%:*}  ${stage#*:} min"
    done
    echo "all: $total min (estimated for 64 GPUs, not run on GPUs yet)"
    exit 0
fi
[ -n "$ranks" ] || die "-n says how many ranks there are; --help shows how"
local_ranks=${local_ranks:-$ranks}
[ -n "$launch" ] || die "--launch says what starts the ranks; --help shows how"
for place in build-gpu build; do
    [ -n "$program" ] || [ ! -x "$root/$place/zipccl-perf-nccl" ] || program=$root/$place/zipccl-perf-nccl
done
[ -x "$program" ] || die "no zipccl-perf-nccl: cmake --preset gpu && cmake --build build-gpu, or --program"
mkdir -p "$out" || die "-o $out: no folder can be made there"
out=$(cd "$out" && pwd)

# same_settings - the results of a folder, if there are any, are of one set of settings, kept in it
same_settings() {
    local file=$out/settings.txt now key value kept
    now=$(printf '%s\n' "-n $ranks" "--one-node ${group:-none}" "--cluster ${cluster[1]:-none}" "--tiny ${tiny:-0}")
    if [ ! -s "$file" ] || ! compgen -G "$out/*.json" >/dev/null && ! compgen -G "$out/*.elsewhere" >/dev/null; then
        printf '%s\n' "$now" >"$file.$$" && mv "$file.$$" "$file"
        return
    fi
    while read -r key value; do
        kept=$(sed -n "s/^$key //p" "$file")
        [ "$kept" = "$value" ] ||
            die "$file: $key $kept, now $key $value: results of other settings are in there; name another folder with -o"
    done <<<"$now"
}
options=("${cluster[@]}") slower=()
if [ -n "$group" ]; then
    [ $((ranks % group)) -eq 0 ] || die "--one-node $group does not divide $ranks ranks"
    slower=(env NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1) # of the ranks, wherever the launcher starts them
    options+=(--ranks-per-node "$group")
fi
same_settings

# Ranks that this script starts itself do not outlive it.
stop() {
    trap - INT TERM
    # shellcheck disable=SC2046
    kill $(jobs -p) 2>/dev/null || true
    echo "run.sh: stopped; run it again to go on" >&3
    exit 130
}
exec 3>&2 # what stands in a stage's file, where the signal comes, is not seen
trap stop INT TERM

# start PROGRAM ARGUMENT... - on all ranks; output of all together
start() {
    if [ "$launch" != local ]; then
        # shellcheck disable=SC2086
        $launch "${slower[@]}" "${master[@]}" "$@"
        return
    fi
    local r pids=() code=0
    for r in $(seq $((ranks - 1)) -1 0); do
        RANK=$r WORLD_SIZE=$ranks LOCAL_RANK=$r MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "${slower[@]}" "$@" &
        pids+=($!)
    done
    for r in "${pids[@]}"; do
        wait "$r" || code=$?
    done
    port=$((port + 1))
    return $code
}
port=$((20000 + $$ % 10000)) master=()

# is_done STAGE - its result is there, and not empty
is_done() {
    [ -s "$out/$1.json" ] || [ -s "$out/$1.elsewhere" ]
}

# keep STAGE - its result, or where rank 0 is on another node, a note that it ran
keep() {
    if [ -s "$out/$1.partial" ]; then
        mv "$out/$1.partial" "$out/$1.json"
    elif [ "$local_ranks" -lt "$ranks" ]; then
        echo "run; the result is on the node of rank 0" >"$out/$1.elsewhere"
    else
        return 1
    fi
}

# hosts - of the ranks seen, one a line
hosts() {
    sed -n 's/.*zipccl-rank [0-9]* of [0-9]* on \([^:]*\):.*/\1/p' "$out/preflight.txt" | sort -u
}

# see_ranks - all of them, each time: a job that goes on may be on other nodes.  Where the launcher does not
# say where rank 0 is, and there are several hosts, the ranks are told.
see_ranks() {
    local seen host
    start "$here/rank_info.sh" >"$out/preflight.txt" 2>&1 || {
        tail -n 3 "$out/preflight.txt" >&2
        die "the launcher failed, see $out/preflight.txt"
    }
    seen=$(grep -o 'zipccl-rank [0-9]* of [0-9]*' "$out/preflight.txt" | sort -u | grep -c " of $ranks\$" || true)
    [ "$seen" -eq "$local_ranks" ] || die "preflight: $seen of $local_ranks ranks seen, each with \"of $ranks\"; see $out/preflight.txt"
    [ "$(hosts | wc -l)" -gt 1 ] && grep -q '; rank 0 unknown$' "$out/preflight.txt" || return 0
    host=$(sed -n 's/.*zipccl-rank 0 of [0-9]* on \([^:]*\):.*/\1/p' "$out/preflight.txt" | head -n 1)
    master=(env "MASTER_ADDR=$host" "MASTER_PORT=$port")
}

preflight() {
    local op
    grep -h '^.*zipccl-rank' "$out/preflight.txt" | sort -u -V
    [ "$(grep -o 'GPUs [^;]*' "$out/preflight.txt" | sort -u | wc -l)" -eq 1 ] ||
        echo "run.sh: WARNING: not all ranks see the same GPUs" >&2
    ! grep -q 'GPUs none seen' "$out/preflight.txt" ||
        echo "run.sh: WARNING: a rank sees no GPU" >&2
    start "$here/rank_info.sh" gpus >"$out/preflight.gpus.txt" 2>&1 || true
    [ -s "$out/preflight.gpus.txt" ] || rm "$out/preflight.gpus.txt"
    for op in all_gather all_reduce alltoall; do
        NCCL_DEBUG=VERSION start "$program" perf $op --on nccl -b 1M -e 1M -n 2 -w 1 -c 1 --mode native,compressed \
            "${options[@]}" >"$out/preflight.$op.txt" 2>&1 || {
            tail -n 5 "$out/preflight.$op.txt" >&2
            die "preflight: $op failed, see $out/preflight.$op.txt"
        }
        # Another node has the table where only some of the ranks are of this one.
        grep -q 'Out of bounds values : 0 OK' "$out/preflight.$op.txt" ||
            { [ "$local_ranks" -lt "$ranks" ] && ! grep -q 'Out of bounds' "$out/preflight.$op.txt"; } ||
            die "preflight: $op: wrong bits, see $out/preflight.$op.txt"
        echo "bits of $op, plain and compressed: right"
    done
    grep -ho 'NCCL version [^ ]*' "$out"/preflight.*.txt | sort -u || true
    printf '{"schema": {"name": "zipccl.preflight", "version": 1}, "ranks": %s, "one_node_groups_of": %s}\n' \
        "$ranks" "${group:-null}" >"$out/preflight.partial"
    mv "$out/preflight.partial" "$out/preflight.json"
}

measure() {
    local range=(-b 64K -e 1G -f 4 -n 20 -w 5)
    [ -z "$tiny" ] || range=(-b 64K -e 64K -n 2 -w 1)
    rm -f "$out/$1.partial"
    start "$program" perf "$1" --on nccl "${range[@]}" -c 1 --mode native,raw,compressed,adaptive \
        "${options[@]}" -J "$out/$1.partial" >"$out/$1.txt" 2>&1 || return 1
    keep "$1"
}

replay() {
    local trace=${1#replay-} fewer=() steps=(-n 5 -w 40)
    [ "$ranks" -eq 64 ] || fewer=(--ranks "$ranks")
    [ -z "$tiny" ] || trace=moe4 steps=(-n 1 -w 0)
    rm -f "$out/$1.partial"
    start "$program" replay "$root/traces/samples/$trace" --on nccl --gaps sleep "${steps[@]}" "${fewer[@]}" "${options[@]}" \
        -J "$out/$1.partial" >"$out/$1.txt" 2>&1 || return 1
    keep "$1"
}

failed=0 left=0 seen=''
for entry in $stages; do
    is_wanted "${entry%:*}" && fits "${entry%:*}" && ! is_done "${entry%:*}" || continue
    left=$((left + ${entry#*:}))
done
[ $left -eq 0 ] || echo "to do: about $left min (estimated for 64 GPUs)"
for entry in $stages; do
    stage=${entry%:*}
    is_wanted "$stage" || continue
    is_done "$stage" && echo "$stage: done before" && continue
    fits "$stage" || { echo "$stage: left out: its trace of 64 ranks does not go to $ranks" && continue; }
    echo "$stage: about ${entry#*:} min (estimated) ..."
    began=$SECONDS
    if [ -z "$seen" ]; then
        see_ranks
        seen=1
    fi
    case $stage in
    preflight) preflight ;;
    replay-*) replay "$stage" || failed=1 ;;
    *) measure "$stage" || failed=1 ;;
    esac
    if is_done "$stage"; then
        echo "$stage: $((SECONDS - began)) s"
    else
        echo "$stage: FAILED: $(tail -n 2 "$out/$stage.txt" | head -c 400)" >&2
    fi
done
[ $failed -eq 0 ] || { echo "run.sh: a stage failed; run it again to go on" >&2 && exit 1; }
printf 'all in %s; pack it: zipccl bundle %q/*.json %q/*.txt -o real_gpu.tar.gz\n' "$out" "$out" "$out"
