#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_cli_kineto.sh - files of the PyTorch profiler at the command line
#
# test_cli_kineto.sh BUILD    run from the root of the source tree
. "$(dirname "$0")/cli_helpers.sh"

# kernel NAME STREAM START_US US [ARGUMENTS] - a kernel that is launched as it starts
n=0
kernel() {
    n=$((n + 1))
    printf ',\n{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":9,"ts":%s,"dur":1,"args":{"correlation":%s}}' "$3" $n
    printf ',\n{"ph":"X","cat":"kernel","name":"%s","pid":0,"tid":%s,"ts":%s,"dur":%s,"args":{"stream":%s,"correlation":%s%s}}' \
        "$1" "$2" "$3" "$4" "$2" $n "${5:-}"
}

# rank RANK CALLS_US - 5 ms of compute, an all-gather of 2 x 64 MB, DeepEP's dispatch
rank() {
    printf '{"schemaVersion":1,"distributedInfo":{"backend":"nccl","rank":%s,"world_size":8},"traceEvents":[\n{"ph":"M"}' "$1"
    kernel gemm 7 1000 5000
    kernel 'ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)' 20 6100 "$2" \
        ',"Collective name":"_allgather_base","dtype":"BFloat16","In msg nelems":33554432,"Out msg nelems":268435456,"Group size":8,"Process Group Name":"0","Process Group Description":"fsdp","Process Group Ranks":"[0, 1, 2, 3, 4, 5, 6, 7]"'
    kernel 'void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)' 24 $((6100 + $2)) 4000
    printf ']}\n'
}

mkdir step other folder_without
for r in 0 1 2 3 4 5 6 7; do
    rank $r $((9000 + 100 * r)) | gzip -c >step/rank$r.pt.trace.json.gz
done
rank 3 9000 >one.json
head -c 900 one.json >cut.json
echo '{"schemaVersion":1,"traceEvents":[]}' >other/empty.json
head -c 300 step/rank0.pt.trace.json.gz >cut.json.gz

works "kineto" "$zipccl" trace import --help
works "--dispatch-bytes" "$zipccl" replay --help
works "late ranks" "$zipccl" trace import kineto step -o step.jsonl
works "communication events of which only the time is known (0.004 s)" "$zipccl" trace info step.jsonl
works "all_gather" "$zipccl" trace info step.jsonl
works "7x" "$zipccl" trace import one.json -o one.jsonl.gz
works "DeepEP" gzip -dc one.jsonl.gz

# What is not imported yet can be looked at, one file, the folder, or all files of the ranks by name.
for command in info check; do
    works "late ranks" "$zipccl" trace $command step
    works "PyTorch profiler" "$zipccl" trace $command step/rank*.json.gz
    works "ranks without file" "$zipccl" trace $command one.json
    refuses "cut.json:" "$zipccl" trace $command cut.json
    refuses "unexpected argument" "$zipccl" trace $command step.jsonl one.json
done
refuses "zipccl trace import one.json" "$zipccl" trace rescale one.json --map world=16 -o x.jsonl
refuses "zipccl trace import step" "$zipccl" trace export chakra step -o x
works "one.json: ok" "$zipccl" trace check one.json
works '"ranks": 8' "$zipccl" trace info step -J -
[ "$(head -c 1 out)" = "{" ] || failed "trace info -J - prints more than JSON"
refuses "overwrite" "$zipccl" trace info step -J step/rank3.pt.trace.json.gz
refuses "no known format" "$zipccl" trace info "$tensors"

# The folder is one step; its ratios come from classes of samples, with an interval.
works "DeepEP, HybridEP or NVSHMEM" "$zipccl" replay --help
works "Ratios: the trace has no tensors" "$zipccl" replay step -c laptop -J step.json --html step.html
grep -q 'If all were like the lowest' step.html || failed "no interval in the page"
works "" "$check" step.json import.format=kineto trace.ratio_source_share.class=1 import.ratio_interval.low_class=p2p.pp
works "communication past NCCL" "$zipccl" replay step/rank0.pt.trace.json.gz -c laptop --summary
works "alltoall" "$zipccl" replay step -c laptop --dispatch-bytes 64MB
works "SIMULATED" "$zipccl" replay step -c laptop -f t2 --mode raw
works "alltoall" "$zipccl" replay step -c laptop --dispatch-bytes 64000000
# A given ratio, or samples of one's own, need no interval.
works "" "$zipccl" replay step -c laptop --ratio 1.4 -q -J given.json
works "" "$check" given.json import.ratio_interval=null
works "" "$zipccl" replay step -c laptop --samples "$tensors" -q -J own.json
works "" "$check" own.json import.ratio_interval=null trace.ratio_source_share.class=1
# The trace that was written replays as the files do.
works "" "$zipccl" replay step.jsonl -c laptop -q -J again.json
# So do the files of its folder by name, as one step.
works "" "$zipccl" replay step/rank*.json.gz -c laptop -q -J named.json
works "" cmp step.json named.json
# A result does not take the place of a file of the folder, but of a result that is there.
cp -r step inner
refuses "overwrite" "$zipccl" replay inner -c laptop -q -J inner/rank3.pt.trace.json.gz
works "" "$zipccl" replay inner -c laptop -q -f t0 -J inner/result.json
works "" "$zipccl" replay inner -c laptop -q -f t0 -J inner/result.json
# As many as a large step has; here the same rank again and again.
refuses "expected another than that of" "$zipccl" replay $(printf "step/rank0.pt.trace.json.gz %.0s" {1..70}) -c laptop
for file in step again; do
    works "" "$check" $file.json totals.calls=1
done

refuses "strict" "$zipccl" replay step/rank0.pt.trace.json.gz -c laptop --strict
refuses "cut.json:" "$zipccl" trace import cut.json -o x.jsonl
refuses "cut" "$zipccl" trace import cut.json.gz -o x.jsonl
tar -czf step.tar.gz step
# An archive is as its folder.
works "import" "$zipccl" trace import step.tar.gz -o packed.jsonl
works "" cmp step.jsonl packed.jsonl
works "SIMULATED" "$zipccl" replay step.tar.gz -c laptop -f t2 --mode raw
tar -czf none.tar.gz folder_without
refuses "a tar archive without a file of a known format" "$zipccl" trace import none.tar.gz -o x.jsonl
refuses "a tar archive without a file of a known format" "$zipccl" replay none.tar.gz -c laptop
refuses "none of them a kernel" "$zipccl" replay other -c laptop
refuses "docs/capture.md" "$zipccl" replay other -c laptop
# JSON of something else beside the files is counted, a broken file is not passed over.
cp -r step beside && echo '{"model_type": "llama"}' >beside/config.json
works "config.json" "$zipccl" trace import beside -o x.jsonl --name step
works "" cmp step.jsonl x.jsonl
rm x.jsonl
: >beside/rank9.json
refuses "rank9.json" "$zipccl" trace import beside -o x.jsonl
printf 'attention_column -1 1\n' >beside/rank9.json
refuses "rank9.json" "$zipccl" replay beside -c laptop
# Also where it is the first by name, or a rank of which only the start was written.
mv beside/rank9.json beside/aa.json
refuses "beside/aa.json: " "$zipccl" trace info beside
rm beside/aa.json
printf '{"schemaVersion": 1, "dev' >beside/rank9.json
refuses "beside/rank9.json" "$zipccl" trace check beside
echo '["list"]' >beside/rank9.json
works "skipped" "$zipccl" trace check beside
mkdir runs.tar.d && cp step/rank[0-3]* runs.tar.d
works "4 of 8 ranks" "$zipccl" trace info runs.tar.d/rank*
iconv -t UTF-16 one.json >wide.json
refuses "UTF-16" "$zipccl" replay wide.json -c laptop
# Files of four ranks that do not tell their world are those of four, whatever the cluster.
mkdir four
for r in 0 1 2 3; do
    rank $r 9000 | sed -e 's/"distributedInfo":{[^}]*},//' -e 's/"Group size":8,//' \
        -e 's/,"Process Group Ranks":"[^"]*"//' >four/rank$r.json
done
refuses "has 4 ranks" "$zipccl" replay four -c a100-8x8-200g
refuses "--set nodes=1 --set gpus_per_node=4 to give it 4" "$zipccl" replay four -c a100-8x8-200g
refuses "gpus_per_node=4 --set nic.per_node=4 to give it 4" "$zipccl" replay four -c h100-8x8-400g
rm four/rank1.json
works "ranks without file (1x)" "$zipccl" trace info four
works "taken to be 4" "$zipccl" replay four -c a100-8x8-200g -f t0 --set nodes=1 --set gpus_per_node=4
refuses "expected one or more" "$zipccl" trace import kineto folder_without -o x.jsonl
refuses "files to import (.json, .json.gz, .et or .et.gz)" "$zipccl" replay folder_without -c laptop
refuses "expected another than that of" "$zipccl" trace import one.json step -o x.jsonl
refuses "overwrite" "$zipccl" trace import one.json -o one.json
refuses "--dispatch-bytes" "$zipccl" replay step -c laptop --dispatch-bytes 0
refuses "expected a whole number" "$zipccl" replay step -c laptop --dispatch-bytes 1.5
refuses "--dispatch-bytes is for files to import" "$zipccl" replay step.jsonl -c laptop --dispatch-bytes 8kB
refuses "nodes=1" "$zipccl" replay step -c a100-8x8-200g

# What the replay draws is one file for all ranks, and says so.
works "" "$zipccl" replay step -c laptop -q --perfetto drawn.json
refuses "a second GPU" "$zipccl" trace import drawn.json -o x.jsonl

finish
