/*
 * log.c - lines for people, as ZIPCCL_DEBUG and ZIPCCL_DEBUG_FILE want them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "gpu/preload/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { KEYS = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *stream;
static const char *wanted; /* file that is opened with the first line; many processes write none */
static bool info;
static const char *seen[KEYS];
static size_t nseen;

void zipccl_log_expand(const char *name, char *out, size_t room)
{
    size_t at = 0;

    for (; *name != '\0' && at + 1 < room; name++) {
        if (name[0] == '%' && name[1] == 'h') {
            char host[256] = "host";

            (void)gethostname(host, sizeof host - 1);
            host[strcspn(host, ".")] = '\0';
            at += (size_t)snprintf(out + at, room - at, "%s", host);
            name++;
        } else if (name[0] == '%' && name[1] == 'p') {
            at += (size_t)snprintf(out + at, room - at, "%d", (int)getpid());
            name++;
        } else {
            if (name[0] == '%' && name[1] == '%')
                name++;
            out[at++] = *name;
        }
        if (at >= room)
            at = room - 1;
    }
    out[at] = '\0';
}

bool zipccl_log_open(const char *level, const char *file)
{
    bool known = level == NULL || level[0] == '\0' || strcasecmp(level, "WARN") == 0 ||
                 strcasecmp(level, "INFO") == 0;

    info = level != NULL && strcasecmp(level, "INFO") == 0;
    wanted = file != NULL && file[0] != '\0' ? file : NULL;
    return known;
}

static void put_start(FILE *out, const char *level)
{
    char host[256] = "host";

    (void)gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0';
    fprintf(out, "%s:%d ZIPCCL %s ", host, (int)getpid(), level);
}

static void put(const char *level, const char *format, va_list args)
{
    FILE *out = zipccl_log_lock();

    put_start(out, level);
    (void)vfprintf(out, format, args);
    fputc('\n', out);
    zipccl_log_unlock(out);
}

void zipccl_log_warn(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    put("WARN", format, args);
    va_end(args);
}

void zipccl_log_info(const char *format, ...)
{
    va_list args;

    if (!info)
        return;
    va_start(args, format);
    put("INFO", format, args);
    va_end(args);
}

static bool is_new(const char *key)
{
    bool known = false;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < nseen && !known; i++)
        known = strcmp(seen[i], key) == 0;
    if (!known && nseen < KEYS)
        seen[nseen++] = key;
    pthread_mutex_unlock(&lock);
    return !known;
}

void zipccl_log_warn_once(const char *key, const char *format, ...)
{
    va_list args;

    if (!is_new(key))
        return;
    va_start(args, format);
    put("WARN", format, args);
    va_end(args);
}

FILE *zipccl_log_lock(void)
{
    FILE *out;
    char path[512];

    pthread_mutex_lock(&lock);
    if (wanted != NULL) {
        zipccl_log_expand(wanted, path, sizeof path);
        stream = fopen(path, "we");
        if (stream == NULL)
            fprintf(stderr, "ZIPCCL_DEBUG_FILE=%s: cannot write %s, lines go to stderr\n", wanted,
                    path);
        wanted = NULL;
    }
    out = stream != NULL ? stream : stderr;
    pthread_mutex_unlock(&lock);
    flockfile(out);
    return out;
}

void zipccl_log_unlock(FILE *out)
{
    (void)fflush(out);
    funlockfile(out);
}
