# SPDX-License-Identifier: Apache-2.0
# nccl_extra.awk - trampolines for names that a NCCL library exports and nccl.h does not declare
#
# awk -f nccl_extra.awk nccl_table.h NAMES...
# NAMES are files with a symbol as the last word of a line: 'nm -D' of a library, or nccl_later.txt.  No
# prototype is needed: a trampoline leaves every register and the stack alone.  pncclX stands for itself.

FNR == 1 { file = FILENAME; sub(/.*\//, "", file) }
file == "nccl_table.h" {
    if (match($0, /nccl[A-Z][A-Za-z0-9]*, \(/)) {
        name = substr($0, RSTART, RLENGTH)
        sub(/,.*/, "", name)
        declared[name] = declared["p" name] = 1
    }
    next
}
/^#/ { next }
$NF ~ /^p?nccl[A-Z][A-Za-z0-9_]*$/ && !($NF in declared) && !($NF in seen) {
    seen[$NF] = 1
    extra[++count] = $NF
}

END {
    print "/* Made by nccl_extra.awk: do not edit. */"
    print "#include \"gpu/preload/extra.h\""
    print "#include <stddef.h>"
    printf "const char *const zipccl_extra_names[] = {"
    for (i = 1; i <= count; i++)
        printf "\"%s\", ", extra[i]
    print "NULL};"
    printf "void *zipccl_extra_slots[%d];\n", count + 1
    for (i = 1; i <= count; i++) {
        print "void " extra[i] "(void);"
        print "ZIPCCL_TRAMPOLINE(" extra[i] ", " (i - 1) * 8 ")"
    }
    printf "void *const zipccl_extra_symbols[] = {"
    for (i = 1; i <= count; i++)
        printf "(void *)%s, ", extra[i]
    print "NULL};"
}
