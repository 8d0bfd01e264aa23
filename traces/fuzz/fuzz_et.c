/*
 * fuzz_et.c - any bytes as an execution trace of PyTorch: refused, or imported into a trace that loads
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/fuzz/fuzz.h"
#include "traces/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMS "\"name\":\"record_param_comms\""

static const char *const seeds[] = {
    "{\"schema\":\"1.0.1\",\"nodes\":[{\"id\":5," COMMS
    ",\"inputs\":[[4,5,0,40,4,\"cuda:0\"],11,55,0,\"all_to_allv\",[30,10],[5,5]],"
    "\"input_types\":[\"Tensor(float)\"],\"outputs\":[]},{\"id\":6," COMMS
    ",\"inputs\":[11,0,0,\"wait\",[],[]]}]}",
    "{\"schema\":\"1.1.0\",\"nodes\":[{\"id\":1,\"name\":\"## process_group:init ##\",\"inputs\":{"
    "\"values\":[\"[{\\\"pg_name\\\": \\\"0\\\", \\\"ranks\\\": [0, 2], \\\"group_size\\\": "
    "2}]\"]}},"
    "{\"id\":5," COMMS ",\"inputs\":{\"values\":[[[4,5,0,9,4,\"cuda:0\"]],1,[\"0\",\"dp\"],0,"
    "\"send\",[],[],0,2,2],\"types\":[\"Tensor(int)\"]},\"outputs\":{\"values\":[]},\"attrs\":["
    "{\"name\":\"collective_name\",\"value\":\"allreduce\"},{\"name\":\"dtype\",\"value\":"
    "\"Half\"},{\"name\":\"in_msg_nelems\",\"value\":12}]}]}",
};

size_t zipccl_fuzz_seed(unsigned i, uint8_t *out)
{
    if (i >= sizeof seeds / sizeof seeds[0])
        return 0;
    memcpy(out, seeds[i], strlen(seeds[i]));
    return strlen(seeds[i]);
}

static void check(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz_et: %s\n", what);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    const char *path = zipccl_fuzz_file(data, nbytes);
    struct zipccl_import_report report;
    struct zipccl_error error = {""};
    struct zipccl_trace *trace = NULL;
    zipccl_status status =
        zipccl_import_to_memory("pytorch-et", &path, 1, NULL, &report, &trace, &error);

    check(status == ZIPCCL_OK || status == ZIPCCL_ERR_INPUT || status == ZIPCCL_ERR_UNSUPPORTED,
          error.text);
    check((status == ZIPCCL_OK) == (trace != NULL), "a trace and an error");
    check(status == ZIPCCL_OK || error.text[0] != '\0', "an error without text");
    check(status != ZIPCCL_OK || report.ncollectives > 0, "nothing imported");
    zipccl_trace_destroy(trace);
    zipccl_import_report_free(&report);
    return 0;
}
