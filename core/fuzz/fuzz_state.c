/*
 * fuzz_state.c - any text is learnt state or is refused; what is read is written with the same bytes
 *
 * The digest at the end is put right, too, so that changes reach what lies behind its check.  For
 * libFuzzer, or with core/fuzz/fuzz_main.c as a plain program.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/state.h"

#include "core/fuzz/fuzz.h"
#include "core/state_words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void try_text(const char *text, size_t nbytes)
{
    struct zipccl_error error = {""};
    struct zipccl_state state;
    zipccl_status status = zipccl_state_read(text, nbytes, &state, &error);

    check(status == ZIPCCL_OK || (status == ZIPCCL_ERR_INPUT && error.text[0] != '\0'));
    if (status == ZIPCCL_OK) {
        char *again;
        size_t nagain;

        check(zipccl_state_write(&state, &again, &nagain) == ZIPCCL_OK);
        check(nagain == nbytes && memcmp(again, text, nbytes) == 0);
        free(again);
    }
    zipccl_state_release(&state);
}

/* Where the last line of 'text' [nbytes] begins. */
static size_t last_line(const char *text, size_t nbytes)
{
    size_t at = nbytes > 0 ? nbytes - 1 : 0;

    while (at > 0 && text[at - 1] != '\n')
        at--;
    return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    /* A copy of the exact size, so that a sanitizer sees any step beyond. */
    char *text = calloc(1, nbytes + (nbytes == 0));
    char digest[17];
    size_t end;

    check(text != NULL);
    if (nbytes > 0)
        memcpy(text, data, nbytes);
    try_text(text, nbytes);
    end = last_line(text, nbytes);
    if (nbytes - end >= 18 && text[nbytes - 1] == '\n') {
        snprintf(digest, sizeof digest, "%016" PRIx64, zipccl_state_digest(text, end));
        memcpy(text + nbytes - 17, digest, 16);
        try_text(text, nbytes);
    }
    free(text);
    return 0;
}
