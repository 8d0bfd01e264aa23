/*
 * import.c - an import that must end well, whatever the files hold
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/fuzz/fuzz_import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void zipccl_fuzz_check(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz: %s\n", what);
    abort();
}

size_t zipccl_fuzz_seed_of(const char *const *seeds, size_t n, unsigned i, uint8_t *out)
{
    if (i >= n)
        return 0;
    memcpy(out, seeds[i], strlen(seeds[i]));
    return strlen(seeds[i]);
}

void zipccl_fuzz_import(const char *format, const char *const *paths, size_t n,
                        const struct zipccl_import_options *options)
{
    struct zipccl_import_report report;
    struct zipccl_error error = {""};
    struct zipccl_trace *trace = NULL;
    zipccl_status status =
        zipccl_import_to_memory(format, paths, n, options, &report, &trace, &error);

    zipccl_fuzz_check(status == ZIPCCL_OK || status == ZIPCCL_ERR_INPUT ||
                          status == ZIPCCL_ERR_UNSUPPORTED,
                      error.text);
    zipccl_fuzz_check((status == ZIPCCL_OK) == (trace != NULL), "a trace and an error");
    zipccl_fuzz_check(status == ZIPCCL_OK || error.text[0] != '\0', "an error without text");
    zipccl_fuzz_check(status != ZIPCCL_OK || report.ncollectives > 0, "nothing imported");
    zipccl_trace_destroy(trace);
    zipccl_import_report_free(&report);
}
