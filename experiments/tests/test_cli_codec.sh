#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_cli_codec.sh - zipccl codec encode, decode and conform at the command line
#
# test_cli_codec.sh BUILD    run from the root of the source tree
. "$(dirname "$0")/cli_helpers.sh"
source=$OLDPWD
small=$source/experiments/tests/files/small
decoder=$source/core/tests/decoder.py

# same A B - two files are equal
same() {
    cmp -s "$1" "$2" || failed "$1 and $2 differ"
}

# damage FILE AT BYTE - write \ooo over a byte of a copy, "damaged.zcf"
damage() {
    cp "$1" damaged.zcf
    printf "$3" | dd of=damaged.zcf bs=1 seek="$2" conv=notrunc status=none
}

# ---- there and back
works "conform" "$zipccl" codec --help
works "--dtype" "$zipccl" codec encode --help
works "Examples:" "$zipccl" codec decode --help
works "Examples:" "$zipccl" codec conform --help
works "ratio 1." "$zipccl" codec encode "$tensors" -o t.zcf -J t.json
works '"ratio": 1.' "$zipccl" codec decode t.zcf -o t.safetensors -J -
same t.safetensors "$tensors"
[ "$(head -c 1 out)" = "{" ] || failed "codec decode -J - prints more than JSON"
for key in '"schema": "zipccl.codec-file"' '"action": "encode"' '"raw_bytes"' '"file_bytes"' '"GBps"' '"types"'; do
    grep -qF "$key" t.json || failed "no $key in the JSON of codec encode"
done
[ "$(wc -c <t.zcf)" -lt "$(($(wc -c <"$tensors") * 3 / 4))" ] || failed "tensors became no smaller"
works "" "$zipccl" codec encode "$tensors" -o quiet.zcf --quiet
[ ! -s out ] || failed "--quiet prints: $(cat out)"
same quiet.zcf t.zcf
works "" "$zipccl" codec encode "$tensors" -o threads.zcf -t 3
same threads.zcf t.zcf
works "" "$zipccl" codec decode t.zcf -o threads.safetensors -t 2
same threads.safetensors "$tensors"
works "ratio 1." "$zipccl" codec encode "$tensors" -o small.zcf --effort ratio
works "" "$zipccl" codec decode small.zcf -o t2.safetensors
same t2.safetensors "$tensors"
[ "$(wc -c <small.zcf)" -lt "$(wc -c <t.zcf)" ] || failed "--effort ratio gains nothing"
# A file made by the first version is still read.
works "" "$zipccl" codec decode "$small.zcf" -o small.safetensors
same small.safetensors "$small.safetensors"
works "ratio" "$zipccl" codec encode "$decoder" --dtype fp8_e5m2 -o any.zcf
works "" "$zipccl" codec decode any.zcf -o any
same any "$decoder"
: >empty
works "0 B ->" "$zipccl" codec encode empty --dtype bf16 -o empty.zcf
works "" "$zipccl" codec decode empty.zcf -o empty2
same empty empty2
# Through pipes; what is told goes to standard error then.
ntests=$((ntests + 1))
"$zipccl" codec encode - -o - <"$tensors" 2>err | "$zipccl" codec decode - -o - -q >piped ||
    failed "pipes: $(cat err)"
same piped "$tensors"
grep -q "standard input" err || failed "no summary of a piped file: $(cat err)"
# What exists is replaced only when asked, and a link's target is.
echo old >old
refuses "exists; --force" "$zipccl" codec encode "$tensors" -o old
[ "$(cat old)" = old ] || failed "an existing file was touched"
works "" "$zipccl" codec encode "$tensors" -o old --force
same old t.zcf
works "" "$zipccl" codec encode "$tensors" -o /dev/null
ls ./*.tmp* >left 2>/dev/null && failed "temporary files are left: $(cat left)"

# ---- files that are none, and damage
head -c 1000 "$tensors" >cut.safetensors
printf 'this is no tensor file' >bad.safetensors
refuses "--dtype TYPE takes any file" "$zipccl" codec encode bad.safetensors -o x
refuses "the file is cut or no .safetensors" "$zipccl" codec encode cut.safetensors -o x
refuses "at least 8" "$zipccl" codec encode empty -o x
refuses "missing" "$zipccl" codec encode missing -o x
refuses "folder" "$zipccl" codec encode . -o x
refuses "other bytes, expected the start" "$zipccl" codec decode "$tensors" -o x
refuses "an empty file" "$zipccl" codec decode empty -o x
damage t.zcf 8 '\002'
refuses "damaged.zcf: byte 8: a coded file of version 2, expected 1" "$zipccl" codec decode damaged.zcf -o x
damage t.zcf 700000 '\123\321'
refuses "is damaged: checksum" "$zipccl" codec decode damaged.zcf -o x
refuses "of the original" "$zipccl" codec decode damaged.zcf -o x
damage t.zcf 16 'X'
refuses "byte 16: the header of segment 0" "$zipccl" codec decode damaged.zcf -o x
head -c 700000 t.zcf >damaged.zcf
refuses "the file is cut" "$zipccl" codec decode damaged.zcf -o x
head -c -40 t.zcf >damaged.zcf
refuses "the file is cut: it ends after 0 of" "$zipccl" codec decode damaged.zcf -o x
cat t.zcf t.zcf >damaged.zcf
refuses "byte $(wc -c <t.zcf): bytes after the trailer" "$zipccl" codec decode damaged.zcf -o x
echo old >x
refuses "after the trailer" "$zipccl" codec decode damaged.zcf -o x -f
[ "$(cat x)" = old ] || failed "a failed run touched the old file"
rm x

# ---- usage
refuses "name a file" "$zipccl" codec encode
refuses "-o names the file" "$zipccl" codec encode "$tensors"
refuses "unexpected argument 'b'" "$zipccl" codec encode a b -o x
refuses "given twice: '-o'" "$zipccl" codec decode t.zcf -o x -o y
refuses "found 'bf17'" "$zipccl" codec encode "$tensors" --dtype bf17 -o x
refuses "expected fast or ratio, found 'best'" "$zipccl" codec encode "$tensors" --effort best -o x
refuses "-t: expected a number from 1 to 256, found '0'" "$zipccl" codec encode "$tensors" -t 0 -o x
refuses "-t: expected a number from 1 to 256, found '257'" "$zipccl" codec decode t.zcf -t 257 -o x
refuses "given twice: '-t'" "$zipccl" codec decode t.zcf -t 2 -t 2 -o x
refuses "did you mean '--dtype'" "$zipccl" codec encode "$tensors" --dtpye x -o x
refuses "unknown option '--dtype'" "$zipccl" codec decode t.zcf --dtype bf16 -o x
refuses "did you mean 'encode'" "$zipccl" codec encod x
refuses "found nothing" "$zipccl" codec
refuses "overwrite an input" "$zipccl" codec encode t.safetensors -o ./t.safetensors --force
refuses "overwrite an input" "$zipccl" codec decode t.zcf -o x -J t.zcf
refuses "same path" "$zipccl" codec decode t.zcf -o x -J ./x
refuses "same path" "$zipccl" codec decode t.zcf -o - -J -
refuses "none/x" "$zipccl" codec decode t.zcf -o none/x
loses "$zipccl" codec decode t.zcf -o y -J -
ntests=$((ntests + 1))
"$zipccl" codec encode "$tensors" -o - >/dev/full 2>err </dev/null && failed "a full disk goes unseen"
grep -q "cannot write" err || failed "a full disk is told as: $(cat err)"

refuses "for the largest size; -e sets it" "$zipccl" codec bench --input "$tensors" -b 1K
refuses "expected 1073741824 for the" "$zipccl" codec bench --input "$tensors" -b 1K -e 1G

# ---- a run that is ended leaves nothing
ntests=$((ntests + 1))
mkfifo pipe
"$zipccl" codec encode pipe --dtype bf16 -o ended.zcf 2>err &
exec 9>pipe
head -c 5000000 /dev/zero >&9
kill -TERM $!
wait $! && failed "a terminated run ends well"
exec 9>&-
ls ended.zcf* >left 2>/dev/null && failed "a terminated run leaves: $(cat left)"

# ---- other decoders
works "0 failed" "$zipccl" codec conform -- python3 "$decoder"
for row in scalar avx2 avx512; do
    "$build/tests/decode_message" $row </dev/null >/dev/null
    if [ $? -eq 77 ]; then
        echo "skipped: this machine has no $row"
    else
        works "0 failed" "$zipccl" codec conform -J $row.json -- "$build/tests/decode_message" $row
        grep -q '"failed": 0' $row.json || failed "conform -J: $(head -5 $row.json)"
    fi
done

# fails TEXT COMMAND... - exit code 1, TEXT in the output
fails() {
    local text=$1 code
    shift
    ntests=$((ntests + 1))
    "$@" >out 2>err </dev/null
    code=$?
    [ $code -eq 1 ] || failed "exit code $code, not 1, of: $*: $(cat err)"
    grep -qF -- "$text" out || failed "no '$text' in the output of: $*: $(head -5 out)"
}
fails "accepted, expected" "$zipccl" codec conform -- true
fails "refused a valid message" "$zipccl" codec conform -- false
fails "byte 0 of the elements" "$zipccl" codec conform -- cat
mkdir own
cp "$source"/core/tests/vectors/one.* own
grep -P '^(#|one\.)' "$source/core/tests/vectors/MANIFEST.tsv" >own/MANIFEST.tsv
works "1 passed" "$zipccl" codec conform --vectors own -- python3 "$decoder"
fails "did not end within 0.1 s" "$zipccl" codec conform --vectors own --timeout 0.1 -- tail -f /dev/null
# Ended while a decoder runs: what was judged is told, and the decoder ends too.
ntests=$((ntests + 1))
mkfifo decoders
cat >second.sh <<'end'
[ -e first ] && echo $$ >decoders && exec tail -f /dev/null
: >first
exit 1
end
"$zipccl" codec conform --timeout 600 -- sh second.sh >out 2>err </dev/null &
read -r pid <decoders
grep -q "^FAILED  *[a-z]" out || failed "conform holds back verdicts: $(cat out)"
kill -TERM $!
wait $!
code=$?
[ $code -eq 143 ] || failed "exit code $code, not 143, of a conform that was terminated"
kill -0 "$pid" 2>left && kill "$pid" && failed "a terminated conform leaves its decoder"
refuses "/dev/full: cannot write: No space" "$zipccl" codec conform -q -J /dev/full -- false
refuses "overwrite an input" "$zipccl" codec conform --vectors own -J own/MANIFEST.tsv -- true
refuses "overwrite an input" "$zipccl" codec conform --vectors own -J own/../own/one.zccl -- true
refuses "name the decoder's command" "$zipccl" codec conform
refuses "cannot run './none'" "$zipccl" codec conform -- ./none
refuses "--timeout 'soon'" "$zipccl" codec conform --timeout soon -- true
refuses "none/MANIFEST.tsv" "$zipccl" codec conform --vectors none -- true
printf 'x' >>own/one.zccl
refuses "MANIFEST.tsv:3: one.zccl has sha256" "$zipccl" codec conform --vectors own -- true
printf 'one.zccl\tvalid\n' >own/MANIFEST.tsv
refuses "MANIFEST.tsv:1: too few columns, expected 8" "$zipccl" codec conform --vectors own -- true
: >own/MANIFEST.tsv
refuses "no vectors" "$zipccl" codec conform --vectors own -- true

finish
