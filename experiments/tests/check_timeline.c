/*
 * check_timeline.c - checks a timeline file against the result of the same replay
 *
 * check_timeline TIMELINE RESULT MODE    MODE is raw, compressed or adaptive; TIMELINE may be gzip
 *
 * Events of a track do not overlap and are in order; every track has a name; collectives carry
 * Kineto's keys; if all ranks are shown, durations add up to the rows' times and the step's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/document.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { MAX_BYTES = 1 << 26, MAX_RANKS = 256, MAX_TRACKS = 16, MAX_ROWS = 64 };

static int failures;

struct row {
    long long ns[MAX_RANKS];
    double wire[MAX_RANKS];
    unsigned calls[MAX_RANKS];
};

static struct {
    long long end[MAX_RANKS][MAX_TRACKS]; /* of the last event, ns */
    char stream[MAX_RANKS][MAX_TRACKS][64];
    bool process[MAX_RANKS];
    struct row rows[MAX_ROWS];
    long long last;
    unsigned nevents, ncollectives;
} seen;

static void fail(const char *what, const char *name)
{
    if (failures++ < 10)
        fprintf(stderr, "check_timeline: %s: %s\n", what, name);
}

static yajl_val read_document(const char *path, char *text)
{
    struct zipccl_error error = {""};
    gzFile file = gzopen(path, "rb");
    int n = file != NULL ? gzread(file, text, MAX_BYTES) : -1;
    yajl_val document = NULL;

    if (file == NULL || gzclose(file) != Z_OK || n < 0 || n == MAX_BYTES ||
        zipccl_document_parse(text, (size_t)n, &document, &error) != ZIPCCL_OK) {
        fprintf(stderr, "check_timeline: %s: %s\n", path, error.text);
        exit(1);
    }
    return document;
}

/* Our name of a torch type, for matching with rows. */
static const char *dtype_name(const char *torch)
{
    static const char *const names[][2] = {
        {"BFloat16", "bf16"}, {"Half", "fp16"}, {"Float", "fp32"}, {"Double", "fp64"},
        {"Long", "int64"},    {"Int", "int32"}, {"Byte", "uint8"}, {"Char", "int8"}};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i][0], torch) == 0)
            return names[i][1];
    return "?";
}

static size_t find_row(yajl_val result, yajl_val args, const char *stream)
{
    size_t n = zipccl_document_length(result, "rows");

    for (size_t i = 0; i < n && i < MAX_ROWS; i++) {
        yajl_val row = zipccl_document_item(result, "rows", i);

        if (strcmp(zipccl_document_text(row, "op"), zipccl_document_text(args, "op")) == 0 &&
            strcmp(zipccl_document_text(row, "group"),
                   zipccl_document_text(args, "Process Group Description")) == 0 &&
            strcmp(zipccl_document_text(row, "dtype"),
                   dtype_name(zipccl_document_text(args, "dtype"))) == 0 &&
            strcmp(zipccl_document_text(row, "stream"), stream) == 0 &&
            zipccl_document_number(row, "count") == zipccl_document_number(args, "count"))
            return i;
    }
    return MAX_ROWS;
}

/* What a rank sends and receives, worked out from the op anew. */
static void check_elements(yajl_val args, const char *name)
{
    const char *op = zipccl_document_text(args, "op");
    double n = zipccl_document_number(args, "Group size");
    double count = zipccl_document_number(args, "count");
    double in = zipccl_document_number(args, "In msg nelems");
    double out = zipccl_document_number(args, "Out msg nelems");
    bool right = true;

    if (strcmp(op, "all_gather") == 0)
        right = in == count && out == n * count;
    else if (strcmp(op, "reduce_scatter") == 0)
        right = in == n * count && out == count;
    else if (strcmp(op, "all_reduce") == 0 || strcmp(op, "broadcast") == 0)
        right = in == count && out == count;
    else if (strcmp(op, "alltoall") == 0)
        right = in == n * count && out == n * count;
    if (!right)
        fail("elements in and out", name);
}

static void check_args(yajl_val args, const char *name)
{
    static const char *const keys[] = {"Collective name",
                                       "In msg nelems",
                                       "Out msg nelems",
                                       "Group size",
                                       "dtype",
                                       "In split size",
                                       "Out split size",
                                       "Process Group Name",
                                       "External id",
                                       "Rank",
                                       "Process Group Ranks",
                                       "Process Group Description",
                                       "device",
                                       "stream",
                                       "raw_bytes",
                                       "wire_bytes",
                                       "ratio",
                                       "strategy",
                                       "wait_us",
                                       NULL};
    double raw = zipccl_document_number(args, "raw_bytes");
    double wire = zipccl_document_number(args, "wire_bytes");
    double ratio = zipccl_document_number(args, "ratio");

    for (size_t i = 0; keys[i] != NULL; i++)
        if (zipccl_document_get(args, keys[i]) == NULL)
            fail("a collective has no key", keys[i]);
    if (wire > 0 && !(fabs(ratio - raw / wire) <= 1e-9 * ratio))
        fail("ratio is not raw_bytes / wire_bytes", name);
    if (strcmp(dtype_name(zipccl_document_text(args, "dtype")), "?") == 0)
        fail("unknown dtype", zipccl_document_text(args, "dtype"));
    check_elements(args, name);
}

static void add_collective(yajl_val result, yajl_val event, unsigned rank, unsigned track,
                           long long ns)
{
    yajl_val args = zipccl_document_get(event, "args");
    const char *name = zipccl_document_text(event, "name");
    size_t row = find_row(result, args, seen.stream[rank][track]);

    check_args(args, name);
    seen.ncollectives++;
    if (row == MAX_ROWS) {
        fail("no row for a collective", name);
        return;
    }
    seen.rows[row].ns[rank] += ns;
    seen.rows[row].calls[rank]++;
    seen.rows[row].wire[rank] += zipccl_document_number(args, "wire_bytes");
}

static void check_event(yajl_val result, yajl_val event)
{
    double pid = zipccl_document_number(event, "pid"), tid = zipccl_document_number(event, "tid");
    const char *ph = zipccl_document_text(event, "ph");
    const char *name = zipccl_document_text(event, "name");

    if (!(pid >= 0 && pid < MAX_RANKS && tid >= 0 && tid < MAX_TRACKS)) {
        fail("pid or tid", name);
        return;
    }
    unsigned rank = (unsigned)pid, track = (unsigned)tid;
    if (strcmp(ph, "M") == 0) {
        const char *text = zipccl_document_text(zipccl_document_get(event, "args"), "name");

        if (strcmp(name, "process_name") == 0)
            seen.process[rank] = true;
        /* "stream 2 nccl:ep" */
        if (strcmp(name, "thread_name") == 0 &&
            sscanf(text, "stream %*d %63[^\n]", seen.stream[rank][track]) != 1)
            fail("thread_name", text);
        return;
    }
    long long start = llround(1e3 * zipccl_document_number(event, "ts"));
    long long ns = llround(1e3 * zipccl_document_number(event, "dur"));
    const char *cat = zipccl_document_text(event, "cat");

    if (strcmp(ph, "X") != 0 || ns < 0 || start < seen.end[rank][track])
        fail("events of a track overlap or are out of order", name);
    if (!seen.process[rank] || seen.stream[rank][track][0] == '\0')
        fail("a track has no name", name);
    seen.end[rank][track] = start + ns;
    if (start + ns > seen.last)
        seen.last = start + ns;
    seen.nevents++;
    if (strncmp(name, "ncclDevKernel_", 14) == 0)
        add_collective(result, event, rank, track, ns);
    if (strcmp(cat, "kernel") != 0 && (strcmp(cat, "wait") != 0 || strncmp(name, "wait: ", 6) != 0))
        fail("category", cat);
}

/*
 * A row's time is that of the rank with the largest sum, its calls and bytes are those of the first
 * rank with most calls.
 */
static void check_sums(yajl_val result, const char *mode)
{
    char key[64];

    snprintf(key, sizeof key, "time_%s_s", mode);
    for (size_t i = 0; i < zipccl_document_length(result, "rows") && i < MAX_ROWS; i++) {
        yajl_val row = zipccl_document_item(result, "rows", i);
        double calls = zipccl_document_number(row, "calls");
        unsigned busiest = 0;
        long long most = 0;

        for (unsigned r = 0; r < MAX_RANKS; r++) {
            most = seen.rows[i].ns[r] > most ? seen.rows[i].ns[r] : most;
            busiest = seen.rows[i].calls[r] > seen.rows[i].calls[busiest] ? r : busiest;
        }
        if (!(fabs(1e-9 * (double)most - zipccl_document_number(row, key)) <= 1e-9 * (calls + 1)))
            fail("durations do not add up to the row's time", zipccl_document_text(row, "op"));
        if (seen.rows[i].calls[busiest] != calls)
            fail("calls are not the row's", zipccl_document_text(row, "op"));
        if (strcmp(mode, "adaptive") == 0 &&
            !(fabs(seen.rows[i].wire[busiest] - zipccl_document_number(row, "wire_bytes")) <=
              1e-9 * seen.rows[i].wire[busiest] + 1))
            fail("bytes do not add up to the row's", zipccl_document_text(row, "op"));
    }
}

static void check_whole(yajl_val timeline, yajl_val result, const char *mode)
{
    yajl_val own = zipccl_document_get(timeline, "zipccl");
    bool all = zipccl_document_number(own, "ranks") == zipccl_document_number(own, "ranks_shown");
    double step = zipccl_document_number(own, "step_time_s");
    char key[64];

    snprintf(key, sizeof key, "step_time_%s_s", mode);
    if (step != zipccl_document_number(zipccl_document_get(result, "totals"), key) ||
        strcmp(zipccl_document_text(own, "mode"), mode) != 0 ||
        strcmp(zipccl_document_text(own, "kind"), "simulated") != 0)
        fail("mode or step time", mode);
    if (zipccl_document_length(zipccl_document_get(timeline, "distributedInfo"), "pg_config") == 0)
        fail("no groups", "distributedInfo");
    if (seen.ncollectives == 0)
        fail("no collectives", mode);
    if (all && !(fabs(1e-9 * (double)seen.last - step) <= 2e-9))
        fail("the last event does not end the step", mode);
    if (all)
        check_sums(result, mode);
}

int main(int argc, char **argv)
{
    char *text = malloc(MAX_BYTES);

    if (argc != 4 || text == NULL) {
        fprintf(stderr, "usage: check_timeline TIMELINE RESULT MODE\n");
        return 2;
    }
    yajl_val result = read_document(argv[2], text);
    yajl_val timeline = read_document(argv[1], text);

    for (size_t i = 0; i < zipccl_document_length(timeline, "traceEvents"); i++)
        check_event(result, zipccl_document_item(timeline, "traceEvents", i));
    check_whole(timeline, result, argv[3]);
    yajl_tree_free(timeline);
    yajl_tree_free(result);
    free(text);
    if (failures == 0)
        printf("%u events, %u collectives: ok\n", seen.nevents, seen.ncollectives);
    return failures != 0;
}
