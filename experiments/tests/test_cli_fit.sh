#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_cli_fit.sh - perf --on sim, cluster fit and compare at the command line
#
# test_cli_fit.sh BUILD    run from the root of the source tree
. "$(dirname "$0")/cli_helpers.sh"

simulated() { "$zipccl" perf "$@" --on sim --cluster laptop; }

# fails TEXT COMMAND... - exit code 1 and TEXT on stderr
fails() {
    local text=$1 code
    shift
    ntests=$((ntests + 1))
    "$@" >out 2>err </dev/null
    code=$?
    [ $code -eq 1 ] || failed "exit code $code, not 1, of: $*: $(head -3 err)"
    grep -qF -- "$text" err || failed "no '$text' in: $(cat err)"
}

# ---- perf --on sim: the table of nccl-tests, rows that say simulated, the same at every tier
works "SIMULATED, 8 ranks on 2 nodes" simulated all_gather -b 1M --mode all
works "exact two-level" simulated all_reduce -b 16M --mode all
works "# Out of bounds values : 0 OK" simulated broadcast -b 1K -e 16K -r 3 -d float
works "" simulated alltoallv -b 64K --mode raw,compressed --set nodes=3
works "" simulated sendrecv -b 1M
works "" simulated all_reduce -b 1M -o all -d bfloat16 --mode raw
works "" simulated all_gather -b 1M --input "$tensors" --mode compressed
for tier in t0 t1 t2; do
    works "" simulated reduce_scatter -b 1M --strategy 'exact direct' --tier $tier --csv $tier.csv -q
    cut -d, -f1-10 $tier.csv >$tier.cut
done
cmp -s t0.cut t1.cut && cmp -s t0.cut t2.cut || failed "rows differ between tiers: $(head -3 t?.cut)"
works '"kind": "simulated"' simulated all_gather -b 1M -J -
works " 1.999" simulated all_gather -b 1M --ratio 2 --strategy 'exact direct'
refuses "-n is not of --on sim" "$zipccl" perf all_gather --on sim --cluster laptop -n 5
refuses "-t is not of --on sim" "$zipccl" perf all_gather --on sim --cluster laptop -t 4
refuses "-c is not of --on sim" "$zipccl" perf all_gather --on sim --cluster laptop -c 1
refuses "--input mixture is not of --on sim" "$zipccl" perf all_gather --on sim --cluster laptop --input mixture
refuses "needs a --cluster" "$zipccl" perf all_gather --on sim
refuses "expected t0, t1 or t2" "$zipccl" perf all_gather --on sim --cluster laptop --tier t3
refuses "--tier is of --on sim" "$zipccl" perf all_gather --tier t0
refuses "expected a number from 1 to 2" "$zipccl" perf all_gather --on sim --cluster laptop --ratio 3
refuses "exclude each other" "$zipccl" perf all_gather --on sim --cluster laptop --ratio 1.5 --input gauss
refuses "no tensor nope" "$zipccl" perf all_gather --on sim --cluster laptop --input "$tensors:nope"
refuses "nothing serves" "$zipccl" perf alltoall --on sim --cluster laptop --strategy 'exact ring'
refuses "one rank" "$zipccl" perf all_gather --on sim --cluster laptop --set nodes=1 --set gpus_per_node=1
refuses "is not one of 8 ranks" "$zipccl" perf broadcast --on sim --cluster laptop -r 8
refuses "no cluster is named" "$zipccl" perf all_gather --on sim --cluster lapto

# ---- what real ranks put on the wire is what the simulation says, for strategies with equal sizes
for op in all_gather all_reduce alltoall; do
    "$zipccl" perf $op -b 256K -n 1 -w 0 -c 0 -t 4 --ranks-per-node 2 --strategy 'fixed direct' \
        --class settled -J real.json -q 2>err || failed "real $op: $(cat err)"
    simulated $op -b 256K --set gpus_per_node=2 --strategy 'fixed direct' --class settled \
        -J simulated.json -q 2>err || failed "simulated $op: $(cat err)"
    for key in wire_bytes raw_bytes count size_bytes; do
        real=$(grep -m1 "\"$key\"" real.json)
        [ "$real" = "$(grep -m1 "\"$key\"" simulated.json)" ] ||
            failed "$op: $key: real $real, simulated $(grep -m1 "\"$key\"" simulated.json)"
    done
    works "predicted us" "$zipccl" compare simulated.json real.json
done

# ---- cluster fit: rows of a known cluster give it back, and every command takes the file
known="--set nic.rate=50MBps --set nic.alpha=200us --set nvlink.rate=2GBps --set nvlink.alpha=3us --set codec.encode_rate=1GBps --set codec.decode_rate=1.5GBps"
nfiles=0
for op in all_gather reduce_scatter alltoall; do
    for world in 1 2 4; do
        nfiles=$((nfiles + 1))
        # shellcheck disable=SC2086
        simulated $op -b 16K -e 16M -f 32 --mode raw,native,compressed $known --set nodes=$world \
            --set gpus_per_node=2 -J rows$nfiles.json -q 2>err || failed "rows: $(cat err)"
    done
done
works "SIMULATED rows of 9 files" "$zipccl" cluster fit rows?.json --name known -o known.yaml
works "known.yaml: ok: known, 4 nodes of 2 GPUs" "$zipccl" cluster check known.yaml
works "fitted from rows1.json and 8 more (simulated)" "$zipccl" cluster show known.yaml
grep -q '^  rate: {value: 50MBps' known.yaml || failed "nic.rate: $(grep rate known.yaml)"
grep -q '^  alpha: {value: 200us' known.yaml || failed "nic.alpha: $(grep alpha known.yaml)"
grep -q '^  rate: {value: 2GBps' known.yaml || failed "nvlink.rate: $(grep rate known.yaml)"
! grep -q '^reduce:' known.yaml || failed "reduce.rate: $(grep -A1 ^reduce known.yaml)"
grep -q '^  encode_rate: {value: 1GBps' known.yaml || failed "encode_rate: $(grep _rate known.yaml)"
works "SIMULATED" "$zipccl" perf all_gather -b 1M --on sim --cluster known.yaml
for op in all_gather reduce_scatter; do
    # shellcheck disable=SC2086
    simulated $op -b 1M -e 16M -f 4 --mode raw,compressed $known --set nodes=4 --set gpus_per_node=1 \
        --set reduce.rate=800MBps --set nic.burst=20kB --set machine.cores=3 -J adding_$op.json -q
done
works "" "$zipccl" cluster fit adding_*.json --set nic.burst=20kB --set machine.cores=3 -o adding.yaml
grep -q '^  rate: {value: 800MBps' adding.yaml || failed "reduce.rate: $(grep rate adding.yaml)"
grep -q '^  burst: {value: 20kB, source: "--set"}' adding.yaml || failed "nic.burst: $(cat adding.yaml)"
works "reduce.rate                800MBps" "$zipccl" cluster show adding.yaml
works "off by 0.0 % at the median" "$zipccl" cluster fit rows?.json
works "left out:" "$zipccl" cluster fit rows?.json --sizes 512K,16M --modes raw
works "no row's time depends on it" "$zipccl" cluster fit rows2.json --modes native
works "name: \"x\"" "$zipccl" cluster fit rows?.json --name x -o -
refuses "no rows given" "$zipccl" cluster fit
refuses "No such file" "$zipccl" cluster fit nothing.json
refuses "no row left" "$zipccl" cluster fit rows1.json --sizes 3K
refuses "expected more rows" "$zipccl" cluster fit rows1.json --sizes 16K --modes compressed
refuses "expected a size up to 256G" "$zipccl" cluster fit rows1.json --sizes 1X
refuses "expected raw, native" "$zipccl" cluster fit rows1.json --modes rw
refuses "rows1.json" "$zipccl" cluster fit rows1.json rows2.json -o rows1.json
refuses "unknown option" "$zipccl" cluster fit rows1.json --nope
refuses "cluster fit: --op 'gather': expected all_gather, reduce_scatter, all_reduce, alltoall, alltoallv, sendrecv or broadcast" \
    "$zipccl" cluster fit rows1.json --op gather
refuses "compare: --op 'alltoal': expected all_gather, reduce_scatter, all_reduce, alltoall, alltoallv, sendrecv or broadcast; did you mean 'alltoall'?" \
    "$zipccl" compare rows1.json rows2.json --op alltoal
head -c 300 rows1.json >cut.json
refuses "cut.json: not JSON" "$zipccl" cluster fit cut.json
sed '0,/"wrong": null/s//"wrong": 3/' rows1.json >wrong.json
refuses "row 1: 3 wrong elements" "$zipccl" cluster fit wrong.json
sed '0,/"strategy": "[a-z ]*/s//"strategy": "raw magic/' rows1.json >magic.json
refuses "magic.json: row 1: there is no strategy" "$zipccl" cluster fit magic.json
refuses "magic.json: row 1: there is no strategy" "$zipccl" cluster fit rows2.json magic.json
sed 's/"nranks": 2/"nranks": 1/; s/"count": [0-9]*/"count": 64/; s/"size_bytes": [0-9]*/"size_bytes": 128/' \
    rows1.json >alone.json
refuses "alone.json: row 1: a call that moves nothing" "$zipccl" cluster fit alone.json

# measured and simulated rows do not mix, and no row counts twice
sed 's/"kind": "simulated"/"kind": "measured"/; s/"on": "sim"/"on": "threads"/' rows2.json >real2.json
refuses "rows1.json is simulated and real2.json measured" "$zipccl" cluster fit rows1.json real2.json -o no.yaml
refuses "real2.json is measured and rows1.json simulated" "$zipccl" cluster fit real2.json rows1.json
[ ! -e no.yaml ] || failed "a fit that was refused left a file"
cp rows1.json copy1.json
refuses "rows1.json: row 1 is in rows1.json as well" "$zipccl" cluster fit rows1.json rows1.json
refuses "copy1.json: row 1 is in rows1.json as well" "$zipccl" cluster fit rows1.json rows2.json copy1.json
simulated all_gather -b 16M --mode raw $known --set nodes=1 --set gpus_per_node=2 -J part.json -q
refuses "part.json: row 1 is in rows1.json as well" "$zipccl" cluster fit rows1.json part.json
works " measured rows of 1 file" "$zipccl" cluster fit real2.json -o real2.yaml
grep -q "fitted from real2.json (measured)" real2.yaml || failed "real2.yaml: $(grep fitted real2.yaml)"
sed '0,/"time_min_s": [0-9.e-]*/s//"time_min_s": 0/; 0,/"time_q1_s": [0-9.e-]*/s//"time_q1_s": 0/
    0,/"time_s": [0-9.e-]*/s//"time_s": 0/' rows1.json >zero.json
refuses 'zero.json: row 1: key "time_s": found 0' "$zipccl" cluster fit zero.json
"$zipccl" replay "$moe" --cluster $a100 --fidelity t0 -J step.json -q || failed "no step"
refuses "times of a step" "$zipccl" cluster fit step.json
echo "no table" >words.txt
refuses "neither JSON nor a table" "$zipccl" cluster fit words.txt
logs=$OLDPWD/../shared/data/traces/nccl_tests
if [ -d "$logs" ]; then
    works "nvlink.rate" "$zipccl" cluster fit "$logs/nccl_allreduce.log" --base $a100 -o a.yaml
    works "ok" "$zipccl" cluster check a.yaml
    works "" "$zipccl" cluster fit "$logs/nccl_allgather.log" --op all_gather --base $a100
    refuses "expected --op OP" "$zipccl" cluster fit "$logs/nccl_allgather.log" --base $a100
    refuses "expected --base" "$zipccl" cluster fit "$logs/nccl_allreduce.log"
    head -40 "$logs/nccl_allreduce.log" >cut.log
    refuses "cut off" "$zipccl" cluster fit cut.log --base $a100
else
    echo "skipped: no logs of nccl-tests here"
fi

# ---- compare
simulated all_gather -b 64K -e 4M -f 8 --mode raw,compressed -J p.json -q
sed 's/"kind": "simulated"/"kind": "measured"/; s/"on": "sim"/"on": "mpi"/' p.json >m.json
sed 's/"count": [0-9]*/"count": 7/; s/"size_bytes": [0-9]*/"size_bytes": 112/' m.json >other.json
sed -E '0,/"time_mean_s"/s/"time_(s|q3_s|max_s)": [0-9.e-]*/"time_\1": 1/' m.json >slow.json
sed -E 's/"time_(s|q3_s|max_s)": [0-9.e-]*/"time_\1": 1/' m.json >late.json
works "predicted us" "$zipccl" compare p.json m.json
works "before us" "$zipccl" compare p.json p.json
works "before us" "$zipccl" compare m.json m.json
works "all                 6        0.0        0.0" "$zipccl" compare p.json m.json --max-error 0 --max-median 0
works "schema zipccl.compare" "$zipccl" compare p.json m.json m.json -J c.json --csv c.csv --html c.html --svg c.svg
grep -q '"kind": "predicted-measured"' c.json || failed "c.json: $(head -5 c.json)"
[ "$(wc -l <c.csv)" -eq 13 ] || failed "c.csv has $(wc -l <c.csv) lines"
grep -q '<svg xmlns=' c.svg && grep -q 'within 10' c.svg || failed "c.svg: $(head -3 c.svg)"
grep -q '<!DOCTYPE html>' c.html && grep -q '</html>' c.html || failed "c.html: $(head -3 c.html)"
! grep -qE 'https?://|<script|src=' c.html || failed "c.html reaches outside: $(grep -oE 'https?://[^ ]*|<script|src=' c.html)"
sed '0,/"wrong": null/s//"wrong": 3/' p.json >wrong.json
works "page of 3 results" "$zipccl" report p.json c.json wrong.json -o all.html
for text in '<polyline class="line m-raw"' '<polyline class="line m-compressed"' '1 row has wrong elements' 'Compared with it'; do
    grep -qF "$text" all.html || failed "all.html: no '$text'"
done
sed '0,/"wrong": null/s//"wrong": 3/' other.json >wrong_other.json
fails "wrong.json: row 1: 3 wrong elements in all_gather" "$zipccl" compare p.json wrong.json
fails "wrong.json: row 1: 3 wrong elements" "$zipccl" compare wrong.json p.json
fails "wrong_other.json: row 1: 3 wrong elements" "$zipccl" compare p.json m.json wrong_other.json
fails "wrong_other.json: row 1: 3 wrong elements" "$zipccl" compare p.json m.json wrong_other.json --min-bytes 1MiB
works "6 only measured" "$zipccl" compare p.json m.json other.json
fails "the worst row differs by" "$zipccl" compare p.json slow.json --max-error 5
fails "matches one of p.json; the nearest differs in count" "$zipccl" compare p.json other.json
fails "more than --max-median" "$zipccl" compare p.json late.json --min-bytes 1MiB --max-median 5
works "before us" "$zipccl" compare step.json step.json
works "the cost model (T0) (SIMULATED" "$zipccl" compare --cluster laptop m.json --max-error 0.01
works "with sign" "$zipccl" compare --cluster laptop --set nic.rate=50MBps m.json --summary
refuses "gpus_per_node=4" "$zipccl" compare --cluster laptop --set gpus_per_node=2 m.json
refuses "a step" "$zipccl" compare --cluster laptop step.json
refuses "is of a --cluster" "$zipccl" compare --set nic.rate=1Gbps p.json m.json
refuses "give a result file to predict" "$zipccl" compare --cluster laptop
refuses "expected two of one kind" "$zipccl" compare step.json m.json
refuses "give two result files" "$zipccl" compare p.json
refuses "expected the prediction first" "$zipccl" compare m.json p.json
refuses "--max-error: \"-1\" is out of range" "$zipccl" compare p.json m.json --max-error -1
refuses "cut.json: not JSON" "$zipccl" compare p.json cut.json
refuses "p.json" "$zipccl" compare p.json m.json -J p.json
refuses "c.svg" "$zipccl" compare p.json m.json --svg c.svg --html c.svg
if [ -w /dev/full ]; then
    refuses "/dev/full: cannot write" "$zipccl" compare p.json m.json -J /dev/full
    refuses "/dev/full: cannot write" "$zipccl" compare p.json m.json --csv /dev/full
    refuses "/dev/full: cannot write" "$zipccl" compare p.json m.json --html /dev/full
    refuses "/dev/full: cannot write" "$zipccl" plan all_gather --count 65536 --cluster laptop -J /dev/full
    refuses "/dev/full: cannot write" "$zipccl" plan all_gather --count 65536 --cluster laptop --csv /dev/full
fi

# ---- the example of docs/compare.md, with fewer and smaller calls: every mode finds its partners
small=(all_gather -b 64K -e 4M -f 8 --mode raw,compressed)
works "" "$zipccl" perf "${small[@]}" -t 4 -n 2 -w 0 -J measured.json
works "wrote mine.yaml" "$zipccl" cluster fit measured.json --sizes 64K,512K,4M -o mine.yaml
works "" "$zipccl" perf "${small[@]}" --on sim --cluster mine.yaml -J predicted.json
works "  compressed          6 " "$zipccl" compare predicted.json measured.json --any-strategy --html compare.html

# ---- a name is suggested if it is near
refuses "did you mean 'list'" "$zipccl" cluster lst
refuses "did you mean 'compare'" "$zipccl" comapre
refuses "unknown action 'xsz'; say list" "$zipccl" cluster xsz
refuses "unknown action 'xst'; say list" "$zipccl" cluster xst
refuses "unknown collective 'magic'; expected all_gather" "$zipccl" plan magic --count 8 --cluster laptop
works "4 ranks on 1 node, mode" "$zipccl" plan all_gather --count 65536 --cluster laptop --set nodes=1

echo "$ntests tests, $nfailed failed"
[ "$nfailed" -eq 0 ]
