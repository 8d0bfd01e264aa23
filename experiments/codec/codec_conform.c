/*
 * codec_conform.c - runs the format's test vectors through any decoder
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/codec/codec_conform.h"

#include "experiments/codec/filter_process.h"
#include "experiments/program/json_put.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void fail(struct zipccl_verdict *verdict, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void fail(struct zipccl_verdict *verdict, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(verdict->reason, sizeof verdict->reason, format, args);
    va_end(args);
    verdict->passed = false;
}

/* The first line of what it wrote to standard error, after a colon; "" if nothing. */
static const char *said(const struct zipccl_filter_result *run, char line[260])
{
    size_t n = strcspn(run->said, "\r\n");

    line[0] = '\0';
    if (n > 0)
        snprintf(line, 260, ": %.*s", (int)n, run->said);
    for (char *p = line; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    return line;
}

static void compare(struct zipccl_verdict *verdict, const uint8_t *output, size_t nbytes)
{
    const struct zipccl_vector *v = verdict->vector;
    size_t at = 0;

    while (at < nbytes && at < v->elements_nbytes && output[at] == v->elements[at])
        at++;
    if (at < nbytes && at < v->elements_nbytes)
        fail(verdict, "byte %zu of the elements is %02x, expected %02x", at, output[at],
             v->elements[at]);
    else if (nbytes != v->elements_nbytes)
        fail(verdict, "%zu bytes of elements, expected %zu", nbytes, v->elements_nbytes);
}

static void judge(struct zipccl_verdict *verdict, const struct zipccl_filter_result *run,
                  const uint8_t *output, size_t capacity, double timeout_s)
{
    const struct zipccl_vector *v = verdict->vector;
    char line[260];

    verdict->passed = true;
    verdict->exit_code = run->exit_code;
    if (run->timed_out)
        fail(verdict, "did not end within %g s", timeout_s);
    else if (run->too_much)
        fail(verdict, "wrote more than %zu bytes%s", capacity,
             v->valid ? "" : " for a message to be refused");
    else if (run->signal != 0)
        fail(verdict, "ended by signal %d%s", run->signal, said(run, line));
    else if (v->valid && run->exit_code != 0)
        fail(verdict, "refused a valid message, exit code %d%s", run->exit_code, said(run, line));
    else if (v->valid)
        compare(verdict, output, run->nbytes);
    else if (run->exit_code == 0)
        fail(verdict, "accepted, expected an exit code that is not 0");
}

static zipccl_status run_one(const struct zipccl_conform_result *result, uint8_t *output,
                             size_t capacity, struct zipccl_verdict *verdict,
                             struct zipccl_error *error)
{
    const struct zipccl_vector *v = verdict->vector;
    struct zipccl_filter_result run;
    /* What must be refused may write elements before that is found out. */
    size_t most = v->valid ? v->elements_nbytes : capacity;

    ZIPCCL_TRY(zipccl_filter_run(result->command, v->wire, v->wire_nbytes, result->timeout_s,
                                 output, most, &run, error));
    judge(verdict, &run, output, most, result->timeout_s);
    return ZIPCCL_OK;
}

/* Room for the elements of any vector, and for what a decoder may write before it refuses. */
static size_t output_room(const struct zipccl_vectors *vectors)
{
    size_t room = (size_t)1 << 20;

    for (size_t i = 0; i < vectors->count; i++)
        if (vectors->vectors[i].elements_nbytes > room)
            room = vectors->vectors[i].elements_nbytes;
    return room;
}

/* Flushed, as the next vector may take its time and the run may be ended. */
static void print_verdict(const struct zipccl_verdict *verdict, FILE *out)
{
    const struct zipccl_vector *v = verdict->vector;

    fprintf(out, "%-6s  %-36s %-8s  %s%s%s\n", verdict->passed ? "passed" : "FAILED", v->name,
            v->verdict, v->about, verdict->passed ? "" : ": ", verdict->reason);
    fflush(out);
}

zipccl_status zipccl_conform_run(const struct zipccl_vectors *vectors,
                                 struct zipccl_conform_result *result, FILE *out,
                                 struct zipccl_error *error)
{
    size_t capacity = output_room(vectors);
    uint8_t *output = malloc(capacity);
    zipccl_status status = ZIPCCL_OK;

    result->verdicts = calloc(vectors->count, sizeof *result->verdicts);
    if (output == NULL || result->verdicts == NULL) {
        free(output);
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < vectors->count && status == ZIPCCL_OK; i++) {
        struct zipccl_verdict *verdict = &result->verdicts[i];

        verdict->vector = &vectors->vectors[i];
        status = run_one(result, output, capacity, verdict, error);
        if (status != ZIPCCL_OK)
            break;
        result->count++;
        result->nfailed += !verdict->passed;
        if (out != NULL)
            print_verdict(verdict, out);
    }
    free(output);
    if (status == ZIPCCL_OK && out != NULL)
        fprintf(out, "%zu vectors: %zu passed, %zu failed\n", result->count,
                result->count - result->nfailed, result->nfailed);
    return status;
}

static void put_verdict(yajl_gen gen, const struct zipccl_verdict *verdict)
{
    const struct zipccl_vector *v = verdict->vector;

    yajl_gen_map_open(gen);
    zipccl_put_string(gen, "name", v->name);
    zipccl_put_string(gen, "verdict", v->verdict);
    zipccl_put_string(gen, "about", v->about);
    zipccl_put_key(gen, "passed");
    yajl_gen_bool(gen, verdict->passed);
    zipccl_put_number(gen, "exit_code", verdict->exit_code, verdict->exit_code >= 0);
    zipccl_put_string(gen, "reason", verdict->reason);
    yajl_gen_map_close(gen);
}

zipccl_status zipccl_conform_json(const struct zipccl_conform_result *result, FILE *out,
                                  struct zipccl_error *error)
{
    const unsigned char *text;
    size_t n;
    yajl_gen gen = yajl_gen_alloc(NULL);

    if (gen == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    yajl_gen_config(gen, yajl_gen_beautify, 1);
    yajl_gen_map_open(gen);
    zipccl_put_string(gen, "schema", "zipccl.codec-conform");
    zipccl_put_integer(gen, "version", 1);
    zipccl_put_key(gen, "command");
    yajl_gen_array_open(gen);
    for (char *const *word = result->command; *word != NULL; word++)
        zipccl_put_text(gen, *word);
    yajl_gen_array_close(gen);
    zipccl_put_number(gen, "timeout_s", result->timeout_s, true);
    zipccl_put_integer(gen, "passed", result->count - result->nfailed);
    zipccl_put_integer(gen, "failed", result->nfailed);
    zipccl_put_key(gen, "vectors");
    yajl_gen_array_open(gen);
    for (size_t i = 0; i < result->count; i++)
        put_verdict(gen, &result->verdicts[i]);
    yajl_gen_array_close(gen);
    yajl_gen_map_close(gen);
    zipccl_status status = ZIPCCL_OK;
    if (yajl_gen_get_buf(gen, &text, &n) != yajl_gen_status_ok)
        status = zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    else if (fwrite(text, 1, n, out) != n)
        status = zipccl_fail(error, ZIPCCL_ERR_IO, "cannot write the JSON");
    yajl_gen_free(gen);
    return status;
}
