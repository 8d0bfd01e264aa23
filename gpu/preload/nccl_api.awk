# SPDX-License-Identifier: Apache-2.0
# nccl_api.awk - the pass-through of every function that nccl.h declares, made from the header
#
# awk -v want=table|forward [-v both=1] -v taken="name name ..." -f nccl_api.awk nccl.h
#   table    one macro with an entry per function: return type, name, parameters, arguments
#   forward  a C function per entry that is not in 'taken' and calls the library in use; with both=1 also
#            one of the pnccl* name for every entry
# Exit 1 if the header has a declaration of an ncclX function that this script cannot read.

{ text = text $0 "\n" }

function trim(s) { gsub(/[ \t\n]+/, " ", s); sub(/^ /, "", s); sub(/ $/, "", s); return s }

# Remove /* */ and // comments and preprocessor lines.
function strip(s,    out, at, end) {
    out = ""
    while ((at = index(s, "/*")) > 0) {
        out = out substr(s, 1, at - 1)
        s = substr(s, at + 2)
        end = index(s, "*/")
        s = end > 0 ? substr(s, end + 2) : ""
    }
    s = out s
    gsub(/\/\/[^\n]*/, "", s)
    gsub(/\\\n/, " ", s)
    gsub(/(^|\n)[ \t]*#[^\n]*/, "\n", s)
    return s
}

# The names of the parameters in 'params', as call arguments.
function arguments(params,    n, part, i, out, name) {
    n = split(params, part, ",")
    out = ""
    for (i = 1; i <= n; i++) {
        name = trim(part[i])
        if (name == "" || name == "void")
            continue
        if (!match(name, /[A-Za-z_][A-Za-z0-9_]*$/))
            return "?"
        out = out (out == "" ? "" : ", ") substr(name, RSTART, RLENGTH)
    }
    return out
}

function declaration(d,    open, head, name, ret) {
    gsub(/__attribute__ *\(\(.*\)\) */, "", d)
    d = trim(d)
    if (d !~ /(^|[ *])nccl[A-Z][A-Za-z0-9]* *\(/ || d ~ /^typedef/ || d ~ /[{}=]/)
        return
    open = index(d, "(")
    head = trim(substr(d, 1, open - 1))
    if (!match(head, /nccl[A-Z][A-Za-z0-9]*$/) || substr(d, length(d)) != ")") {
        print "nccl_api.awk: cannot read the declaration: " d > "/dev/stderr"
        failed = 1
        return
    }
    name = substr(head, RSTART)
    ret = trim(substr(head, 1, RSTART - 1))
    if (name in seen)
        return
    seen[name] = 1
    count++
    names[count] = name
    rets[count] = ret
    params[count] = trim(substr(d, open + 1, length(d) - open - 1))
    if (params[count] == "")
        params[count] = "void"
    args[count] = arguments(params[count])
    if (args[count] == "?" || ret == "") {
        print "nccl_api.awk: cannot read the parameters: " d > "/dev/stderr"
        failed = 1
    }
}

function forward(name, target, i,    none) {
    printf "\n__attribute__((visibility(\"default\"))) %s %s(%s)\n{\n", rets[i], name, params[i]
    printf "    const struct zipccl_nccl *nccl = zipccl_nccl_get();\n\n"
    none = rets[i] == "ncclResult_t" ? "return zipccl_nccl_missing(\"" target "\")" : \
        rets[i] == "void" ? "return" : "return zipccl_nccl_missing_text(\"" target "\")"
    printf "    if (nccl->%s == NULL)\n        %s;\n", target, none
    printf "    %snccl->%s(%s);\n}\n", rets[i] == "void" ? "" : "return ", target, args[i]
}

END {
    body = strip(text)
    sub(/extern "C" *\{/, "", body)
    n = split(body, piece, ";")
    for (p = 1; p <= n; p++)
        declaration(piece[p])
    if (failed || count == 0)
        exit 1
    print "/* Made from nccl.h by nccl_api.awk: do not edit. */"
    if (want == "table") {
        print "#define ZIPCCL_NCCL_FUNCTIONS(X) \\"
        for (i = 1; i <= count; i++)
            printf "    X(%s, %s, (%s), (%s))%s\n", rets[i], names[i], params[i], args[i], \
                i < count ? " \\" : ""
        exit 0
    }
    n = split(taken, list, " ")
    for (i = 1; i <= n; i++) {
        if (!(list[i] in seen)) {
            print "nccl_api.awk: nccl.h does not declare " list[i] > "/dev/stderr"
            exit 1
        }
        own[list[i]] = 1
    }
    print "#include \"gpu/preload/real.h\""
    print "#pragma GCC diagnostic ignored \"-Wdeprecated-declarations\""
    print "#pragma GCC diagnostic ignored \"-Wmissing-prototypes\""
    for (i = 1; i <= count; i++) {
        if (!(names[i] in own))
            forward(names[i], names[i], i)
        if (both)
            forward("p" names[i], names[i], i)
    }
}
