#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_cli_formats.sh - AICB, execution traces and Chakra at the command line, in and out
#
# test_cli_formats.sh BUILD    run from the root of the source tree
. "$(dirname "$0")/cli_helpers.sh"

columns='comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count'
{
    printf '[rank0 ~ rank7]\n%s\n' "$columns"
    printf 'CommType.computation,None,None,((2048, 1, 512), (512, 256)),forward.x,None,None,,1.5,None,None,1\n'
    printf 'CommType.all_gather,CommGroup.dp_group,8,134217728,forward.x,None,None,,None,None,None,1\n'
} >calls.csv

# et RANK - an all-to-all and a sum, as PyTorch's execution trace has them
et() {
    printf '{"schema":"1.0.3-chakra.0.0.4","nodes":[{"id":5,"name":"record_param_comms","inputs":{"values":[[4,5,0,8388608,2,"cuda:0"],1,["0","ep"],%s,"all_to_allv",[8388608,0],[8388608,0],0,1,2],"types":["Tensor(c10::BFloat16)"]},"attrs":[]}]}\n' "$1"
}
mkdir step
et 0 >step/rank0.json
et 1 | gzip -c >step/rank1.json.gz
printf '{"schema":"3.0","nodes":[]}\n' >new.json
printf '# nThread 1 nGpus 8 minBytes 8 maxBytes 8\n' >all_reduce.log

works "aicb" "$zipccl" trace import --help
works "list of calls of AICB" "$zipccl" trace import --help
works "import   aicb: 2 rows" "$zipccl" trace import calls.csv -o calls.jsonl
works "SIMULATED" "$zipccl" replay calls.csv -c laptop -f t2 --mode raw
works "pytorch-et: 2 nodes" "$zipccl" trace import step -o step.jsonl
works "alltoallv" "$zipccl" trace info step.jsonl
works "SIMULATED" "$zipccl" replay step -c laptop --set nodes=1 --set gpus_per_node=2 -f t2 --mode raw
refuses "expected 1.0.1 to 1.1.1" "$zipccl" trace import new.json -o x.jsonl
refuses "zipccl cluster fit" "$zipccl" trace import all_reduce.log -o x.jsonl
refuses "zipccl cluster fit" "$zipccl" replay all_reduce.log -c laptop

# Out as Chakra's files, and back in: the same step.
mkdir ranks
works "64 files" "$zipccl" trace export chakra "$moe" -o ranks/moe
works "" "$zipccl" trace import ranks -o back.jsonl
works "" "$zipccl" replay "$moe" -c "$a100" --ratio 1.4 -f t0 -q -J there.json
works "" "$zipccl" replay back.jsonl -c "$a100" --ratio 1.4 -f t0 -q -J back.json
# steps FILE - its times, to ten digits
steps() {
    grep -o '"step_time_[a-z]*_s": *[0-9][0-9.e-]*' "$1" | awk '{ printf "%s %.10g\n", $1, $2 }'
}
steps there.json >there
steps back.json >back
[ "$(wc -l <there)" -ge 3 ] || failed "no step times in there.json"
cmp there back || failed "the step that came back takes another time: $(cat there back)"
works "--output" "$zipccl" trace export --help
refuses "expected the format 'chakra'" "$zipccl" trace export goal "$moe" -o x
refuses "name a trace" "$zipccl" trace export chakra
refuses "no -o PREFIX" "$zipccl" trace export chakra "$moe"
refuses "none/deep/x.0.et: No such" "$zipccl" trace export chakra "$moe" -o none/deep/x
works "64 files" "$zipccl" trace export chakra "$moe" -o new_folder/x
[ -f new_folder/x.63.et ] || failed "no files in a new folder"
mkdir new_folder/y.9.et
refuses "new_folder/y.9.et: a folder" "$zipccl" trace export chakra "$moe" -o new_folder/y
[ ! -e new_folder/y.0.et ] || failed "half an export"
refuses "groups alone" "$zipccl" trace import ranks/moe.comm_group.json -o x.jsonl

# A trace of other ranks: the data-parallel group grows, the experts' one stays.
works "dp: 64 members become 128" "$zipccl" trace rescale "$moe" --ranks 128 -o moe128.jsonl
works "ep: 64 members, as before, in 2 groups" "$zipccl" trace rescale "$moe" --ranks 128 -o moe128.jsonl
works "ranks     128" "$zipccl" trace info moe128.jsonl
works "19 found, 0 missing" "$zipccl" trace info moe128.jsonl
works "simulated" "$zipccl" replay moe128.jsonl -c "$a100" --set nodes=16 -f t0 --ratio 1.4
# The same on the way into a replay, which says so and leaves nothing behind.
"$zipccl" replay moe128.jsonl -c "$a100" --set nodes=16 -f t0 --ratio 1.4 -q --csv one.csv 2>err || failed "$(cat err)"
"$zipccl" replay "$moe" --ranks 128 -c "$a100" --set nodes=16 -f t0 --ratio 1.4 -q --csv other.csv 2>err || failed "$(cat err)"
cmp -s one.csv other.csv || failed "replay --ranks differs: $(diff one.csv other.csv | head -4)"
works "rescaled from 64 to 128 ranks" "$zipccl" replay "$moe" --ranks 128 -c "$a100" --set nodes=16 -f t0 --ratio 1.4
refuses "64 ranks to 96" "$zipccl" replay "$moe" --ranks 96 -c "$a100" --set nodes=12 -f t0
works "128 to 64 ranks" "$zipccl" trace rescale moe128.jsonl --ranks 64 -o moe64.jsonl
# The same by the size of a group; also of what is imported on the way.
works "dp: 64 members become 128" "$zipccl" trace rescale "$moe" --map dp=128 --map ep=64 -o map128.jsonl
cmp moe128.jsonl map128.jsonl || failed "--map dp=128 is not --ranks 128"
works "64 to 128 ranks" "$zipccl" replay "$moe" --map dp=128 -c "$a100" --set nodes=16 -f t0 --ratio 1.4
works "64 to 128 ranks" "$zipccl" replay ranks --map world=128 -c "$a100" --set nodes=16 -f t0 --ratio 1.4
works "ep: 64 members become 128" "$zipccl" trace rescale "$moe" --map ep=128 -o ep128.jsonl
works "dp: 64 members become 128" "$zipccl" trace rescale "$moe" --map ep=128 -o ep128.jsonl
refuses "makes 128 ranks, expected 256" "$zipccl" trace rescale "$moe" --ranks 256 --map dp=128 -o x.jsonl
refuses "expected NAME=SIZE" "$zipccl" replay "$moe" --map dp -c "$a100" -f t0
refuses "64 ranks to 96" "$zipccl" trace rescale "$moe" --ranks 96 -o x.jsonl
refuses "no such group" "$zipccl" trace rescale "$moe" --ranks 128 --scale tp -o x.jsonl
refuses "expected 1 to 1048576" "$zipccl" trace rescale "$moe" --ranks many -o x.jsonl
refuses "no --ranks N or --map" "$zipccl" trace rescale "$moe" -o x.jsonl
refuses "overwrite" "$zipccl" trace rescale moe64.jsonl --ranks 128 -o moe64.jsonl
# What is of no tool that is known is told so, not as a broken trace.
printf 'num_ranks 2\n\nrank 0 {\n}\n' >tree.goal
refuses "no known format" "$zipccl" replay tree.goal -c "$a100" -f t0
finish
