/*
 * progress.h - a bar on stderr while long work runs, only if stderr is a terminal
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_PROGRESS_H
#define ZIPCCL_EXPERIMENTS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct zipccl_progress {
    const char *label; /* begins the line */
    bool wanted;       /* draws at all */
    bool drawn;        /* something stands on the line */
    int last;          /* permille of the last drawing */
};

/* Start; draws nothing unless 'wanted' and stderr is a terminal. */
void zipccl_progress_start(struct zipccl_progress *progress, const char *label, bool wanted);

/* Draw if it would look different; the signature is that of zipccl_replay_options.progress. */
void zipccl_progress_update(void *context, uint64_t done, uint64_t total, const char *what);

/* Clear the line. */
void zipccl_progress_end(struct zipccl_progress *progress);

#endif
