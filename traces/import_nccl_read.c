/*
 * import_nccl_read.c - the lines of an NCCL debug log that tell of calls and communicators
 *
 *   HOST:PID:TID [DEV] NCCL INFO AllGather: opCount 1f sendbuff 0x.. recvbuff 0x.. count 8
 *       datatype 9 op 0 root 0 comm 0x.. [nranks=4] stream 0x..
 *   HOST:PID:TID [DEV] NCCL INFO ncclCommInitRank comm 0x.. rank 0 nranks 4 .. commId 0x.. - Init COMPLETE
 *
 * opCount is hexadecimal.  RCCL puts "acc (nil)" in between and "globalrank 3" at the end.  What
 * stands before the host (srun's "3: ", time stamps) is skipped, as are all other lines.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_nccl.h"
#include "traces/lines.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    enum nccl_op op;
} ops[] = {{"AllReduce", NCCL_ALL_REDUCE},
           {"AllGather", NCCL_ALL_GATHER},
           {"ReduceScatter", NCCL_REDUCE_SCATTER},
           {"Broadcast", NCCL_BROADCAST},
           {"AlltoAll", NCCL_ALL_TO_ALL},
           {"AllToAll", NCCL_ALL_TO_ALL},
           {"Send", NCCL_SEND},
           {"Recv", NCCL_RECV},
           {"Reduce", NCCL_OTHER},
           {"Gather", NCCL_OTHER},
           {"Scatter", NCCL_OTHER}};

/* The number after 'word' and a space in 'text'; false if there is none. */
static bool number_after(const char *text, const char *word, int base, uint64_t *out)
{
    size_t n = strlen(word);
    char *end;

    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        if ((at > text && at[-1] != ' ' && at[-1] != '[') || (at[n] != ' ' && at[n] != '='))
            continue;
        if (strncmp(at + n + 1, "(nil)", 5) == 0) {
            *out = 0;
            return true;
        }
        *out = strtoull(at + n + 1, &end, base);
        return end > at + n + 1 && (*end == ' ' || *end == ']' || *end == '\0');
    }
    return false;
}

/* "host:pid" and the device of what stands before "NCCL INFO". */
static void process_name(const char *line, const char *info, char *out, size_t size)
{
    const char *end = info, *start, *colon;
    char device[16] = "";

    while (end > line && end[-1] == ' ')
        end--;
    if (end > line && end[-1] == ']') {
        start = end - 1;
        while (start > line && *start != '[')
            start--;
        snprintf(device, sizeof device, "%.*s", (int)(end - start), start);
        for (end = start; end > line && end[-1] == ' ';)
            end--;
    }
    for (start = end; start > line && start[-1] != ' ';)
        start--;
    /* The thread says nothing of the rank. */
    for (colon = end; colon > start && *colon != ':';)
        colon--;
    if (colon > start)
        end = colon;
    snprintf(out, size, "%.*s%s", (int)(end - start < 100 ? end - start : 100), start, device);
}

static struct nccl_process *find_process(struct nccl_log *log, const char *path, const char *name)
{
    struct nccl_process *p;

    for (size_t i = log->nprocesses; i-- > 0;)
        if (strcmp(log->processes[i].name, name) == 0) {
            if (log->processes[i].file != log->nfiles)
                log->processes[i].again = path;
            return &log->processes[i];
        }
    if (!kineto_grow(&log->processes, &log->room, log->nprocesses, sizeof *log->processes))
        return NULL;
    p = &log->processes[log->nprocesses++];
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "%s", name);
    p->path = path;
    p->file = log->nfiles;
    p->global_rank = KINETO_NONE;
    return p;
}

/* The newest communicator of that address: addresses are used again. */
static bool find_comm(struct nccl_process *p, uint64_t address, bool fresh, uint32_t *out)
{
    for (size_t i = p->ncomms; !fresh && i-- > 0;)
        if (p->comms[i].address == address) {
            *out = (uint32_t)i;
            return true;
        }
    if (p->ncomms >= KINETO_NONE ||
        !kineto_grow(&p->comms, &p->comm_room, p->ncomms, sizeof *p->comms))
        return false;
    p->comms[p->ncomms] = (struct nccl_comm){.address = address, .rank = KINETO_NONE};
    *out = (uint32_t)p->ncomms++;
    return true;
}

static bool find_stream(struct nccl_process *p, uint64_t address, uint32_t *out)
{
    for (size_t i = 0; i < p->nstreams; i++)
        if (p->streams[i] == address) {
            *out = (uint32_t)i + 1;
            return true;
        }
    if (!kineto_grow(&p->streams, &p->stream_room, p->nstreams, sizeof *p->streams))
        return false;
    p->streams[p->nstreams++] = address;
    *out = (uint32_t)p->nstreams;
    return true;
}

static bool find_op(const char *text, uint8_t *out)
{
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        size_t n = strlen(ops[i].name);

        if (strncmp(text, ops[i].name, n) == 0 && text[n] == ':') {
            *out = (uint8_t)ops[i].op;
            return true;
        }
    }
    return false;
}

/* False if memory is out; a line that lacks something is counted. */
static bool take_call(struct nccl_log *log, struct nccl_process *p, const char *text, uint64_t line)
{
    struct nccl_call c = {.line = line};
    uint64_t dtype, redop, root, comm, nranks, stream = 0, rank;

    if (!find_op(text, &c.op) || !number_after(text, "opCount", 16, &c.number) ||
        !number_after(text, "count", 10, &c.count) || !number_after(text, "datatype", 10, &dtype) ||
        !number_after(text, "op", 10, &redop) || !number_after(text, "root", 10, &root) ||
        !number_after(text, "comm", 16, &comm) || dtype >= ZIPCCL_NUM_DTYPES ||
        c.count > ZIPCCL_JSON_MAX_INTEGER / 64 || root >= KINETO_NONE) {
        log->first_broken = log->nbroken++ == 0 ? line : log->first_broken;
        return true;
    }
    number_after(text, "stream", 16, &stream);
    c.dtype = (uint8_t)dtype;
    /* From 5 on they are products with a scalar of the user, then sums. */
    c.redop = (uint8_t)(redop < ZIPCCL_NUM_REDOPS ? redop : ZIPCCL_AVG);
    c.peer = (uint32_t)root;
    if (number_after(text, "globalrank", 10, &rank) && rank < KINETO_NONE)
        p->global_rank = (uint32_t)rank;
    if (!find_comm(p, comm, false, &c.comm) || !find_stream(p, stream, &c.stream) ||
        !kineto_grow(&p->calls, &p->call_room, p->ncalls, sizeof *p->calls))
        return false;
    if (number_after(text, "nranks", 10, &nranks) && nranks < KINETO_NONE)
        p->comms[c.comm].nranks = (uint32_t)nranks;
    p->calls[p->ncalls++] = c;
    return true;
}

static bool take_init(struct nccl_process *p, const char *text)
{
    uint64_t comm, rank, nranks, id;
    uint32_t index;

    if (!number_after(text, "comm", 16, &comm) || !number_after(text, "rank", 10, &rank) ||
        !number_after(text, "nranks", 10, &nranks) || !number_after(text, "commId", 16, &id) ||
        nranks >= KINETO_NONE || rank >= nranks)
        return true;
    if (!find_comm(p, comm, true, &index))
        return false;
    p->comms[index] = (struct nccl_comm){comm, id, (uint32_t)nranks, (uint32_t)rank};
    return true;
}

static zipccl_status take_line(struct nccl_log *log, const char *path, const char *text, size_t n,
                               uint64_t number)
{
    static const char mark[] = "NCCL INFO ";
    struct zipccl_place at = {path, number, log->importer->error};
    char line[1024], name[128];
    struct nccl_process *p;
    const char *info;
    bool done;

    snprintf(line, sizeof line, "%.*s", (int)(n < 1000 ? n : 1000), text);
    line[strcspn(line, "\r")] = '\0';
    info = strstr(line, mark);
    if (info == NULL ||
        (strstr(info, ": opCount ") == NULL && strstr(info, "Init COMPLETE") == NULL))
        return ZIPCCL_OK;
    process_name(line, info, name, sizeof name);
    p = find_process(log, path, name);
    if (p == NULL)
        return zipccl_place_nomem(&at);
    info += strlen(mark);
    done =
        strstr(info, ": opCount ") != NULL ? take_call(log, p, info, number) : take_init(p, info);
    return done ? ZIPCCL_OK : zipccl_place_nomem(&at);
}

zipccl_status nccl_read(struct nccl_log *log, const char *const *path)
{
    struct zipccl_lines *lines;
    zipccl_status status;
    const char *line;
    size_t n;

    ZIPCCL_TRY(zipccl_lines_open(*path, &lines, log->importer->error));
    do {
        status = zipccl_lines_next(lines, &line, &n, log->importer->error);
        if (status == ZIPCCL_OK && line != NULL)
            status = take_line(log, *path, line, n, zipccl_lines_number(lines));
    } while (status == ZIPCCL_OK && line != NULL);
    log->nfiles++;
    log->nlines += zipccl_lines_number(lines);
    zipccl_lines_close(lines);
    return status;
}

void nccl_free(struct nccl_log *log)
{
    for (size_t i = 0; i < log->nprocesses; i++) {
        free(log->processes[i].comms);
        free(log->processes[i].calls);
        free(log->processes[i].streams);
    }
    free(log->processes);
}
