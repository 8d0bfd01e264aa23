/*
 * bundle_hosts.c - names of hosts, and texts without them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/bundle/bundle_hosts.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char mark[] = "zipccl-rank ";

static bool is_address(const char *name)
{
    struct in6_addr six;
    struct in_addr four;

    return inet_pton(AF_INET, name, &four) == 1 || inet_pton(AF_INET6, name, &six) == 1;
}

/* True for a name that is replaced where it stands alone: an address, a number. */
static bool whole(const char *name)
{
    return is_address(name) || strspn(name, "0123456789-_") == strlen(name);
}

bool zipccl_hosts_valid(const char *name)
{
    size_t n = strcspn(name, ".");

    return is_address(name) || (strspn(name, "0123456789-_.") < n &&
                                strspn(name, "0123456789-_.abcdefghijklmnopqrstuvwxyz"
                                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(name));
}

zipccl_status zipccl_hosts_add(struct zipccl_hosts *hosts, const char *name, size_t nbytes)
{
    size_t n = 0;
    char **names, *copy;

    copy = strndup(name, nbytes);
    if (copy == NULL)
        return ZIPCCL_ERR_NOMEM;
    n = is_address(copy) ? strlen(copy) : strcspn(copy, ".");
    free(copy);
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

static bool is_part(char c)
{
    return isalnum((unsigned char)c);
}

/* True if a word may begin at text[at]: behind an escape such as "\n" and colours too. */
static bool begins(const char *text, size_t at)
{
    size_t i = at;

    if (at == 0 || !is_part(text[at - 1]))
        return true;
    if (at >= 2 && text[at - 2] == '\\' && strchr("nrtbfv0", text[at - 1]) != NULL)
        return true;
    if (text[--i] != 'm')
        return false;
    while (i > 0 && (isdigit((unsigned char)text[i - 1]) || text[i - 1] == ';'))
        i--;
    return i >= 2 && text[i - 1] == '[' && text[i - 2] == '\033';
}

/* True if a number or an address, which counts as a whole, ends before text[at]. */
static bool ends_whole(const char *text, size_t nbytes, size_t at, bool colons)
{
    if (at == nbytes)
        return true;
    if (text[at] == '.' || (colons && text[at] == ':'))
        return at + 1 == nbytes || !is_part(text[at + 1]);
    return !is_part(text[at]);
}

/* True if the name [n] that is at text[at] is one there, and not part of something else. */
static bool stands(const char *name, size_t n, const char *text, size_t nbytes, size_t at)
{
    if (whole(name)) {
        bool colons = strchr(name, ':') != NULL;

        return (at == 0 || (text[at - 1] != '.' && !(colons && text[at - 1] == ':'))) &&
               ends_whole(text, nbytes, at + n, colons);
    }
    /* "node" in "nodes" is none; "node1" in "node12" and "node1b" may well be. */
    return at + n == nbytes ||
           !(isalpha((unsigned char)name[n - 1]) && isalpha((unsigned char)text[at + n]));
}

/* The host with the longest name that is at text[at]; -1 if none is. */
static int host_at(const struct zipccl_hosts *hosts, const char *text, size_t nbytes, size_t at)
{
    size_t longest = 0;
    int found = -1;

    if (!begins(text, at))
        return -1;
    for (size_t i = 0; i < hosts->n; i++) {
        const char *name = hosts->names[i];
        size_t n = strlen(name);

        if (n > longest && at + n <= nbytes && strncasecmp(text + at, name, n) == 0 &&
            stands(name, n, text, nbytes, at)) {
            longest = n;
            found = (int)i;
        }
    }
    return found;
}

/* Bytes at text[at] that go with a name: "-ib0", "_0", "1", ".domain.tld", as far as they go; in
 * names of files, where '-' and '_' part words, less. */
static size_t suffix_at(const char *text, size_t nbytes, size_t at, bool file)
{
    size_t end = at;

    while (end < nbytes &&
           (is_part(text[end]) || (strchr(file ? "." : "-_.", text[end]) && text[end] != '\0')))
        end++;
    while (end > at && !is_part(text[end - 1]))
        end--;
    return end - at;
}

/* Write the text with names replaced to 'copy', unless that is NULL; how many bytes it has. */
static size_t replace(const struct zipccl_hosts *hosts, const char *text, size_t nbytes, bool file,
                      char *copy, size_t *nhidden)
{
    size_t to = 0;

    *nhidden = 0;
    for (size_t at = 0; at < nbytes;) {
        int host = host_at(hosts, text, nbytes, at);
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
        if (!whole(hosts->names[host]))
            at += suffix_at(text, nbytes, at, file);
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
    size_t n = replace(hosts, text, nbytes, false, NULL, nhidden);
    char *copy = malloc(n + 1);

    if (copy == NULL)
        return ZIPCCL_ERR_NOMEM;
    replace(hosts, text, nbytes, false, copy, nhidden);
    *out = copy;
    *out_nbytes = n;
    return ZIPCCL_OK;
}

/* Bytes of a file's name before its endings, which are no domain. */
static size_t stem(const char *name)
{
    static const char *const endings[] = {".json", ".jsonl", ".csv", ".txt", ".log",
                                          ".yaml", ".yml",   ".gz",  ".svg", ".html"};
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
    size_t before = stem(name), n = replace(hosts, name, before, true, NULL, nhidden);
    char *copy = malloc(n + strlen(name + before) + 1);

    if (copy == NULL)
        return ZIPCCL_ERR_NOMEM;
    replace(hosts, name, before, true, copy, nhidden);
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
