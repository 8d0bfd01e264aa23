/*
 * test_codec_vectors.c - the files in core/tests/vectors are what is written and read
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec.h"

#include "core/wire.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIRECTORY "core/tests/vectors"

enum { MOST = 1 << 18, NAMES = 64 };

struct file {
    uint8_t *bytes;
    size_t nbytes;
};

static struct file load(const char *name, const char *ending)
{
    char path[512];
    snprintf(path, sizeof path, DIRECTORY "/%s.%s", name, ending);
    FILE *f = fopen(path, "rb");
    cr_assert(f != NULL, "%s", path);
    struct file file = {.bytes = malloc(MOST)};
    file.nbytes = fread(file.bytes, 1, MOST, f);
    cr_assert_lt(file.nbytes, MOST);
    fclose(f);
    return file;
}

/* Names of all messages in the directory; returns how many. */
static size_t list(char names[NAMES][64])
{
    DIR *directory = opendir(DIRECTORY);
    cr_assert(directory != NULL, "run from the top of the tree");
    size_t n = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".zccl") != 0)
            continue;
        cr_assert_lt(n, NAMES);
        snprintf(names[n++], 64, "%.*s", (int)(dot - entry->d_name), entry->d_name);
    }
    closedir(directory);
    return n;
}

Test(codec_vectors, are_written_and_read_by_every_row)
{
    static char names[NAMES][64];
    size_t count = list(names);
    cr_assert_geq(count, 10);
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    uint8_t *wire = malloc(2 * MOST), *out = malloc(MOST);
    for (size_t i = 0; i < count; i++) {
        struct file raw = load(names[i], "raw"), coded = load(names[i], "zccl");
        struct zipccl_message message;
        cr_assert_eq(zipccl_message_read(coded.bytes, coded.nbytes, &message), ZIPCCL_OK);
        cr_assert_eq(message.n * zipccl_dtype_size(message.dtype), raw.nbytes);
        for (int isa = 0; isa < ZIPCCL_NUM_ISAS; isa++) {
            if (!zipccl_isa_usable((enum zipccl_isa)isa))
                continue;
            size_t nbytes = 0;
            cr_assert_eq(zipccl_encode((enum zipccl_isa)isa, message.dtype, raw.bytes, message.n,
                                       wire, 2 * MOST, scratch, &nbytes),
                         ZIPCCL_OK);
            cr_expect(nbytes == coded.nbytes && memcmp(wire, coded.bytes, nbytes) == 0,
                      "%s: encoded by %s", names[i], zipccl_isa_name((enum zipccl_isa)isa));
            cr_assert_eq(zipccl_decode((enum zipccl_isa)isa, message.dtype, coded.bytes,
                                       coded.nbytes, out, message.n, scratch),
                         ZIPCCL_OK);
            cr_expect(memcmp(out, raw.bytes, raw.nbytes) == 0, "%s: decoded by %s", names[i],
                      zipccl_isa_name((enum zipccl_isa)isa));
        }
        free(raw.bytes);
        free(coded.bytes);
    }
    free(scratch);
    free(wire);
    free(out);
}

Test(codec_vectors, show_every_program)
{
    static char names[NAMES][64];
    size_t count = list(names);
    bool seen[256] = {false}, seen_raw_message = false;
    for (size_t i = 0; i < count; i++) {
        struct file coded = load(names[i], "zccl");
        struct zipccl_message message;
        cr_assert_eq(zipccl_message_read(coded.bytes, coded.nbytes, &message), ZIPCCL_OK);
        if (message.flags & ZIPCCL_MESSAGE_RAW)
            seen_raw_message = true;
        else
            for (size_t s = 0; s < (message.n + 16383) / 16384; s++)
                seen[coded.bytes[ZIPCCL_MESSAGE_HEADER_BYTES + 32 * s]] = true;
        free(coded.bytes);
    }
    cr_expect(seen_raw_message);
    for (int program = 0; program <= 8; program++)
        cr_expect(seen[program], "program %d", program);
    cr_expect(seen[0x80], "zeros, the rest raw");
    bool zeros = false;
    for (int program = 0x81; program < 0x88; program++)
        zeros = zeros || seen[program];
    cr_expect(zeros, "zeros, the rest in tiers");
}
