/*
 * bundle_hosts.c - names of hosts, and texts without them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/bundle_hosts.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char mark[] = "zipccl-rank ";

zipccl_status zipccl_hosts_add(struct zipccl_hosts *hosts, const char *name, size_t nbytes)
{
    size_t n = 0;
    char **names, *copy;

    while (n < nbytes && name[n] != '.' && name[n] != '\0')
        n++;
    if (n == 0 || (n == 9 && strncasecmp(name, "localhost", n) == 0))
        return ZIPCCL_OK;
    for (size_t i = 0; i < hosts->n; i++)
        if (strlen(hosts->names[i]) == n && strncasecmp(hosts->names[i], name, n) == 0)
            return ZIPCCL_OK;
    names = realloc(hosts->names, (hosts->n + 1) * sizeof *names);
    if (names == NULL)
        return ZIPCCL_ERR_NOMEM;
    hosts->names = names;
    copy = calloc(n + 1, 1);
    if (copy == NULL)
        return ZIPCCL_ERR_NOMEM;
    memcpy(copy, name, n);
    names[hosts->n++] = copy;
    return ZIPCCL_OK;
}

/* 'word' in text [nbytes] from 'at' on; nbytes if it is not there. */
static size_t find(const char *text, size_t nbytes, size_t at, const char *word)
{
    size_t n = strlen(word);

    for (; at + n <= nbytes; at++)
        if (memcmp(text + at, word, n) == 0)
            return at;
    return nbytes;
}

zipccl_status zipccl_hosts_find(struct zipccl_hosts *hosts, const char *text, size_t nbytes)
{
    for (size_t at = find(text, nbytes, 0, mark); at < nbytes;
         at = find(text, nbytes, at + 1, mark)) {
        const char *line_end = memchr(text + at, '\n', nbytes - at);
        size_t end = line_end != NULL ? (size_t)(line_end - text) : nbytes;
        size_t name = find(text, end, at, " on ") + 4, stop = name;

        while (stop < end && text[stop] != ':')
            stop++;
        if (stop < end)
            ZIPCCL_TRY(zipccl_hosts_add(hosts, text + name, stop - name));
    }
    return ZIPCCL_OK;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '_';
}

static bool is_part(char c)
{
    return isalnum((unsigned char)c);
}

/* What a name goes on with: in texts as a word does, behind - and _ too; in names of files not. */
typedef bool joins_fn(char c);

/* The host with the longest name that is at text[at], joined to nothing; -1 if none is. */
static int host_at(const struct zipccl_hosts *hosts, const char *text, size_t nbytes, size_t at,
                   joins_fn *joins)
{
    size_t longest = 0;
    int found = -1;

    if (at > 0 && joins(text[at - 1]))
        return -1;
    for (size_t i = 0; i < hosts->n; i++) {
        size_t n = strlen(hosts->names[i]);

        if (n > longest && at + n <= nbytes && strncasecmp(text + at, hosts->names[i], n) == 0 &&
            (at + n == nbytes || !joins(text[at + n]))) {
            longest = n;
            found = (int)i;
        }
    }
    return found;
}

/* Bytes of ".domain.tld" at text[at]. */
static size_t domain_at(const char *text, size_t nbytes, size_t at)
{
    size_t end = at;

    while (end + 1 < nbytes && text[end] == '.' && isalpha((unsigned char)text[end + 1])) {
        end++;
        while (end < nbytes && is_word(text[end]))
            end++;
    }
    return end - at;
}

/* Write the text with names replaced to 'copy', unless that is NULL; how many bytes it has. */
static size_t replace(const struct zipccl_hosts *hosts, const char *text, size_t nbytes,
                      joins_fn *joins, char *copy, size_t *nhidden)
{
    size_t to = 0;

    *nhidden = 0;
    for (size_t at = 0; at < nbytes;) {
        int host = host_at(hosts, text, nbytes, at, joins);
        char name[16];
        size_t n;

        if (host < 0) {
            if (copy != NULL)
                copy[to] = text[at];
            to++;
            at++;
            continue;
        }
        at += strlen(hosts->names[host]);
        at += domain_at(text, nbytes, at);
        n = (size_t)snprintf(name, sizeof name, "host%d", host);
        if (copy != NULL)
            memcpy(copy + to, name, n);
        to += n;
        (*nhidden)++;
    }
    return to;
}

zipccl_status zipccl_hosts_hide(const struct zipccl_hosts *hosts, const char *text, size_t nbytes,
                                char **out, size_t *out_nbytes, size_t *nhidden)
{
    size_t n = replace(hosts, text, nbytes, is_word, NULL, nhidden);
    char *copy = malloc(n + 1);

    if (copy == NULL)
        return ZIPCCL_ERR_NOMEM;
    replace(hosts, text, nbytes, is_word, copy, nhidden);
    *out = copy;
    *out_nbytes = n;
    return ZIPCCL_OK;
}

/* Bytes of a file's name before its endings, which are no domain. */
static size_t stem(const char *name)
{
    static const char *const endings[] = {".json", ".jsonl", ".csv", ".txt", ".log",
                                          ".yaml", ".yml",   ".gz",  ".zst", ".svg"};
    size_t n = strlen(name);

    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t k = strlen(endings[i]);

        if (n > k && strncasecmp(name + n - k, endings[i], k) == 0) {
            n -= k;
            i = (size_t)-1; /* another may stand before it */
        }
    }
    return n;
}

zipccl_status zipccl_hosts_hide_name(const struct zipccl_hosts *hosts, const char *name, char **out,
                                     size_t *nhidden)
{
    size_t before = stem(name), n = replace(hosts, name, before, is_part, NULL, nhidden);
    char *copy = malloc(n + strlen(name + before) + 1);

    if (copy == NULL)
        return ZIPCCL_ERR_NOMEM;
    replace(hosts, name, before, is_part, copy, nhidden);
    strcpy(copy + n, name + before);
    *out = copy;
    return ZIPCCL_OK;
}

void zipccl_hosts_release(struct zipccl_hosts *hosts)
{
    for (size_t i = 0; i < hosts->n; i++)
        free(hosts->names[i]);
    free(hosts->names);
    *hosts = (struct zipccl_hosts){0};
}
