/*
 * fuzz_trace.c - any bytes as a trace: refused, or read, summed up, and written back the same
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/fuzz/fuzz.h"
#include "traces/info.h"
#include "traces/iterate.h"
#include "traces/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static const char text[] =
    "{\"format\":\"zipccl-trace\",\"version\":1,\"name\":\"f\",\"provenance\":\"generated\","
    "\"generator\":\"f\",\"nranks\":8,\"ranks_per_node\":4,\"recorded_step_s\":1.5,"
    "\"tokens_per_step\":10,\"streams\":[\"c\",\"n\"],\"groups\":[{\"name\":\"w\",\"size\":8},"
    "{\"name\":\"d\",\"size\":2,\"stride\":4},{\"name\":\"o\",\"ranks\":[[1,0],[2,5]]}],"
    "\"splits\":[{\"name\":\"s\",\"counts\":[[1,2],[3,4]]}]}\n"
    "{\"id\":1,\"kind\":\"compute\",\"flops\":1e9,\"hbm_bytes\":5,\"label\":\"x\",\"repeat\":2}\n"
    "{\"kind\":\"loop_begin\",\"repeat\":3}\n"
    "{\"id\":2,\"kind\":\"compute\",\"ranks\":[[0,4,2],5],\"duration_by_rank_s\":[1,2,3,4]}\n"
    "{\"id\":3,\"kind\":\"collective\",\"op\":\"all_reduce\",\"group\":\"d\",\"dtype\":\"bf16\","
    "\"count\":9,\"redop\":\"avg\",\"stream\":\"n\",\"deps\":[1,2],\"ranks\":[0,4]}\n"
    "{\"kind\":\"loop_end\"}\n"
    "{\"id\":4,\"kind\":\"collective\",\"op\":\"alltoallv\",\"group\":\"o\",\"dtype\":\"fp32\","
    "\"count\":4,\"splits\":\"s\",\"stream\":\"n\",\"recorded_s\":0.5}\n"
    "{\"id\":5,\"kind\":\"collective\",\"op\":\"sendrecv\",\"group\":\"w\",\"dtype\":\"int8\","
    "\"count\":4,\"pairs\":[[0,1],[1,0]],\"stream\":\"n\"}\n"
    "{\"id\":6,\"kind\":\"collective\",\"op\":\"broadcast\",\"group\":\"w\",\"dtype\":\"fp8_e4m3\","
    "\"count\":4,\"root\":7,\"stream\":\"c\"}\n"
    "{\"kind\":\"end\",\"events\":8}\n";

size_t zipccl_fuzz_seed(unsigned i, uint8_t *out)
{
    z_stream z = {0};

    if (i == 0) {
        memcpy(out, text, sizeof text - 1);
        return sizeof text - 1;
    }
    if (i > 1 || deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        return 0;
    z.next_in = (z_const Bytef *)text;
    z.avail_in = sizeof text - 1;
    z.next_out = out;
    z.avail_out = FUZZ_CAPACITY;
    deflate(&z, Z_FINISH);
    deflateEnd(&z);
    return z.total_out;
}

static void check(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz_trace: %s\n", what);
    abort();
}

/* What was read can be written, and is read back as the same number of events and the same name. */
static void write_back(const struct zipccl_trace *trace, const char *path)
{
    struct zipccl_trace_writer *writer;
    struct zipccl_error error = {""};
    struct zipccl_trace *again;

    check(zipccl_trace_writer_open(path, &trace->header, &writer, &error) == ZIPCCL_OK, error.text);
    for (size_t i = 0; i < trace->nevents; i++)
        check(zipccl_trace_write(writer, &trace->events[i], &error) == ZIPCCL_OK, error.text);
    check(zipccl_trace_writer_finish(writer, 1, &error) == ZIPCCL_OK, error.text);
    check(zipccl_trace_load(path, &again, &error) == ZIPCCL_OK, error.text);
    check(again->nevents == trace->nevents, "another number of events");
    check(strcmp(again->header.name, trace->header.name) == 0, "another name");
    zipccl_trace_destroy(again);
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    const char *path = zipccl_fuzz_file(data, nbytes);
    struct zipccl_error error = {""};
    struct zipccl_trace_reader *reader;
    struct zipccl_trace_info info;
    struct zipccl_trace *trace;
    char copy[96];

    if (zipccl_trace_load(path, &trace, &error) != ZIPCCL_OK) {
        check(error.text[0] != '\0', "an error without text");
        return 0;
    }
    snprintf(copy, sizeof copy, "%s-copy", path);
    write_back(trace, copy);
    zipccl_trace_expand(trace, NULL, NULL, NULL, &error);
    zipccl_trace_destroy(trace);
    check(zipccl_trace_open(path, &reader, &error) == ZIPCCL_OK, "it opened before");
    if (zipccl_trace_info_read(reader, &info, &error) == ZIPCCL_OK)
        zipccl_trace_info_free(&info);
    zipccl_trace_close(reader);
    return 0;
}
