#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_cli.sh - the programs at the command line: what works, and how each error is told
#
# test_cli.sh BUILD    run from the root of the source tree
. "$(dirname "$0")/cli_helpers.sh"

# ---- small traces, good and broken
header='{"format": "zipccl-trace", "version": 1, "name": "mini", "provenance": "generated", "generator": "test", "nranks": 8, "streams": ["compute", "comm"], "groups": [{"name": "world", "size": 8}]'
compute='{"kind": "compute", "id": 1, "duration_s": 0.01}'
call='{"kind": "collective", "id": 2, "stream": "comm", "op": "all_gather", "group": "world", "dtype": "bf16", "count": 1048576, "deps": [1]'
end='{"kind": "end", "events": 2}'
printf '%s\n' "$header}" "$compute" "$call}" "$end" >mini.jsonl
printf '%s\n' "$header}" "$compute" '{"kind": "end", "events": 1}' >silent.jsonl
printf '%s\n' "$header}" "$compute" "$call}" >cut.jsonl
printf '%s\n' "$header}" "$compute" '{"kind": "collective"' "$end" >garbled.jsonl
printf '%s\n' "$header, \"samples\": \"none.safetensors\"}" "$compute" "$call, \"samples\": [\"w\"]}" "$end" >nosamples.jsonl
printf '%s\n' "$header, \"samples\": \"bad.safetensors\"}" "$compute" "$call, \"samples\": [\"w\"]}" "$end" >badsamples.jsonl
printf '%s\n' "$header, \"samples\": \"short.safetensors\"}" "$compute" "$call, \"samples\": [\"w\"]}" "$end" >shortsamples.jsonl
printf '%s\n' "$header, \"recorded_step_s\": 0.5}" "$compute" "$call}" "$end" >recorded.jsonl
printf 'this is no tensor file' >bad.safetensors
: >short.safetensors
: >empty.jsonl
gzip -c mini.jsonl >mini.jsonl.gz
head -c 100 mini.jsonl.gz >cut.jsonl.gz
mkdir folder
cp "$OLDPWD/models/clusters/laptop.yaml" copy.yaml
sed 's/24.2GBps/24.2/' "$OLDPWD/models/clusters/$a100.yaml" >nounit.yaml
sed 's/24.2GBps/nanGBps/' "$OLDPWD/models/clusters/$a100.yaml" >nan.yaml
sed 's/^nic:/nics:/' "$OLDPWD/models/clusters/$a100.yaml" >badkey.yaml
printf 'a: [' >broken.yaml
printf '' >empty.yaml


# ---- a SimAI workload: two stages, calls of 0 bytes; one that names no world; broken ones
simai='HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2'
layers='embedding_layer -1 100000 ALLREDUCE 4194304 100000 NONE 0 50000 NONE 0 100
attention_column -1 100000 ALLGATHER 4194304 100000 REDUCESCATTER 0 50000 ALLREDUCE 2097152 100'
printf '%s\n' "$simai ep: 1 pp: 2 vpp: 1 ga: 1 all_gpus: 8 checkpoints: 0 checkpoint_initiates: 0 pp_comm: 1048576" 2 "$layers" >stages.txt
printf '%s\n' "$simai" 2 "$layers" >worldless.txt
gzip -c worldless.txt >worldless.txt.gz
printf '%s\n' "$simai" 3 "$layers" >cut.txt
printf '%s\n' "$simai" 1 'x -1 1 NONE 0 1 NONE 0 1 NONE 0 1' >mute.txt
printf '%s\n' MICRO 1 'x -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 16777216 1' >micro.txt
echo 'some other text' >other.txt

# ---- what works
works "Usage: zipccl COMMAND" "$zipccl" --help
works "Usage: zipccl COMMAND" "$zipccl" help
works "--cluster" "$zipccl" replay --help
works "--cluster" "$zipccl" help replay
works "Examples:" "$sim" replay --help
works "Usage: zipccl-sim" "$sim" --help
works "info TRACE" "$zipccl" trace --help
works "list" "$zipccl" cluster --help
works "zipccl 0." "$zipccl" version
works "compiler" "$zipccl" version --build
works "zipccl-sim 0." "$sim" --version
works "$a100" "$zipccl" cluster list
works "nic.rate" "$zipccl" cluster show "$a100"
works "800Gbps" "$zipccl" cluster show "$a100" --set nic.rate=800Gbps
works "nic.rate	800Gbps	--set" "$zipccl" cluster plain "$a100" --set nic.rate=800Gbps
"$zipccl" cluster plain "$a100" >plain.txt
works "" "$zipccl" cluster plain ./plain.txt
cmp -s out plain.txt || failed "a plain cluster, read and printed: $(diff out plain.txt | head -4)"
works "ok" "$zipccl" cluster check ./plain.txt
works "ok" "$zipccl" cluster check "$OLDPWD/models/clusters/$a100.yaml"
works "mini" "$zipccl" trace info mini.jsonl
works "moe64" "$zipccl" trace info "$moe" -J info.json
works "zipccl codec COMMAND" "$zipccl" codec --help
refuses "did you mean 'bench'" "$zipccl" codec bnch
refuses "found nothing" "$zipccl" codec
works "Examples:" "$zipccl" codec bench --help
works "#wrong" "$zipccl" codec bench -b 1K -e 4K -f 2 -n 2 -w 0 -d all --input mixture -J bench.json --csv bench.csv
grep -q '"memcpy_GBps"' bench.json || failed "no memcpy_GBps in the JSON of codec bench"
grep -q '^zipccl,scalar,bf16,mixture,' bench.csv || failed "no row of the scalar codec in the CSV of codec bench"
works '"rows"' "$zipccl" codec bench -b 100 -e 300 -i 100 -n 1 --isa scalar --peers none -J -
works "wrong elements: 0" "$zipccl" codec bench --input "$tensors" -n 1 --isa best --peers none
works "2 threads of zipccl" "$zipccl" codec bench -t 2 -b 64K -e 64K -n 1
refuses "needs one thread" "$zipccl" codec bench -t 2 --peers all
refuses "-t '0': expected a number from 1" "$zipccl" codec bench -t 0
refuses "-g is not offered" "$zipccl" codec bench -g 2
refuses "-o of nccl-tests is not offered" "$zipccl" codec bench -o sum
refuses "every row is checked" "$zipccl" codec bench --check 0
refuses "exclude each other" "$zipccl" codec bench -f 2 -i 4K
refuses "-b is more than -e" "$zipccl" codec bench -b 1M -e 64K
refuses "expected a size" "$zipccl" codec bench -b 1X
refuses "expected a size" "$zipccl" codec bench -e 2G
refuses "-n '0': expected a number from 1" "$zipccl" codec bench -n 0
refuses "-d 'int8'" "$zipccl" codec bench -d int8
refuses "did you mean 'gauss'" "$zipccl" codec bench --input gaus
refuses "expected all, best" "$zipccl" codec bench --isa sse
refuses "is given twice" "$zipccl" codec bench -b 1K -b 2K
refuses "expected size, hot or cold" "$zipccl" codec bench --cache warm
refuses "unexpected argument 'x.safetensors'" "$zipccl" codec bench x.safetensors
refuses "missing.safetensors" "$zipccl" codec bench --input missing.safetensors
refuses "two outputs have the same path" "$zipccl" codec bench -J same --csv ./same
cp "$tensors" own.safetensors
refuses "must not overwrite an input" "$zipccl" codec bench --input own.safetensors -J own.safetensors
if "$zipccl" codec --help | grep -q '^  stat '; then
    works "alltoall.dispatch.layer2.step299" "$zipccl" codec stat "$tensors" -J stat.json
    grep -q '"total"' stat.json || failed "no total in the JSON of codec stat"
    works "entropy" "$zipccl" codec stat --help
    refuses "bad.safetensors" "$zipccl" codec stat bad.safetensors -J x.json
    refuses "missing.safetensors" "$zipccl" codec stat missing.safetensors
    refuses "name a .safetensors file" "$zipccl" codec stat
    refuses "did you mean 'stat'" "$zipccl" codec stats bad.safetensors
    refuses "must not overwrite an input" "$zipccl" codec stat own.safetensors -J own.safetensors
fi

works "SIMULATED: tier T1" "$zipccl" replay mini.jsonl --cluster laptop -J mini.json --csv mini.csv --html mini.html
works "" "$check" mini.json kind=simulated totals.step_time_recorded_s=null fidelity=t1
works "SIMULATED: tier T0" "$zipccl" replay mini.jsonl.gz -c laptop --fidelity t0 -J t0.json
works "" "$check" t0.json fidelity=t0
works "SIMULATED: tier T2" "$zipccl" replay mini.jsonl -c laptop --fidelity t2 -J t2.json
works "" "$check" t2.json fidelity=t2
works "" "$zipccl" replay mini.jsonl -c laptop --quiet -J again.json
cmp -s mini.json again.json || failed "two runs of one replay differ"
[ ! -s out ] || failed "--quiet prints: $(cat out)"
works "step (simulated)" "$zipccl" replay mini.jsonl -c laptop --summary
works "all_gather" "$zipccl" replay mini.jsonl recorded.jsonl -c laptop --fidelity t0
works "baseline that is off" "$zipccl" replay recorded.jsonl -c laptop
works "all_gather" "$zipccl" replay mini.jsonl -c laptop --mode raw -J raw.json
works "" "$check" raw.json totals.step_time_adaptive_s=null totals.step_time_compressed_s=null \
    totals.end_to_end_speedup=null
works "all_gather" "$zipccl" replay mini.jsonl -c laptop --mode compressed -J compressed.json
works "" "$check" compressed.json totals.step_time_adaptive_s=null
works "all_gather" "$zipccl" replay mini.jsonl -c laptop --mode adaptive -J adaptive.json
works "" "$check" adaptive.json totals.step_time_compressed_s=null
works "all_gather" "$zipccl" replay mini.jsonl -c laptop --steps-only -J steps.json
works "" "$check" steps.json totals.step_time_recorded_s=null
grep -q 'How sure\|Break-even' out && failed "--steps-only asks how sure: $(grep 'How sure\|Break-even' out)"
[ "$(grep step_time mini.json | head -4)" = "$(grep step_time steps.json | head -4)" ] || failed "--steps-only changes the steps"
works "given" "$zipccl" replay mini.jsonl -c laptop --ratio 1.4 --set nic.rate=2Gbps -J given.json --jobs 1
works "" "$check" given.json ratio=1.4
works "tensors of a small language model" "$zipccl" replay "$moe" -c "$a100" -f t0
works "given" "$zipccl" replay "$moe" -c "$a100" -f t0 --ratio 1.3 -J given.json
works "" "$check" given.json ratio=1.3
works "raw = NCCL's own algorithms (native" "$zipccl" replay "$moe" -c "$a100" -f t0 --mode raw --baseline native -J native.json
works "" "$check" native.json baseline=native
grep '"strategy_raw"' native.json | grep -qv '"native' && failed "a raw plan that is not NCCL's own"
grep -q 'name": "raw"' native.json && grep -A1 'name": "raw"' native.json | grep -q "NCCL's own" ||
    failed "assumptions call raw another plan: $(grep -A1 'name": "raw"' native.json)"
# Adaptive chooses from all plans whatever raw is: with nothing to gain from the codec, the best uncompressed ones.
for baseline in best native; do
    works "SIMULATED" "$zipccl" replay "$moe" -c "$a100" -f t0 --ratio 1 --steps-only --baseline $baseline -J one_$baseline.json
done
[ "$(grep step_time_adaptive one_best.json)" = "$(grep step_time_adaptive one_native.json)" ] &&
    [ "$(grep step_time_raw one_best.json)" != "$(grep step_time_raw one_native.json)" ] ||
    failed "steps by baseline: $(grep step_time one_best.json one_native.json)"
grep -q '"strategy_raw": "raw two-level"' given.json || failed "raw is never one of our plans, so the baselines do not differ"
works "given" "$zipccl" replay mini.jsonl -c laptop --ratio 1.4 --set nic.rate=2Gbps -J given.json
grep -q -- --set given.json || failed "--set is not listed in the result"
grep -q '"given"' given.json || failed "the given ratio is not named in the result"
ls ./*.tmp* >left 2>/dev/null && failed "temporary files are left: $(cat left)"

# An old result survives a failed run, and a good run replaces it.
echo old >old.json
refuses "collective" "$zipccl" replay silent.jsonl -c laptop -J old.json
[ "$(cat old.json)" = old ] || failed "a failed run touched the old result"
works "SIMULATED" "$zipccl" replay mini.jsonl -c laptop -f t0 -J old.json
works "" "$check" old.json

# CSV: the same number of columns in each line; HTML: one page, nothing from outside.
[ "$(awk -F, '{print NF}' mini.csv | sort -u | wc -l)" -eq 1 ] || failed "CSV lines differ in columns"
[ "$(wc -l <mini.csv)" -ge 2 ] || failed "CSV without rows"
grep -qiE 'https?:|src=|href=|@import|url\(' mini.html && failed "the page points outside"
grep -q '</html>' mini.html || failed "the page ends early"
for tag in html head body table thead tbody tr td th svg figure dl h1 h2 p div title; do
    opened=$(grep -oE "<$tag[ >]" mini.html | wc -l)
    closed=$(grep -oE "</$tag>" mini.html | wc -l)
    [ "$opened" -eq "$closed" ] || failed "the page opens $opened <$tag> and closes $closed"
done
grep -qF "$build" mini.json mini.html mini.csv && failed "a result holds a path of this machine"

# ---- report: the page of a result file is that of the replay; of several a table first
works "wrote page.html (page of 1 result)" "$zipccl" report mini.json -o page.html
cmp -s page.html mini.html || failed "the page of mini.json is not that of the replay which wrote it"
works "<h2>Replayed steps</h2>" "$zipccl" report mini.json t0.json native.json --title 'A <b> & "c"' -o -
grep -qF '<title>A &lt;b&gt; &amp; &quot;c&quot;</title>' out || failed "the title: $(grep '<title>' out)"
grep -qF "<td class=\"l\">NCCL&#39;s own</td>" out || failed "the page does not say what raw is"
grep -qiE 'https?:|src=|@import|url\(' out && failed "the page of several points outside"
works "" "$zipccl" report -q mini.json -o page.html
[ ! -s out ] || failed "--quiet prints: $(cat out)"
works "zipccl report step.json -o step.html" "$zipccl" report --help
refuses "no result given" "$zipccl" report -o x.html
refuses "no page given" "$zipccl" report mini.json
refuses "-o is given twice" "$zipccl" report mini.json -o x.html -o y.html
refuses "did you mean 'report'" "$zipccl" reprot mini.json
refuses "missing.json" "$zipccl" report missing.json -o x.html
refuses "overwrite an input" "$zipccl" report t0.json mini.json -o ./mini.json
refuses "none/x.html" "$zipccl" report mini.json -o none/x.html
refuses "mini.csv: " "$zipccl" report mini.csv -o x.html
head -c 700 mini.json >cut.json
sed 's/"version": 1/"version": 9/' mini.json >later.json
echo old >old.html
refuses "cut.json: not JSON" "$zipccl" report mini.json cut.json -o old.html
refuses "later.json: schema zipccl.replay has version 9, expected 1" "$zipccl" report later.json -o old.html
[ "$(cat old.html)" = old ] || failed "a refused file touched the old page"
loses "$zipccl" report mini.json -o -
loses "$zipccl" replay mini.jsonl -c laptop -f t0 --html -

# ---- the bundled traces: each row's adaptive time, and the step's, are the better of the two
for trace in "$moe" "$llama"; do
    works "SIMULATED" "$zipccl" replay "$trace" -c "$a100" -J bundled.json
    works "" "$check" bundled.json adaptive=better
done

# ---- files of other tools
works "simai" "$zipccl" trace import --help
works "--grad-dtype" "$zipccl" trace import --help
works "guess   pipeline" "$zipccl" trace import simai stages.txt -o stages.jsonl
works "all_reduce" "$zipccl" trace info stages.jsonl
works "" "$zipccl" trace import worldless.txt.gz -o folder/w.jsonl.gz --ranks 16 --dtype fp16 --quiet
[ ! -s out ] || failed "trace import --quiet prints: $(cat out)"
works "16" "$zipccl" trace info folder/w.jsonl.gz
works "--ranks sets another" "$zipccl" trace import worldless.txt -o w.jsonl
# Samples are named from the current folder, wherever the trace goes.
cp "$moe/../tensors/moe.safetensors" t.safetensors
works "" "$zipccl" trace import worldless.txt -o folder/s.jsonl --samples t.safetensors
grep -q '"samples":"../t.safetensors"' folder/s.jsonl || failed "samples: $(head -c 600 folder/s.jsonl)"
works "SIMULATED" "$zipccl" replay folder/s.jsonl -c laptop --set nodes=16 -f t0
works "guess   dtype" "$zipccl" replay stages.txt -c laptop -J stages.json --html stages.html
works "" "$check" stages.json import.format=simai
grep -q '<h2>Import (simai)' stages.html || failed "no import in the page"
works "" "$check" mini.json import=null
works "8 are assumed" "$zipccl" replay worldless.txt -c laptop
works "all_reduce" "$zipccl" replay worldless.txt.gz mini.jsonl -c laptop -f t0 --summary
works "" "$zipccl" replay micro.txt -c laptop --set nodes=2048 -f t0 --mode raw
# Ranks that do the same are simulated once at T0; the sums are those of T1.
works "" "$zipccl" replay stages.txt -c laptop -f t0 -q -J stages0.json
for file in stages stages0; do
    works "" "$check" $file.json totals.calls=6
done

refuses "name a file" "$zipccl" trace import
refuses "no file after the format" "$zipccl" trace import simai -o x.jsonl
refuses "neither a format" "$zipccl" trace import smiai stages.txt -o x.jsonl
refuses "no -o" "$zipccl" trace import stages.txt
refuses "twice" "$zipccl" trace import stages.txt -o x.jsonl -o y.jsonl
refuses "one" "$zipccl" trace import stages.txt worldless.txt -o x.jsonl
refuses "missing.txt" "$zipccl" trace import missing.txt -o x.jsonl
refuses "no known format" "$zipccl" trace import other.txt -o x.jsonl
refuses "empty" "$zipccl" trace import empty.jsonl -o x.jsonl
refuses "cut.txt:5" "$zipccl" trace import cut.txt -o x.jsonl
refuses "collective" "$zipccl" trace import mute.txt -o x.jsonl
refuses "strict" "$zipccl" trace import stages.txt -o x.jsonl --strict
refuses "overwrite" "$zipccl" trace import stages.txt -o ./stages.txt
refuses "overwrite" "$zipccl" trace import worldless.txt -o t.safetensors --samples t.safetensors
refuses "none/x.jsonl" "$zipccl" trace import stages.txt -o none/x.jsonl
refuses "folder" "$zipccl" trace import stages.txt -o folder
refuses "regular" "$zipccl" trace import stages.txt -o /dev/null
refuses "none.safetensors" "$zipccl" trace import stages.txt -o x.jsonl --samples none.safetensors
refuses "--dtype" "$zipccl" trace import stages.txt -o x.jsonl --dtype bf17
refuses "--grad-dtype" "$zipccl" trace import stages.txt -o x.jsonl --grad-dtype ''
for n in 0 -1 1.5 x 2000000; do
    refuses "--ranks" "$zipccl" trace import worldless.txt -o x.jsonl --ranks "$n"
done
refuses "multiple" "$zipccl" trace import worldless.txt -o x.jsonl --ranks 3
refuses "--ranks-per-node" "$zipccl" trace import worldless.txt -o x.jsonl --ranks-per-node 0
refuses "--micro-batches" "$zipccl" trace import worldless.txt -o x.jsonl --micro-batches 0
refuses "--samples" "$zipccl" trace import worldless.txt -o x.jsonl --samples ''
refuses "--name" "$zipccl" trace import worldless.txt -o x.jsonl --name ''
refuses "did you mean '--micro-batches'" "$zipccl" trace import worldless.txt -o x.jsonl --micro-batch5 1
refuses "cut.txt:5" "$zipccl" replay cut.txt -c laptop -J x.json
refuses "strict" "$zipccl" replay stages.txt -c laptop --strict
refuses "nodes=4" "$zipccl" replay worldless.txt -c laptop --ranks 16
refuses "--dtype is for files to import" "$zipccl" replay mini.jsonl -c laptop --ranks 8 --dtype bf16
refuses "overwrite" "$zipccl" replay stages.txt -c laptop -J stages.txt
refuses "other.txt" "$zipccl" replay other.txt -c laptop
refuses "--fidelity t0" "$zipccl" replay micro.txt -c laptop --set nodes=2048

# ---- timelines: against the rows and the step of the same replay
for mode in raw compressed adaptive; do
    works "timeline, $mode, all ranks" "$zipccl" replay stages.txt -c laptop -J line.json \
        --perfetto line.trace.json --perfetto-mode $mode
    works "ok" "$timeline" line.trace.json line.json $mode
done
works "timeline, adaptive" "$zipccl" replay "$llama" -c "$a100" -J line.json --perfetto line.json.gz --summary
works "ok" "$timeline" line.json.gz line.json adaptive
gzip -t line.json.gz || failed "line.json.gz is no gzip file"
works "" "$zipccl" replay "$llama" -c "$a100" -q --perfetto again.json.gz
cmp -s line.json.gz again.json.gz || failed "two timelines of one replay differ"
works "timeline, raw" "$zipccl" replay mini.jsonl -c laptop --mode raw --perfetto raw.trace.json
works "timeline, compressed" "$zipccl" replay mini.jsonl -c laptop --mode compressed --perfetto raw.trace.json
works "2 ranks, the first of each node" "$zipccl" replay mini.jsonl -c laptop -J few.json \
    --perfetto few.trace.json --perfetto-ranks 4
works "ok" "$timeline" few.trace.json few.json adaptive
works "1 rank, the first" "$zipccl" replay mini.jsonl -c laptop --perfetto few.trace.json --perfetto-ranks 1
works "ok" "$timeline" few.trace.json few.json adaptive
works "64 ranks, the first of every 32 nodes" "$zipccl" replay micro.txt -c laptop --set nodes=2048 \
    -f t0 -J few.json --perfetto few.trace.json
works "Ratios: the trace has no tensors" "$zipccl" replay stages.txt -c laptop -f t0
works "all ranks" "$zipccl" replay stages.txt -c laptop -f t0 -J line.json --perfetto line.trace.json \
    --perfetto-ranks all
works "ok" "$timeline" line.trace.json line.json adaptive

refuses "--perfetto-mode" "$zipccl" replay mini.jsonl -c laptop --perfetto x.json --perfetto-mode all
refuses "--mode does not run" "$zipccl" replay mini.jsonl -c laptop --mode raw --perfetto x.json --perfetto-mode adaptive
refuses "without --perfetto FILE" "$zipccl" replay mini.jsonl -c laptop --perfetto-mode raw
refuses "without --perfetto FILE" "$zipccl" replay mini.jsonl -c laptop --perfetto-ranks 8
for n in 0 -1 1.5 some ''; do
    refuses "--perfetto-ranks" "$zipccl" replay mini.jsonl -c laptop --perfetto x.json --perfetto-ranks "$n"
done
refuses "twice" "$zipccl" replay mini.jsonl -c laptop --perfetto x.json --perfetto y.json
refuses "one trace" "$zipccl" replay mini.jsonl mini.jsonl -c laptop --perfetto x.json
refuses "none/x.json.gz" "$zipccl" replay mini.jsonl -c laptop --perfetto none/x.json.gz
refuses "folder" "$zipccl" replay mini.jsonl -c laptop --perfetto folder
refuses "overwrite" "$zipccl" replay mini.jsonl -c laptop --perfetto mini.jsonl
refuses "same path" "$zipccl" replay mini.jsonl -c laptop -J x.json --perfetto ./x.json
refuses "empty" "$zipccl" replay mini.jsonl -c laptop --perfetto ''
if [ -w /dev/full ]; then
    refuses "/dev/full" "$zipccl" replay mini.jsonl -c laptop -f t0 --perfetto /dev/full
fi

# ---- usage
refuses "no command" "$zipccl"
refuses "did you mean 'replay'" "$zipccl" reply
refuses "unknown command" "$zipccl" frobnicate
refuses "unknown command" "$zipccl" help frobnicate
refuses "unknown command" "$sim" frobnicate
refuses "no command" "$sim"
refuses "no trace" "$zipccl" replay -c laptop
refuses "no --cluster" "$zipccl" replay mini.jsonl
refuses "did you mean '--html'" "$zipccl" replay mini.jsonl -c laptop --htm1 x
refuses "unknown option '-Z'" "$zipccl" replay mini.jsonl -c laptop -Z
refuses "needs a value" "$zipccl" replay mini.jsonl --cluster
refuses "takes no value" "$zipccl" replay mini.jsonl -c laptop --quiet=1
refuses "--mode" "$zipccl" replay mini.jsonl -c laptop --mode fast
refuses "--fidelity" "$zipccl" replay mini.jsonl -c laptop --fidelity t3
refuses "expected best or native" "$zipccl" replay mini.jsonl -c laptop --baseline nccl
for ratio in 0.5 0 -1 2.5 nan inf 1.4x 1,4 '' 0x1 1e400; do
    refuses "--ratio" "$zipccl" replay mini.jsonl -c laptop --ratio "$ratio"
done
refuses "--jobs" "$zipccl" replay mini.jsonl -c laptop --jobs 0
refuses "--jobs" "$zipccl" replay mini.jsonl -c laptop --jobs 1.5
refuses "exclude" "$zipccl" replay mini.jsonl -c laptop --quiet --summary
refuses "one trace" "$zipccl" replay mini.jsonl mini.jsonl -c laptop -J x.json
refuses "twice" "$zipccl" replay mini.jsonl -c laptop -J x.json -J y.json
refuses "info" "$zipccl" trace
refuses "info" "$zipccl" trace look mini.jsonl
refuses "name a trace" "$zipccl" trace info
refuses "cluster" "$zipccl" cluster
refuses "did you mean" "$zipccl" cluster lst
refuses "version" "$zipccl" version --bulid

# ---- traces and tensors
refuses "missing.jsonl" "$zipccl" replay missing.jsonl -c laptop
refuses "folder" "$zipccl" replay folder -c laptop
refuses "empty.jsonl" "$zipccl" replay empty.jsonl -c laptop
refuses "garbled.jsonl:3" "$zipccl" replay garbled.jsonl -c laptop
refuses "cut.jsonl" "$zipccl" replay cut.jsonl -c laptop
refuses "cut.jsonl.gz" "$zipccl" replay cut.jsonl.gz -c laptop -J x.json --html x.html
refuses "collective" "$zipccl" replay silent.jsonl -c laptop
refuses "none.safetensors" "$zipccl" replay nosamples.jsonl -c laptop
refuses "bad.safetensors" "$zipccl" replay badsamples.jsonl -c laptop
refuses "short.safetensors" "$zipccl" replay shortsamples.jsonl -c laptop
refuses "64" "$zipccl" replay "$moe" -c laptop
refuses "missing.jsonl" "$zipccl" trace info missing.jsonl
refuses "cut.jsonl" "$zipccl" trace info cut.jsonl -J x.json

# ---- clusters
refuses "missing" "$zipccl" replay mini.jsonl -c missing
refuses "missing.yaml" "$zipccl" replay mini.jsonl -c ./missing.yaml
refuses "broken.yaml" "$zipccl" replay mini.jsonl -c broken.yaml
refuses "empty.yaml" "$zipccl" replay mini.jsonl -c empty.yaml
refuses "nic.rate" "$zipccl" replay mini.jsonl -c nounit.yaml
refuses "nic.rate" "$zipccl" replay mini.jsonl -c nan.yaml
refuses "nics" "$zipccl" replay mini.jsonl -c badkey.yaml
refuses "nic.rate" "$zipccl" replay mini.jsonl -c laptop --set nic.rte=1Gbps
for rate in 800 800Gb 800Gbps/s -1Gbps 0Gbps nan inf 1e400Gbps 010Gbps; do
    refuses "nic.rate" "$zipccl" replay mini.jsonl -c laptop --set "nic.rate=$rate"
done
refuses "nic.rate" "$zipccl" replay mini.jsonl -c laptop --set nic.rate
refuses "nodes" "$zipccl" replay mini.jsonl -c laptop --set nodes=0
refuses "nodes" "$zipccl" replay mini.jsonl -c laptop --set nodes=1.5
refuses "missing" "$zipccl" cluster show missing
refuses "nounit.yaml" "$zipccl" cluster check nounit.yaml
refuses "name" "$zipccl" cluster show

# ---- outputs
refuses "none/x.json" "$zipccl" replay mini.jsonl -c laptop -J none/x.json
refuses "folder" "$zipccl" replay mini.jsonl -c laptop --csv folder
refuses "none/x.html" "$zipccl" replay mini.jsonl -c laptop -J x.json --html none/x.html
refuses "overwrite" "$zipccl" replay mini.jsonl -c laptop -J mini.jsonl
refuses "overwrite" "$zipccl" replay mini.jsonl -c laptop -J ./folder/../mini.jsonl
refuses "overwrite" "$zipccl" replay mini.jsonl -c copy.yaml -J copy.yaml
cp bad.safetensors kept.safetensors
refuses "overwrite" "$zipccl" replay badsamples.jsonl -c laptop -J bad.safetensors
cmp -s bad.safetensors kept.safetensors || failed "an output overwrote the samples"
refuses "same path" "$zipccl" replay mini.jsonl -c laptop -J x --csv ./x
refuses "empty" "$zipccl" replay mini.jsonl -c laptop -J ''
refuses "none/i.json" "$zipccl" trace info mini.jsonl -J none/i.json
if [ -w /dev/full ]; then
    refuses "/dev/full" "$zipccl" replay mini.jsonl -c laptop -f t0 -J /dev/full
fi

# ---- zipccl without zipccl-sim beside it
mkdir alone
cp "$zipccl" alone/zipccl
refuses "zipccl-sim" alone/zipccl replay mini.jsonl -c laptop

finish
