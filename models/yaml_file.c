/*
 * yaml_file.c - what a YAML file has to be before libcyaml sees it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/yaml_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static zipccl_status check_single(const char *path, const char *one, struct zipccl_error *error)
{
    char text[512];
    FILE *f = fopen(path, "r");
    bool content = false, ended = false, line_start = true;
    unsigned line = 0, second = 0;

    if (f == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", path, strerror(errno));
    while (second == 0 && fgets(text, sizeof(text), f) != NULL) {
        bool marker = line_start && strncmp(text, "---", 3) == 0 && strchr(" \t\r\n", text[3]);
        size_t blank = strspn(text, " \t\r\n");

        line += line_start;
        if (line_start && strncmp(text, "...", 3) == 0)
            ended = true;
        else if ((marker && content) || (ended && text[blank] != 0 && text[blank] != '#'))
            second = line;
        else if (!marker && text[blank] != 0 && text[0] != '%' && text[blank] != '#')
            content = true;
        line_start = strchr(text, '\n') != NULL;
    }
    fclose(f);
    if (second == 0)
        return ZIPCCL_OK;
    return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                       "%s: line %u: a second document, expected %s in a file", path, second, one);
}

zipccl_status zipccl_yaml_check_file(const char *path, const char *what, const char *one,
                                     struct zipccl_error *error)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: not a file; expected %s in YAML", path,
                           what);
    if (st.st_size > ZIPCCL_YAML_MAX_SIZE)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%s: %lld bytes, expected %s in YAML of at most %lld", path,
                           (long long)st.st_size, what, ZIPCCL_YAML_MAX_SIZE);
    return check_single(path, one, error);
}
