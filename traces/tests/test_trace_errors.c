/*
 * test_trace_errors.c - every way in which a trace can be wrong, with the text of the error
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/tests/scratch.h"
#include "traces/trace.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

TestSuite(trace, .fini = scratch_remove);

#define HEAD                                                                                       \
    "{\"format\":\"zipccl-trace\",\"version\":1,\"name\":\"t\",\"provenance\":\"generated\","      \
    "\"generator\":\"g\","
#define HEADER                                                                                     \
    HEAD "\"nranks\":8,\"streams\":[\"compute\",\"nccl\"],\"samples\":\"s\","                      \
         "\"groups\":[{\"name\":\"w\",\"size\":8},{\"name\":\"p\",\"size\":2}],"                   \
         "\"splits\":[{\"name\":\"s2\",\"counts\":[[1,2],[3,4]]}]}\n"
#define C1 "{\"id\":1,\"kind\":\"compute\",\"flops\":1}\n"
#define COLL(rest)                                                                                 \
    HEADER "{\"id\":2,\"kind\":\"collective\",\"stream\":\"nccl\"," rest                           \
           "}\n{\"kind\":\"end\",\"events\":1}\n"
#define AG "\"op\":\"all_gather\",\"group\":\"w\",\"dtype\":\"bf16\",\"count\":4"
#define COMP(rest)                                                                                 \
    HEADER "{\"id\":1,\"kind\":\"compute\"," rest "}\n{\"kind\":\"end\",\"events\":1}\n"
#define END(n)   "{\"kind\":\"end\",\"events\":" #n "}\n"
#define BEGIN    "{\"kind\":\"loop_begin\",\"repeat\":2}\n"
#define LOOP_END "{\"kind\":\"loop_end\"}\n"

struct wrong {
    const char *text;
    unsigned line;
    const char *expected; /* starts the text after FILE:LINE: */
};

/* Returns the status of reading all; 'error' has the text. */
static zipccl_status read_all(const char *path, struct zipccl_error *error)
{
    struct zipccl_trace *trace;
    zipccl_status status = zipccl_trace_load(path, &trace, error);

    if (status == ZIPCCL_OK)
        zipccl_trace_destroy(trace);
    return status;
}

static void expect_all(const struct wrong *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char path[SCRATCH_PATH], expected[600];
        struct zipccl_error error = {""};
        zipccl_status status;

        scratch_write(path, "t.jsonl", cases[i].text, strlen(cases[i].text));
        status = read_all(path, &error);
        snprintf(expected, sizeof expected, "%s:%u: %s", path, cases[i].line, cases[i].expected);
        cr_expect(status == ZIPCCL_ERR_INPUT || status == ZIPCCL_ERR_UNSUPPORTED,
                  "case %zu: status %d: %s", i, status, cases[i].text);
        cr_expect(strncmp(error.text, expected, strlen(expected)) == 0,
                  "case %zu:\n got %s\nwant %s", i, error.text, expected);
    }
}

#define EXPECT_ALL(cases) expect_all(cases, sizeof cases / sizeof cases[0])

static const struct wrong wrong_headers[] = {
    {"", 1, "an empty file, expected the header of a trace"},
    {"\n", 1, "empty, expected one JSON object"},
    {"[]\n", 1, "a value that is no object, expected one JSON object"},
    {"{\"format\":\"zipccl\"}\n", 1,
     "\"zipccl\" as \"format\" of the first line, expected \"zipccl-trace\""},
    {C1, 1, "nothing as \"format\" of the first line"},
    {"{\"format\":\"zipccl-trace\"}\n", 1, "no key \"version\" in the header, expected one"},
    {"{\"format\":\"zipccl-trace\",\"version\":2,\"new\":1}\n", 1,
     "version 2 of the trace format, expected 1"},
    {"{\"format\":\"zipccl-trace\",\"version\":1}\n", 1,
     "no key \"name\" in the header, expected one"},
    {HEAD "\"nranks\":8,\"streams\":[\"c\"],\"extra\":1}\n", 1,
     "unknown key \"extra\" in the header, expected one of: format, version, name, model"},
    {HEAD "\"nranks\":8,\"streams\":[\"c\"],\"nranks\":8}\n", 1,
     "key \"nranks\" twice in the header"},
    {HEAD "\"nranks\":0,\"streams\":[\"c\"]}\n", 1,
     "\"nranks\" is 0, expected an integer from 1 to 1048576"},
    {HEAD "\"nranks\":8.0,\"streams\":[\"c\"]}\n", 1, "\"nranks\" is 8.0, expected an integer"},
    {HEAD "\"nranks\":\"8\",\"streams\":[\"c\"]}\n", 1, "\"nranks\" is \"8\", expected an integer"},
    {HEAD "\"nranks\":8,\"streams\":[]}\n", 1,
     "\"streams\" is an array of 0, expected an array of at least 1"},
    {HEAD "\"nranks\":8,\"streams\":[\"c\",\"c\"]}\n", 1, "stream \"c\" twice"},
    {HEAD "\"nranks\":8,\"streams\":[\"c\\n\"]}\n", 1,
     "\"streams\" is \"c?\" with control characters"},
    {HEAD "\"nranks\":8,\"streams\":[\"c\"],\"ranks_per_node\":3}\n", 1,
     "\"ranks_per_node\" is 3, expected a divisor of 8"},
    {HEAD "\"nranks\":8,\"streams\":[\"c\"],\"recorded_step_s\":-1}\n", 1,
     "\"recorded_step_s\" is -1, expected a number from 0 up"},
    {HEAD "\"nranks\":8,\"streams\":[\"c\"],\"recorded_step_s\":1e300}\n", 1,
     "\"recorded_step_s\" is 1e+300, expected a number from 0 to 1000000 s"},
    {HEAD "\"nranks\":8,\"streams\":[\"c\"],\"recorded_step_s\":1e400}\n", 1,
     "a number that is out of range"},
    {HEAD "\"nranks\":8,\"streams\":[\"c\"],\"tokens_per_step\":9007199254740993}\n", 1,
     "\"tokens_per_step\" is 9007199254740993, expected an integer from 1 to 2^53 = "
     "9007199254740992"},
    {HEAD "\"nranks\":8,\"streams\":[\"c\"],\"groups\":[{\"name\":\"a\",\"size\":3}]}\n", 1,
     "a group of size 3 and stride 1, expected size * stride to divide 8"},
    {HEAD "\"nranks\":8,\"streams\":[\"c\"],\"groups\":[{\"name\":\"a\",\"size\":4,\"ranks\":[["
          "0]]}]}\n",
     1, "unknown key \"size\" in a group, expected one of: name, ranks"},
    {HEAD "\"nranks\":8,\"streams\":[\"c\"],\"groups\":[{\"name\":\"a\",\"ranks\":[[0,1],[1,2]]"
          "}]}\n",
     1, "rank 1 twice in group \"a\", expected once"},
    {HEAD "\"nranks\":8,\"streams\":[\"c\"],\"groups\":[{\"name\":\"a\",\"ranks\":[[0,1],[2]]}]}\n",
     1, "parts of 2 and 1 ranks in a group, expected equal ones"},
    {HEAD "\"nranks\":8,\"streams\":[\"c\"],\"groups\":[{\"name\":\"a\",\"ranks\":[[8]]}]}\n", 1,
     "\"ranks\" is 8, expected an integer from 0 to 7"},
    {HEAD "\"nranks\":8,\"streams\":[\"c\"],\"groups\":[{\"name\":\"a\",\"size\":8},{\"name\":"
          "\"a\",\"size\":4}]}\n",
     1, "group \"a\" twice"},
    {HEAD
     "\"nranks\":8,\"streams\":[\"c\"],\"splits\":[{\"name\":\"a\",\"counts\":[[1,2],[3]]}]}\n",
     1, "a row of 1 entries in splits of 2 members, expected a square"},
    {HEAD "\"nranks\":1,\"streams\":[\"c\"],\"splits\":[{\"name\":\"a\",\"counts\":[[1,2],[3,4]"
          "]}]}\n",
     1, "splits \"a\" of 2 members, expected 1 to 1"},
    {"{\"format\":\"zipccl-trace\",\"version\":1,\"name\":\"t\",\"provenance\":\"found\","
     "\"generator\":\"g\",\"nranks\":1,\"streams\":[\"c\"]}\n",
     1,
     "\"provenance\" is \"found\", expected text that starts with generated, captured or "
     "imported"},
};

Test(trace, wrong_headers_are_named)
{
    EXPECT_ALL(wrong_headers);
}

Test(trace, broken_lines_are_named)
{
    static const struct wrong cases[] = {
        {HEADER, 2, "the end of the file after 0 events, expected an end record: the file is cut"},
        {HEADER C1, 3,
         "the end of the file after 1 events, expected an end record: the file is cut"},
        {HEADER "{\"id\":1,\"kind\":\"comp", 2,
         "JSON that is cut after 20 bytes, expected one whole"},
        {HEADER C1 "\n" END(1), 3, "empty, expected one JSON object"},
        {HEADER C1 END(2), 3, "an end record of 2 events after 1, expected the same"},
        {HEADER C1 END(1) C1, 4, "a line after the end record, expected the end of the file"},
        {HEADER C1 END(1) "x", 4, "a line after the end record"},
        {HEADER "{\"id\":1,\"kind\":\"compute\",\"flops\":1} {}\n", 2,
         "parse error: trailing garbage at column"},
        {HEADER "{\"id\":1,\"kind\":\"compute\",\"flops\":NaN}\n", 2,
         "lexical error: invalid char in json text. at column"},
        {HEADER "{\"id\":1,\"kind\":\"compute\",\"flops\":1e999}\n", 2,
         "a number that is out of range, expected a finite one"},
        {HEADER "{\"id\":1,\"kind\":\"compute\",\"label\":\"\xff\",\"flops\":1}\n", 2,
         "bytes that are not UTF-8"},
        {HEADER "{\"id\":1,\"kind\":\"compute\",\"label\":\"\xc0\xaf\",\"flops\":1}\n", 2,
         "bytes that are not UTF-8"},
        {HEADER "{\"id\":1,\"kind\":\"compute\",\"label\":\"\xed\xa0\x80\",\"flops\":1}\n", 2,
         "bytes that are not UTF-8"},
        {HEADER "{\"id\":1,\"kind\":\"compute\",\"label\":\"a\\u0000b\",\"flops\":1}\n", 2,
         "a string that holds U+0000"},
        {HEADER "{\"a\":[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]}\n", 2,
         "values nested more than 16 deep"},
        {HEADER "{\"id\":1}\n", 2,
         "nothing as \"kind\", expected compute, collective, communication, "
         "loop_begin, loop_end or end"},
        {HEADER "{\"id\":1,\"kind\":\"sleep\"}\n", 2, "\"sleep\" as \"kind\""},
    };

    EXPECT_ALL(cases);
}

Test(trace, wrong_compute_events_are_named)
{
    static const struct wrong cases[] = {
        {COMP("\"flops\":1,\"count\":2"), 2,
         "unknown key \"count\" in a compute event, expected one of: kind, id, stream"},
        {COMP("\"flops\":1,\"flops\":2"), 2, "key \"flops\" twice in a compute event"},
        {HEADER "{\"kind\":\"compute\",\"flops\":1}\n", 2,
         "no key \"id\" in a compute event, expected one"},
        {COMP("\"label\":\"x\""), 2, "a compute event without work, expected duration_s"},
        {HEADER "{\"id\":1,\"kind\":\"communication\",\"stream\":\"nccl\"}\n", 2,
         "a communication event without time, expected duration_s"},
        {HEADER "{\"id\":1,\"kind\":\"communication\",\"duration_s\":1}\n", 2,
         "no key \"stream\" in a communication event"},
        {HEADER "{\"id\":1,\"kind\":\"communication\",\"stream\":\"nccl\",\"flops\":1}\n", 2,
         "unknown key \"flops\" in a communication event"},
        {COMP("\"duration_s\":-0.5"), 2, "\"duration_s\" is -0.5, expected a number from 0 up"},
        {COMP("\"duration_s\":-0.0"), 2, "\"duration_s\" is -0.0, expected a number from 0 up"},
        {COMP("\"duration_s\":\"1\""), 2, "\"duration_s\" is \"1\", expected a number"},
        {COMP("\"duration_s\":null"), 2, "\"duration_s\" is null, expected a number"},
        {COMP("\"duration_s\":1,\"duration_by_rank_s\":[1,1,1,1,1,1,1,1]"), 2,
         "\"duration_s\" and \"duration_by_rank_s\", expected one"},
        {COMP("\"duration_s\":1e300"), 2,
         "\"duration_s\" is 1e+300, expected a number from 0 to 1000000 s"},
        {COMP("\"duration_s\":1000001"), 2, "\"duration_s\" is 1000001, expected"},
        {COMP("\"flops\":1e300"), 2, "\"flops\" is 1e+300, expected a number from 0 to 1e+21"},
        {COMP("\"hbm_bytes\":1e17"), 2,
         "\"hbm_bytes\" is 1e+17, expected a number from 0 to 9007199254740992 bytes"},
        {COMP("\"ranks\":[0,1],\"duration_by_rank_s\":[1,1e7]"), 2,
         "entry 1 of \"duration_by_rank_s\" is 10000000, expected a number from 0 to 1000000 s"},
        {COMP("\"duration_by_rank_s\":[1,1]"), 2,
         "2 entries of \"duration_by_rank_s\", expected 8, one a rank"},
        {COMP("\"ranks\":[0,1],\"duration_by_rank_s\":[1,-1]"), 2, "\"duration_by_rank_s\" is -1"},
        {COMP("\"flops\":1,\"stream\":\"gpu\""), 2,
         "stream \"gpu\", expected one of the header's streams"},
        {COMP("\"flops\":1,\"repeat\":0"), 2, "\"repeat\" is 0, expected an integer from 1"},
        {COMP("\"flops\":1,\"label\":\"\""), 2,
         "\"label\" is \"\", expected a string that is not empty"},
        {COMP("\"flops\":1,\"deps\":[1]"), 2,
         "dependency on id 1, expected the id of an earlier event"},
        {COMP("\"flops\":1,\"deps\":[7]"), 2,
         "dependency on id 7, expected the id of an earlier event"},
        {COMP("\"flops\":1,\"deps\":1"), 2, "\"deps\" is 1, expected an array"},
        {COMP("\"flops\":1,\"ranks\":[8]"), 2, "\"ranks\" is 8, expected an integer from 0 to 7"},
        {COMP("\"flops\":1,\"ranks\":[]"), 2,
         "\"ranks\" is an array of 0, expected an array of at least 1"},
        {COMP("\"flops\":1,\"ranks\":[1,0]"), 2, "rank 0 after 1, expected ranks in rising order"},
        {COMP("\"flops\":1,\"ranks\":[1,1]"), 2, "rank 1 after 1, expected ranks in rising order"},
        {COMP("\"flops\":1,\"ranks\":[[0,7,2]]"), 2,
         "range [0, 7, 2] in \"ranks\", expected the stride to lead from first to last"},
        {COMP("\"flops\":1,\"ranks\":[[0]]"), 2,
         "an array of 1 in \"ranks\", expected [first, last]"},
        {COMP("\"flops\":1,\"ranks\":[[0,7],[0,7]]"), 2, "more ranks than 8"},
        {HEADER C1 C1, 3, "id 1 was used before, expected a new one"},
    };

    EXPECT_ALL(cases);
}

static const struct wrong wrong_collectives[] = {
    {COLL(AG ",\"flops\":1"), 2, "unknown key \"flops\" in a collective"},
    {COLL("\"op\":\"all_gather\",\"group\":\"w\",\"dtype\":\"bf16\""), 2,
     "no key \"count\" in a collective"},
    {COLL("\"op\":\"gather\",\"group\":\"w\",\"dtype\":\"bf16\",\"count\":4"), 2,
     "\"op\" is \"gather\", expected all_gather, reduce_scatter"},
    {COLL("\"op\":\"all_gather\",\"group\":\"x\",\"dtype\":\"bf16\",\"count\":4"), 2,
     "\"group\" is \"x\", expected one of the header's groups"},
    {COLL("\"op\":\"all_gather\",\"group\":\"w\",\"dtype\":\"half\",\"count\":4"), 2,
     "\"dtype\" is \"half\", expected bf16, fp16"},
    {COLL("\"op\":\"all_gather\",\"group\":\"w\",\"dtype\":\"fp4\",\"count\":4"), 2,
     "\"dtype\" is \"fp4\", expected bf16"},
    {COLL("\"op\":\"all_gather\",\"group\":\"w\",\"dtype\":\"bf16\",\"count\":-4"), 2,
     "\"count\" is -4, expected an integer"},
    {COLL("\"op\":\"all_gather\",\"group\":\"w\",\"dtype\":\"bf16\",\"count\":1e3"), 2,
     "\"count\" is 1e3, expected an integer"},
    {COLL("\"op\":\"all_gather\",\"group\":\"w\",\"dtype\":\"bf16\",\"count\":9007199254740993"), 2,
     "\"count\" is 9007199254740993, expected an integer from 0 to 2^53"},
    {COLL("\"op\":\"all_gather\",\"group\":\"w\",\"dtype\":\"bf16\",\"count\":562949953421313"), 2,
     "\"count\" is 562949953421313, expected at most 2^53 bytes in the buffer, 562949953421312 "
     "elements"},
    {COLL(AG ",\"redop\":\"sum\""), 2, "a key \"redop\" with op all_gather, expected none"},
    {COLL("\"op\":\"all_reduce\",\"group\":\"w\",\"dtype\":\"bf16\",\"count\":4"), 2,
     "no key \"redop\" with op all_reduce, expected one"},
    {COLL("\"op\":\"all_reduce\",\"group\":\"w\",\"dtype\":\"bf16\",\"count\":4,\"redop\":"
          "\"mul\""),
     2, "\"redop\" is \"mul\", expected sum"},
    {COLL(AG ",\"root\":0"), 2, "a key \"root\" with op all_gather, expected none"},
    {COLL("\"op\":\"broadcast\",\"group\":\"w\",\"dtype\":\"bf16\",\"count\":4"), 2,
     "no key \"root\" with op broadcast, expected one"},
    {COLL("\"op\":\"broadcast\",\"group\":\"p\",\"dtype\":\"bf16\",\"count\":4,\"root\":2"), 2,
     "\"root\" is 2, expected an integer from 0 to 1"},
    {COLL("\"op\":\"alltoallv\",\"group\":\"p\",\"dtype\":\"bf16\",\"count\":4"), 2,
     "no key \"splits\" with op alltoallv, expected one"},
    {COLL("\"op\":\"alltoallv\",\"group\":\"p\",\"dtype\":\"bf16\",\"count\":4,\"splits\":"
          "\"no\""),
     2, "\"splits\" is \"no\", expected one of the header's splits"},
    {COLL("\"op\":\"alltoallv\",\"group\":\"w\",\"dtype\":\"bf16\",\"count\":4,\"splits\":"
          "\"s2\""),
     2, "splits \"s2\" of 2 members, expected 8 as in the group"},
    {COLL("\"op\":\"alltoallv\",\"group\":\"p\",\"dtype\":\"bf16\",\"count\":3,\"splits\":"
          "\"s2\""),
     2, "\"count\" is 3, expected 4, the largest entry of splits \"s2\""},
    {COLL(AG ",\"splits\":\"s2\""), 2, "a key \"splits\" with op all_gather, expected none"},
    {COLL(AG ",\"pairs\":[[0,1]]"), 2, "a key \"pairs\" with op all_gather, expected none"},
    {COLL("\"op\":\"sendrecv\",\"group\":\"w\",\"dtype\":\"bf16\",\"count\":4"), 2,
     "no key \"pairs\" with op sendrecv"},
    {COLL("\"op\":\"sendrecv\",\"group\":\"w\",\"dtype\":\"bf16\",\"count\":4,\"pairs\":[[0,8]"
          "]"),
     2, "\"pairs\" is 8, expected an integer from 0 to 7"},
    {COLL("\"op\":\"sendrecv\",\"group\":\"w\",\"dtype\":\"bf16\",\"count\":4,\"pairs\":[[1,1]"
          "]"),
     2, "pair [1, 1], expected two different members"},
    {COLL("\"op\":\"sendrecv\",\"group\":\"w\",\"dtype\":\"bf16\",\"count\":4,\"pairs\":[[0,1],"
          "[2,3],[0,1]]"),
     2, "pair [0, 1] twice, expected once"},
    {COLL("\"op\":\"sendrecv\",\"group\":\"w\",\"dtype\":\"bf16\",\"count\":4,\"pairs\":[[0]]"), 2,
     "an array of 1 in \"pairs\", expected [src, dst]"},
    {COLL("\"op\":\"all_gather\",\"group\":\"p\",\"dtype\":\"bf16\",\"count\":4,\"ranks\":[0,1,"
          "2]"),
     2, "\"ranks\" has 1 of 2 members of part 1 of group \"p\", expected all or none"},
    {COLL(AG ",\"recorded_s\":-1"), 2, "\"recorded_s\" is -1, expected a number from 0 up"},
    {COLL(AG ",\"recorded_s\":1e9"), 2,
     "\"recorded_s\" is 1e+09, expected a number from 0 to 1000000 s"},
    {COLL(AG ",\"samples\":[]"), 2, "\"samples\" is an array of 0"},
    {COLL(AG ",\"samples\":[\"\"]"), 2, "\"samples\" is \"\", expected a string that is not empty"},
    {COLL(AG ",\"samples\":[\"a\",\"class:b\"]"), 2, "a class among 2 samples, expected it alone"},
    {COLL(AG ",\"samples\":[\"class:\"]"), 2, "an empty name in \"samples\""},
    {HEAD "\"nranks\":8,\"streams\":[\"c\"],\"groups\":[{\"name\":\"w\",\"size\":8}]}\n{\"id\":"
          "2,\"kind\":\"collective\",\"stream\":\"c\"," AG ",\"samples\":[\"a\"]}\n",
     2, "\"samples\" in an event, expected a samples file in the header"},
    {HEAD "\"nranks\":8,\"streams\":[\"c\"],\"groups\":[{\"name\":\"w\",\"ranks\":[[0,1]]}]}\n{"
          "\"id\":2,\"kind\":\"collective\",\"stream\":\"c\"," AG ",\"ranks\":[0,1,5]}\n",
     2, "1 of \"ranks\" not in group \"w\", expected none"},
    {HEADER "{\"id\":2,\"kind\":\"collective\"," AG "}\n", 2, "no key \"stream\" in a collective"},
};

Test(trace, wrong_collectives_are_named)
{
    EXPECT_ALL(wrong_collectives);
}

Test(trace, unbalanced_loops_are_named)
{
    static const struct wrong cases[] = {
        {HEADER LOOP_END END(1), 2, "loop_end, expected a loop_begin before it"},
        {HEADER BEGIN C1 END(2), 4, "the end, expected a loop_end for the loop of line 2"},
        {HEADER C1 BEGIN LOOP_END END(3), 4, "an empty loop, expected events since line 3"},
        {HEADER "{\"kind\":\"loop_begin\"}\n", 2, "no key \"repeat\" in a loop_begin"},
        {HEADER "{\"kind\":\"loop_begin\",\"repeat\":0}\n", 2, "\"repeat\" is 0"},
        {HEADER "{\"kind\":\"loop_begin\",\"repeat\":2,\"id\":4}\n", 2,
         "unknown key \"id\" in a loop_begin, expected one of: kind, repeat, label"},
        {HEADER BEGIN BEGIN BEGIN BEGIN BEGIN BEGIN BEGIN BEGIN BEGIN BEGIN BEGIN BEGIN BEGIN BEGIN
             BEGIN BEGIN BEGIN,
         18, "loops nested more than 16 deep"},
    };

    EXPECT_ALL(cases);
}

static size_t gzip_text(unsigned char *out, size_t capacity, const char *text)
{
    z_stream z = {0};
    size_t n;

    cr_assert_eq(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (unsigned char *)(size_t)text;
    z.avail_in = (uInt)strlen(text);
    z.next_out = out;
    z.avail_out = (uInt)capacity;
    cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    n = z.total_out;
    deflateEnd(&z);
    return n;
}

Test(trace, gzip_cut_at_any_byte_is_an_error)
{
    unsigned char bytes[1024];
    char path[SCRATCH_PATH];
    struct zipccl_error error;
    size_t n = gzip_text(bytes, sizeof bytes, HEADER C1 END(1));

    cr_expect_eq(read_all(scratch_write(path, "t.jsonl.gz", bytes, n), &error), ZIPCCL_OK);
    for (size_t cut = 0; cut < n; cut++) {
        scratch_write(path, "t.jsonl.gz", bytes, cut);
        cr_expect_eq(read_all(path, &error), ZIPCCL_ERR_INPUT, "cut at %zu", cut);
        cr_expect(strstr(error.text, cut < 2 ? "no gzip header" : "gzip stream is cut") != NULL,
                  "cut at %zu: %s", cut, error.text);
    }
}

Test(trace, gzip_damage_and_garbage_are_errors)
{
    unsigned char bytes[2048];
    char path[SCRATCH_PATH];
    struct zipccl_error error;
    size_t n = gzip_text(bytes, 1024, HEADER C1 END(1));

    memcpy(bytes + n, "garbage", 7);
    scratch_write(path, "t.jsonl.gz", bytes, n + 7);
    cr_expect_eq(read_all(path, &error), ZIPCCL_ERR_INPUT);
    cr_expect(strstr(error.text, "bytes after the gzip stream, expected the end"), "%s",
              error.text);
    bytes[n - 8] ^= 1; /* CRC */
    scratch_write(path, "t.jsonl.gz", bytes, n);
    cr_expect_eq(read_all(path, &error), ZIPCCL_ERR_INPUT);
    cr_expect(strstr(error.text, "broken gzip stream: incorrect data check"), "%s", error.text);
    scratch_write(path, "t.jsonl.gz", HEADER C1 END(1), strlen(HEADER C1 END(1)));
    cr_expect_eq(read_all(path, &error), ZIPCCL_ERR_INPUT);
    cr_expect(strstr(error.text, "no gzip header, expected one by the name"), "%s", error.text);
}

Test(trace, gzip_members_in_a_row_are_one_text)
{
    unsigned char bytes[2048];
    char path[SCRATCH_PATH];
    struct zipccl_error error = {""};
    size_t n = gzip_text(bytes, 1024, HEADER "{\"id\":1,\"ki");

    n += gzip_text(bytes + n, 1024, "nd\":\"compute\",\"flops\":1}\n" END(1));
    scratch_write(path, "t.jsonl.gz", bytes, n);
    cr_expect_eq(read_all(path, &error), ZIPCCL_OK, "%s", error.text);
    /* gzip is known by its bytes, not by its name */
    scratch_write(path, "t.jsonl", bytes, n);
    cr_expect_eq(read_all(path, &error), ZIPCCL_OK, "%s", error.text);
}

Test(trace, a_line_over_the_limit_is_an_error)
{
    unsigned char *bytes;
    size_t text = ((size_t)64 << 20) + 1, n;
    char path[SCRATCH_PATH], *line = malloc(text + 1);
    struct zipccl_error error;

    cr_assert_not_null(line);
    memset(line, ' ', text);
    line[text] = '\0';
    bytes = malloc(1 << 20);
    cr_assert_not_null(bytes);
    n = gzip_text(bytes, 1 << 20, line);
    scratch_write(path, "t.jsonl.gz", bytes, n);
    cr_expect_eq(read_all(path, &error), ZIPCCL_ERR_INPUT);
    cr_expect(strstr(error.text, ":1: a line of more than 67108864 bytes"), "%s", error.text);
    free(bytes);
    free(line);
}

Test(trace, folders_hold_one_trace)
{
    char path[SCRATCH_PATH];
    struct zipccl_error error;

    cr_expect_eq(read_all("no/such/file", &error), ZIPCCL_ERR_IO);
    cr_expect_str_eq(error.text, "no/such/file: No such file or directory");
    cr_expect_eq(read_all(scratch_folder(), &error), ZIPCCL_ERR_INPUT);
    cr_expect(strstr(error.text, "a folder without trace.jsonl or trace.jsonl.gz"), "%s",
              error.text);
    scratch_write(path, "trace.jsonl", HEADER C1 END(1), strlen(HEADER C1 END(1)));
    cr_expect_eq(read_all(scratch_folder(), &error), ZIPCCL_OK);
    scratch_write(path, "trace.jsonl.gz", "x", 1);
    cr_expect_eq(read_all(scratch_folder(), &error), ZIPCCL_ERR_INPUT);
    cr_expect(strstr(error.text, "both trace.jsonl and trace.jsonl.gz"), "%s", error.text);
}
