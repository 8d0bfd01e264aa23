/*
 * progress.c - a bar on stderr while long work runs, only if stderr is a terminal
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/program/progress.h"

#include <stdio.h>
#include <unistd.h>

enum { BAR = 30 };

void zipccl_progress_start(struct zipccl_progress *progress, const char *label, bool wanted)
{
    progress->label = label;
    progress->wanted = wanted && isatty(STDERR_FILENO);
    progress->drawn = false;
    progress->last = -1;
}

void zipccl_progress_update(void *context, uint64_t done, uint64_t total, const char *what)
{
    struct zipccl_progress *progress = context;
    double share = total > 0 ? (double)done / (double)total : 0;
    char bar[BAR + 1];

    share = share > 1 ? 1 : share;
    if (!progress->wanted || (int)(share * 1000) == progress->last)
        return;
    progress->last = (int)(share * 1000);
    progress->drawn = true;
    for (int i = 0; i < BAR; i++)
        bar[i] = i < (int)(share * BAR + 0.5) ? '#' : '.';
    bar[BAR] = '\0';
    fprintf(stderr, "\r\033[K%-8s [%s] %3.0f %%  %.40s", progress->label, bar, share * 100,
            what != NULL ? what : "");
    fflush(stderr);
}

void zipccl_progress_end(struct zipccl_progress *progress)
{
    if (progress->drawn)
        fputs("\r\033[K", stderr);
    progress->drawn = false;
}
