/*
 * fuzz_archive.c - any bytes as an archive: refused, or imported into a trace that loads
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/fuzz/fuzz.h"
#include "traces/import.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char log_text[] =
    "h:1:7 [0] NCCL INFO AllGather: opCount a sendbuff 0x1 recvbuff 0x2 count 8 datatype 9 op 0 "
    "root 0 comm 0x1 [nranks=2] stream 0x5 task 0 globalrank 0\n";

static void check(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz_archive: %s\n", what);
    abort();
}

static void put(struct archive *a, const char *name, const char *text)
{
    struct archive_entry *e = archive_entry_new();

    archive_entry_set_pathname(e, name);
    archive_entry_set_filetype(e, AE_IFREG);
    archive_entry_set_perm(e, 0644);
    archive_entry_set_size(e, (la_int64_t)strlen(text));
    archive_write_header(a, e);
    archive_write_data(a, text, strlen(text));
    archive_entry_free(e);
}

size_t zipccl_fuzz_seed(unsigned i, uint8_t *out)
{
    struct archive *a;
    size_t n = 0;

    if (i > 1)
        return 0;
    a = archive_write_new();
    if (i == 1)
        archive_write_add_filter_gzip(a);
    archive_write_set_format_ustar(a);
    archive_write_set_bytes_in_last_block(a, 1);
    check(archive_write_open_memory(a, out, FUZZ_CAPACITY, &n) == ARCHIVE_OK, "no seed");
    put(a, "step/log.0", log_text);
    put(a, "step/readme", "no log\n");
    check(archive_write_close(a) == ARCHIVE_OK, "no seed");
    archive_write_free(a);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    const char *path = zipccl_fuzz_file(data, nbytes);
    struct zipccl_import_report report;
    struct zipccl_error error = {""};
    struct zipccl_trace *trace = NULL;
    char format[ZIPCCL_IMPORT_NAME_SIZE];
    zipccl_status status, found = zipccl_import_detect(path, format, sizeof format, &error);

    check(found == ZIPCCL_OK || error.text[0] != '\0', "an error without text");
    status = zipccl_import_to_memory(NULL, &path, 1, NULL, &report, &trace, &error);
    check(status == ZIPCCL_OK || status == ZIPCCL_ERR_INPUT || status == ZIPCCL_ERR_UNSUPPORTED,
          error.text);
    check((status == ZIPCCL_OK) == (trace != NULL), "a trace and an error");
    check(status != ZIPCCL_OK || found == ZIPCCL_OK, "imported, though it is of no format");
    zipccl_trace_destroy(trace);
    zipccl_import_report_free(&report);
    return 0;
}
