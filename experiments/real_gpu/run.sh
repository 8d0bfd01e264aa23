#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh - the validation on real GPUs, stage by stage; stopped and started again it goes on
#
# run.sh -n RANKS --launch 'COMMAND...' [-o DIR] [--one-node GROUP] [--program FILE] [--cluster FILE]
#        [--stages LIST] [--local N] [--tiny] [--list]
#
#   -n RANKS            ranks, one a GPU
#   --launch COMMAND    what starts them, program and arguments follow: 'mpirun -np 64', 'srun -n 64',
#                       'torchrun --nnodes 8 --nproc-per-node 8 ... --no-python'; 'local' starts
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
while [ $# -gt 0 ]; do
    case $1 in
    -n) ranks=${2:?-n needs a number} && shift 2 ;;
    --launch) launch=${2:?--launch needs a command} && shift 2 ;;
    -o) out=${2:?-o needs a folder} && shift 2 ;;
    --one-node) group=${2:?--one-node needs a number} && shift 2 ;;
    --program) program=${2:?--program needs a file} && shift 2 ;;
    --cluster) cluster=(--cluster "${2:?--cluster needs a name or a file}") && shift 2 ;;
    --stages) only=${2:?--stages needs names} && shift 2 ;;
    --local) local_ranks=${2:?--local needs a number} && shift 2 ;;
    --tiny) tiny=1 && shift ;;
    --list) list=1 && shift ;;
    -h | --help) sed -n '4,21s/^# \{0,1\}//p' "$0" && exit 0 ;;
    *) die "unknown argument '$1'; --help shows how" ;;
    esac
done

# Stage and its minutes on 64 GPUs: estimates, not measured on GPUs yet.
stages="preflight:1 all_gather:6 reduce_scatter:8 all_reduce:8 alltoall:6 alltoallv:8 broadcast:4 sendrecv:4 replay-moe64:15 replay-llama2-7b-fsdp64:20"
total=0
for stage in $stages; do
    total=$((total + ${stage#*:}))
    case ",$only," in ,, | *",${stage%:*},"*) ;; *) continue ;; esac
    [ -z "$list" ] || echo "${stage%:*}  ${stage#*:} min"
done
[ -z "$list" ] || { echo "all: $total min (estimated, not run on GPUs yet)" && exit 0; }
for stage in ${only//,/ }; do
    case " $stages" in *" $stage:"*) ;; *) die "no stage '$stage'; --list names them" ;; esac
done
case $ranks in '' | *[!0-9]* | 0) die "-n '$ranks': expected the number of ranks" ;; esac
local_ranks=${local_ranks:-$ranks}
[ -n "$launch" ] || die "--launch says what starts the ranks; --help shows how"
for place in build-gpu build; do
    [ -n "$program" ] || [ ! -x "$root/$place/zipccl-perf-nccl" ] || program=$root/$place/zipccl-perf-nccl
done
[ -x "$program" ] || die "no zipccl-perf-nccl: cmake --preset gpu && cmake --build build-gpu, or --program"
mkdir -p "$out"
out=$(cd "$out" && pwd)

# same_settings - the results of a folder are of one set of settings, kept in it
same_settings() {
    local file=$out/settings.txt now key value kept
    now=$(printf '%s\n' "-n $ranks" "--one-node ${group:-none}" "--cluster ${cluster[1]:-none}" "--tiny ${tiny:-0}")
    if [ ! -s "$file" ]; then
        printf '%s\n' "$now" >"$file.$$" && mv "$file.$$" "$file"
        return
    fi
    while read -r key value; do
        kept=$(sed -n "s/^$key //p" "$file")
        [ "$kept" = "$value" ] ||
            die "$file: $key $kept, now $key $value: results of other settings are in there; name another folder with -o"
    done <<<"$now"
}
options=("${cluster[@]}")
if [ -n "$group" ]; then
    [ $((ranks % group)) -eq 0 ] || die "--one-node $group does not divide $ranks ranks"
    export NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1
    options+=(--ranks-per-node "$group")
fi
same_settings

# start PROGRAM ARGUMENT... - on all ranks; output of all together
start() {
    if [ "$launch" != local ]; then
        # shellcheck disable=SC2086
        $launch "$@"
        return
    fi
    local r pids=() code=0
    for r in $(seq $((ranks - 1)) -1 0); do
        RANK=$r WORLD_SIZE=$ranks LOCAL_RANK=$r MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "$@" &
        pids+=($!)
    done
    for r in "${pids[@]}"; do
        wait "$r" || code=$?
    done
    port=$((port + 1))
    return $code
}
port=$((20000 + $$ % 20000))

# True on the node that prints and writes.
has_rank_0() {
    grep -q 'zipccl-rank 0 of' "$out/preflight.txt" 2>/dev/null || [ "$local_ranks" -eq "$ranks" ]
}

# is_done STAGE - its result is there, and not empty
is_done() {
    [ -s "$out/$1.json" ] || [ -s "$out/$1.elsewhere" ]
}

# keep STAGE - its result, or where rank 0 is another node's, a note that it ran
keep() {
    if has_rank_0; then
        [ -s "$out/$1.partial" ] || return 1
        mv "$out/$1.partial" "$out/$1.json"
    else
        echo "run; the result is on the node of rank 0" >"$out/$1.elsewhere"
    fi
}

preflight() {
    start "$here/rank_info.sh" >"$out/preflight.txt" || die "preflight: the launcher failed, see $out/preflight.txt"
    grep -h '^.*zipccl-rank' "$out/preflight.txt" | sort -u -V
    local seen
    seen=$(grep -o 'zipccl-rank [0-9]* of [0-9]*' "$out/preflight.txt" | sort -u | grep -c " of $ranks\$" || true)
    [ "$seen" -eq "$local_ranks" ] || die "preflight: $seen of $local_ranks ranks seen, each with \"of $ranks\"; see $out/preflight.txt"
    [ "$(grep -o 'GPUs [^;]*' "$out/preflight.txt" | sort -u | wc -l)" -eq 1 ] ||
        echo "run.sh: WARNING: not all ranks see the same GPUs" >&2
    ! grep -q 'GPUs none seen' "$out/preflight.txt" ||
        echo "run.sh: WARNING: a rank sees no GPU" >&2
    local op
    for op in all_gather all_reduce alltoall; do
        NCCL_DEBUG=VERSION start "$program" perf $op --on nccl -b 1M -e 1M -n 2 -w 1 -c 1 --mode native,compressed \
            "${options[@]}" >"$out/preflight.$op.txt" 2>&1 || {
            tail -n 5 "$out/preflight.$op.txt" >&2
            die "preflight: $op failed"
        }
        ! has_rank_0 || grep -q 'Out of bounds values : 0 OK' "$out/preflight.$op.txt" || die "preflight: $op: wrong bits, see $out/preflight.$op.txt"
        echo "bits of $op, plain and compressed: right"
    done
    grep -ho 'NCCL version [^ ]*' "$out"/preflight.*.txt | sort -u || true
    [ ! -s "$out/preflight.json" ] || return 0
    printf '{"schema": {"name": "zipccl.preflight", "version": 1}, "ranks": %s, "one_node_groups_of": %s}\n' \
        "$ranks" "${group:-null}" >"$out/preflight.json"
}

measure() {
    local range=(-b 64K -e 1G -f 4 -n 20 -w 5)
    [ -z "$tiny" ] || range=(-b 64K -e 64K -n 2 -w 1)
    start "$program" perf "$1" --on nccl "${range[@]}" -c 1 --mode native,raw,compressed,adaptive \
        "${options[@]}" -J "$out/$1.partial" >"$out/$1.txt" 2>&1 || return 1
    keep "$1"
}

replay() {
    local trace=${1#replay-}
    [ -z "$tiny" ] || trace=moe4
    start "$program" replay "$root/traces/samples/$trace" --on nccl --gaps sleep -n 5 -w 40 "${options[@]}" \
        -J "$out/$1.partial" >"$out/$1.txt" 2>&1 || return 1
    keep "$1"
}

failed=0
for entry in $stages; do
    stage=${entry%:*}
    case ",$only," in ,, | *",$stage,"*) ;; *) continue ;; esac
    if is_done "$stage"; then
        echo "$stage: done before"
        continue
    fi
    case $stage in
    replay-*) [ -n "$tiny" ] || [ "$ranks" -eq 64 ] || {
        echo "$stage: left out: its trace has 64 ranks, here are $ranks" && continue
    } ;;
    esac
    echo "$stage: about ${entry#*:} min (estimated) ..."
    began=$SECONDS
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
