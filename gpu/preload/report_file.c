/*
 * report_file.c - what was counted, as JSON in a file
 *
 * Schema "zipccl-preload" version 1.  Written beside its place and renamed, so that who reads it sees a
 * whole one; what is no file, such as /dev/null, is written to and stays what it is.  Names of communicators are the only text that is not ours.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/counts.h"
#include "gpu/preload/log.h"
#include "gpu/preload/report.h"
#include "gpu/preload/shim.h"
#include "gpu/preload/totals.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A JSON string; control characters and what is no ASCII become '?'. */
static void put_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        fputc(*text >= ' ' && *text <= '~' ? *text : '?', out);
    }
    fputc('"', out);
}

static void put_reasons(FILE *out, const uint64_t *reasons)
{
    const char *comma = "";

    fputs("{", out);
    for (int r = 0; r < ZIPCCL_SHIM_NUM_REASONS; r++) {
        if (reasons[r] == 0)
            continue;
        fprintf(out, "%s\"%s\": %" PRIu64, comma,
                zipccl_shim_reason_text((enum zipccl_shim_reason)r), reasons[r]);
        comma = ", ";
    }
    fputs("}", out);
}

static void put_ops(FILE *out, const struct zipccl_shim_totals *t)
{
    const char *comma = "";

    fputs("  \"ops\": [", out);
    for (int op = 0; op < ZIPCCL_SHIM_NUM_OPS; op++) {
        if (t->calls[op] == 0)
            continue;
        fprintf(out,
                "%s\n    {\"op\": \"%s\", \"calls\": %" PRIu64 ", \"bytes\": %" PRIu64
                ", \"verified\": %" PRIu64 ", \"different\": %" PRIu64
                ", \"not_verified\": %" PRIu64 ", \"became\": ",
                comma, zipccl_shim_op_name((enum zipccl_shim_op)op), t->calls[op], t->bytes[op],
                t->checks[op][ZIPCCL_SHIM_EQUAL], t->checks[op][ZIPCCL_SHIM_DIFFERENT],
                t->checks[op][ZIPCCL_SHIM_UNCHECKED]);
        put_reasons(out, t->reasons[op]);
        fputs("}", out);
        comma = ",";
    }
    fputs("],\n", out);
}

static void put_coded(FILE *out, const struct zipccl_shim_totals *t)
{
    const char *comma = "";

    fputs("  \"back_end\": [", out);
    for (int op = 0; op < ZIPCCL_NUM_OPS; op++) {
        const struct zipccl_gpu_op_stats *s = &t->coded[op];

        if (s->calls == 0)
            continue;
        fprintf(out,
                "%s\n    {\"op\": \"%s\", \"calls\": %" PRIu64 ", \"compressed\": %" PRIu64
                ", \"raw_bytes\": %" PRIu64 ", \"wire_bytes\": %" PRIu64
                ", \"compressed_raw_bytes\": %" PRIu64 ", \"compressed_wire_bytes\": %" PRIu64
                ", \"overflows\": %" PRIu64 ", \"raw_resends\": %" PRIu64 ", \"not_compressed\": {",
                comma, zipccl_op_name((enum zipccl_op)op), s->calls,
                s->reasons[ZIPCCL_GPU_COMPRESSED], s->raw_bytes, s->wire_bytes, s->coded_raw_bytes,
                s->coded_wire_bytes, s->overflows, s->raw_resends);
        comma = "";
        for (int r = ZIPCCL_GPU_COMPRESSED + 1; r < ZIPCCL_GPU_NUM_REASONS; r++) {
            if (s->reasons[r] == 0)
                continue;
            fprintf(out, "%s\"%s\": %" PRIu64, comma,
                    zipccl_shim_back_end_reason((enum zipccl_gpu_reason)r), s->reasons[r]);
            comma = ", ";
        }
        fputs("}}", out);
        comma = ",";
    }
    fputs("],\n", out);
}

static void put_comm(FILE *out, struct zipccl_shim_comm *comm)
{
    int stopped = __atomic_load_n(&comm->stopped, __ATOMIC_RELAXED);
    const char *comma = "";

    fputs("\n    {\"name\": ", out);
    put_string(out, comm->name);
    fprintf(out,
            ", \"communicators\": %zu, \"rank\": %d, \"ranks\": %d, \"nodes\": %u, "
            "\"collectives\": %" PRIu64 ", \"plain\": \"%s\", \"stopped\": \"%s\", \"kinds\": [",
            comm->ncomms, comm->rank, comm->nranks,
            comm->topology != NULL ? comm->topology->nnodes : 0,
            __atomic_load_n(&comm->collectives, __ATOMIC_RELAXED),
            comm->plain != ZIPCCL_SHIM_TAKEN ? zipccl_shim_reason_text(comm->plain) : "",
            stopped != ZIPCCL_SHIM_TAKEN ? zipccl_shim_reason_text((enum zipccl_shim_reason)stopped)
                                         : "");
    pthread_mutex_lock(&comm->lock);
    for (size_t i = 0; i < comm->counts.nkinds; i++) {
        const struct zipccl_shim_kind *k = &comm->counts.kinds[i];

        fprintf(out,
                "%s\n      {\"op\": \"%s\", \"dtype\": \"%s\", \"bytes_from\": %" PRIu64
                ", \"calls\": %" PRIu64 ", \"elements\": %" PRIu64 ", \"bytes\": %" PRIu64 "}",
                comma, zipccl_shim_op_name((enum zipccl_shim_op)k->op),
                zipccl_dtype_name((enum zipccl_dtype)k->dtype),
                k->bytes > 0 ? UINT64_C(1) << k->size_class : 0, k->calls, k->elements, k->bytes);
        comma = ",";
    }
    pthread_mutex_unlock(&comm->lock);
    fputs("]}", out);
}

static void put_all(FILE *out)
{
    const struct zipccl_shim_settings *settings = &zipccl_shim.settings;
    const struct zipccl_nccl *nccl = zipccl_nccl_get();
    struct zipccl_shim_totals totals = {0};
    struct zipccl_shim_comm *first = zipccl_shim_comms_lock();
    const char *comma = "";

    for (struct zipccl_shim_comm *c = first; c != NULL; c = zipccl_shim_comms_next(c))
        zipccl_shim_totals_add(&totals, c);
    fprintf(out,
            "{\n  \"schema\": \"zipccl-preload\", \"schema_version\": 1,\n  \"mode\": \"%s\", "
            "\"rank\": %d, \"world\": %d, \"pid\": %d, \"nccl_version\": %d,\n  \"nccl\": ",
            zipccl_shim_mode_name(settings->mode), settings->rank, settings->world, (int)getpid(),
            nccl->version);
    put_string(out, nccl->path);
    fputs(",\n", out);
    put_ops(out, &totals);
    put_coded(out, &totals);
    fputs("  \"communicators\": [", out);
    for (struct zipccl_shim_comm *c = first; c != NULL; c = zipccl_shim_comms_next(c)) {
        fputs(comma, out);
        put_comm(out, c);
        comma = ",";
    }
    zipccl_shim_comms_unlock();
    fputs("]\n}\n", out);
}

/* A device, or a pipe that somebody reads: a pipe without a reader is an error, not a wait. */
static FILE *open_as_it_is(const char *path)
{
    int file = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    FILE *out = NULL;

    if (file >= 0 && fcntl(file, F_SETFL, 0) == 0)
        out = fdopen(file, "w");
    if (file >= 0 && out == NULL)
        (void)close(file);
    return out;
}

/* 'draft' is "" if there is none. */
static FILE *open_out(const char *path, char *draft, size_t room)
{
    struct stat info;

    draft[0] = '\0';
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return open_as_it_is(path);
    (void)snprintf(draft, room, "%s.%d.tmp", path, (int)getpid());
    return fopen(draft, "we");
}

void zipccl_shim_report_file(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    char path[600], draft[640];
    bool ok = false;
    FILE *out;

    if (zipccl_shim.settings.stats_file[0] == '\0')
        return;
    zipccl_log_expand(zipccl_shim.settings.stats_file, path, sizeof path);
    pthread_mutex_lock(&lock);
    out = open_out(path, draft, sizeof draft);
    if (out != NULL) {
        put_all(out);
        ok = ferror(out) == 0;
        ok = fclose(out) == 0 && ok && (draft[0] == '\0' || rename(draft, path) == 0);
        if (!ok && draft[0] != '\0')
            (void)unlink(draft);
    }
    if (!ok)
        zipccl_log_warn_once("stats file", "ZIPCCL_STATS_FILE: cannot write %s: %s", path,
                             strerror(errno));
    pthread_mutex_unlock(&lock);
}
