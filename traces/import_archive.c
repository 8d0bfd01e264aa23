/*
 * import_archive.c - tar archives of files to import, as if they were folders
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_archive.h"

#include "traces/json.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* Where tar has its magic word. */
#define TAR_MAGIC 257

#define HEAD_SIZE 4096

#define MAX_MEMBERS 4096

/* Of all members; who has more unpacks them where there is room. */
#define MAX_BYTES ((uint64_t)64 << 30)

bool zipccl_archive_is(const char *head, size_t nbytes)
{
    return nbytes > TAR_MAGIC + 5 && memcmp(head + TAR_MAGIC, "ustar", 5) == 0;
}

/* An archive while it is read; 'head' is how the member starts. */
struct reading {
    const char *path;
    struct zipccl_error *error;
    struct archive *archive;
    struct archive_entry *entry;
    char head[HEAD_SIZE];
    size_t nhead;
};

static zipccl_status broken(const struct reading *r)
{
    struct zipccl_place at = {r->path, 0, r->error};
    const char *why = r->archive != NULL ? archive_error_string(r->archive) : NULL;

    return zipccl_place_fail(&at, "a broken tar archive (%.150s), expected a whole one",
                             why != NULL ? why : "no reason given");
}

static zipccl_status nomem(const char *path, struct zipccl_error *error)
{
    return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
}

static zipccl_status open_archive(struct reading *r)
{
    r->archive = archive_read_new();
    if (r->archive == NULL)
        return nomem(r->path, r->error);
    if (archive_read_support_filter_gzip(r->archive) != ARCHIVE_OK ||
        archive_read_support_format_tar(r->archive) != ARCHIVE_OK)
        return broken(r);
    if (archive_read_open_filename(r->archive, r->path, 1 << 16) != ARCHIVE_OK)
        return broken(r);
    return ZIPCCL_OK;
}

/* Names that macOS and people hide are no files to import. */
static bool is_hidden(const char *name)
{
    const char *slash = strrchr(name, '/');

    return (slash != NULL ? slash[1] : name[0]) == '.';
}

/* The next regular file with what it starts with; 'entry' NULL at the end. */
static zipccl_status next_member(struct reading *r)
{
    for (;;) {
        int code = archive_read_next_header(r->archive, &r->entry);
        la_ssize_t n = 0;

        r->nhead = 0;
        if (code == ARCHIVE_EOF) {
            r->entry = NULL;
            return ZIPCCL_OK;
        }
        if (code < ARCHIVE_WARN)
            return broken(r);
        if (archive_entry_filetype(r->entry) != AE_IFREG ||
            archive_entry_pathname(r->entry) == NULL || archive_entry_hardlink(r->entry) != NULL ||
            is_hidden(archive_entry_pathname(r->entry)))
            continue;
        while (r->nhead < HEAD_SIZE &&
               (n = archive_read_data(r->archive, r->head + r->nhead, HEAD_SIZE - r->nhead)) > 0)
            r->nhead += (size_t)n;
        return n < 0 ? broken(r) : ZIPCCL_OK;
    }
}

/* How a member starts once gzip is taken off. */
static size_t plain_head(const struct reading *r, char out[HEAD_SIZE])
{
    z_stream z = {.next_in = (unsigned char *)r->head,
                  .avail_in = (uInt)r->nhead,
                  .next_out = (unsigned char *)out,
                  .avail_out = HEAD_SIZE};

    if (r->nhead < 2 || (unsigned char)r->head[0] != 0x1f || (unsigned char)r->head[1] != 0x8b ||
        inflateInit2(&z, 16 + MAX_WBITS) != Z_OK) {
        memcpy(out, r->head, r->nhead);
        return r->nhead;
    }
    inflate(&z, Z_SYNC_FLUSH);
    inflateEnd(&z);
    return HEAD_SIZE - z.avail_out;
}

static zipccl_status peek(struct reading *r, zipccl_archive_wanted *wanted, char *head,
                          size_t *nbytes)
{
    char plain[HEAD_SIZE];

    ZIPCCL_TRY(open_archive(r));
    for (;;) {
        size_t n;

        ZIPCCL_TRY(next_member(r));
        if (r->entry == NULL)
            return ZIPCCL_OK;
        n = plain_head(r, plain);
        if (!wanted(plain, n))
            continue;
        memcpy(head, plain, n);
        *nbytes = n;
        return ZIPCCL_OK;
    }
}

zipccl_status zipccl_archive_peek(const char *path, zipccl_archive_wanted *wanted, char *head,
                                  size_t *nbytes, struct zipccl_error *error)
{
    struct reading r = {.path = path, .error = error};
    zipccl_status status;

    *nbytes = 0;
    status = peek(&r, wanted, head, nbytes);
    archive_read_free(r.archive);
    return status;
}

static zipccl_status add(struct zipccl_unpacked *u, const char *file, const char *of,
                         struct zipccl_error *error)
{
    if (u->n == u->room) {
        size_t room = 2 * u->room + 16;
        char **files = realloc(u->files, room * sizeof *files);
        const char **more;

        if (files == NULL)
            return nomem(file, error);
        u->files = files;
        more = realloc(u->of, room * sizeof *more);
        if (more == NULL)
            return nomem(file, error);
        u->of = more;
        u->room = room;
    }
    u->files[u->n] = malloc(strlen(file) + 1);
    if (u->files[u->n] == NULL)
        return nomem(file, error);
    strcpy(u->files[u->n], file);
    u->of[u->n++] = of;
    return ZIPCCL_OK;
}

static zipccl_status failed(const char *path, struct zipccl_error *error)
{
    return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", path, strerror(errno));
}

/* The last part of 'path' without 'endings'; at least one character. */
static void last_part(const char *path, size_t n, char *out, size_t size)
{
    static const char *const endings[] = {".gz", ".tgz", ".tar"};
    size_t first;

    while (n > 0 && path[n - 1] == '/')
        n--;
    for (first = n; first > 0 && path[first - 1] != '/';)
        first--;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t m = strlen(endings[i]);

        if (n - first > m && memcmp(path + n - m, endings[i], m) == 0)
            n -= m;
    }
    snprintf(out, size, "%.*s", (int)(n - first < 100 ? n - first : 100), path + first);
    if (out[0] == '\0' || strcmp(out, ".") == 0 || strcmp(out, "..") == 0)
        snprintf(out, size, "archive");
}

/* FOLDER/NUMBER/PARENT/NAME: a place that no other member has, and the names that people gave. */
static zipccl_status make_place(struct zipccl_unpacked *u, const struct reading *r, char *out,
                                size_t size)
{
    const char *name = archive_entry_pathname(r->entry), *slash = strrchr(name, '/');
    struct zipccl_place at = {r->path, 0, r->error};
    char parent[128];
    size_t n;

    if (slash != NULL && slash > name)
        last_part(name, (size_t)(slash - name), parent, sizeof parent);
    if (slash == NULL || slash == name || strcmp(parent, "archive") == 0)
        last_part(r->path, strlen(r->path), parent, sizeof parent);
    name = slash != NULL ? slash + 1 : name;
    if (name[0] == '\0' || strlen(name) > 200)
        return zipccl_place_fail(&at, "a member without a name, or with one of more than 200 "
                                      "bytes, expected others");
    n = (size_t)snprintf(out, size, "%s/%zu", u->folder, u->n);
    if (mkdir(out, 0700) != 0)
        return failed(out, r->error);
    n += (size_t)snprintf(out + n, size - n, "/%s", parent);
    if (mkdir(out, 0700) != 0)
        return failed(out, r->error);
    snprintf(out + n, size - n, "/%s", name);
    return ZIPCCL_OK;
}

static zipccl_status write_all(int file, const char *bytes, size_t n, const char *path,
                               struct zipccl_error *error)
{
    while (n > 0) {
        ssize_t done = write(file, bytes, n);

        if (done < 0 && errno != EINTR)
            return failed(path, error);
        if (done > 0) {
            bytes += done;
            n -= (size_t)done;
        }
    }
    return ZIPCCL_OK;
}

/* The member's bytes, of which 'head' was read already. */
static zipccl_status write_member(struct reading *r, const char *path, uint64_t *total)
{
    struct zipccl_place at = {r->path, 0, r->error};
    char *piece = malloc(1 << 16);
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    zipccl_status status = piece == NULL ? nomem(path, r->error)
                           : file < 0    ? failed(path, r->error)
                                         : write_all(file, r->head, r->nhead, path, r->error);
    la_ssize_t n = 1;

    while (status == ZIPCCL_OK && (n = archive_read_data(r->archive, piece, 1 << 16)) > 0) {
        *total += (uint64_t)n;
        status = *total <= MAX_BYTES
                     ? write_all(file, piece, (size_t)n, path, r->error)
                     : zipccl_place_fail(&at, "more than 64 GiB in an archive, expected less: "
                                              "unpack it and name the folder");
    }
    if (status == ZIPCCL_OK && n < 0)
        status = broken(r);
    if (file >= 0 && close(file) != 0 && status == ZIPCCL_OK)
        status = failed(path, r->error);
    free(piece);
    return status;
}

static zipccl_status take_member(struct zipccl_unpacked *u, struct reading *r,
                                 zipccl_archive_wanted *wanted, uint64_t *total)
{
    struct zipccl_place at = {r->path, 0, r->error};
    char head[HEAD_SIZE], path[512];

    if (!wanted(head, plain_head(r, head))) {
        u->nskipped++;
        return ZIPCCL_OK;
    }
    if (u->n >= MAX_MEMBERS)
        return zipccl_place_fail(&at, "more than %d files, expected fewer", MAX_MEMBERS);
    ZIPCCL_TRY(make_place(u, r, path, sizeof path));
    ZIPCCL_TRY(add(u, path, r->path, r->error));
    return write_member(r, path, total);
}

/* What follows FOLDER/NUMBER/ in an unpacked path. */
static const char *member_of(const char *folder, const char *path)
{
    const char *at = path + strlen(folder) + 1;

    return at + strcspn(at, "/") + 1;
}

/* By name, as a folder is read. */
static void sort(struct zipccl_unpacked *u, size_t first)
{
    for (size_t i = first + 1; i < u->n; i++)
        for (size_t k = i; k > first && strcmp(member_of(u->folder, u->files[k - 1]),
                                               member_of(u->folder, u->files[k])) > 0;
             k--) {
            char *file = u->files[k];

            u->files[k] = u->files[k - 1];
            u->files[k - 1] = file;
        }
}

static zipccl_status unpack(struct zipccl_unpacked *u, struct reading *r,
                            zipccl_archive_wanted *wanted)
{
    static const char folder[] = "/tmp/zipccl-unpack-XXXXXX";
    struct zipccl_place at = {r->path, 0, r->error};
    size_t first = u->n;
    uint64_t total = 0;

    if (u->folder[0] == '\0') {
        strcpy(u->folder, folder);
        if (mkdtemp(u->folder) == NULL) {
            u->folder[0] = '\0';
            return failed(folder, r->error);
        }
    }
    ZIPCCL_TRY(open_archive(r));
    for (;;) {
        ZIPCCL_TRY(next_member(r));
        if (r->entry == NULL)
            break;
        ZIPCCL_TRY(take_member(u, r, wanted, &total));
    }
    if (u->n == first)
        return zipccl_place_fail(&at, "a tar archive without a file of a known format, expected "
                                      "one or more");
    sort(u, first);
    return ZIPCCL_OK;
}

/* What a pipe has could not be read again. */
static bool is_archive(const char *path)
{
    struct stat info;
    char head[HEAD_SIZE];
    gzFile file;
    int n;

    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode))
        return false;
    file = gzopen(path, "rb");
    n = file != NULL ? gzread(file, head, sizeof head) : 0;
    if (file != NULL)
        gzclose(file);
    return n > 0 && zipccl_archive_is(head, (size_t)n);
}

zipccl_status zipccl_archive_unpack(const char *const *paths, size_t npaths,
                                    zipccl_archive_wanted *wanted, struct zipccl_unpacked *out,
                                    struct zipccl_error *error)
{
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < npaths; i++) {
        struct reading r = {.path = paths[i], .error = error};
        zipccl_status status = ZIPCCL_OK;

        if (!is_archive(paths[i])) {
            ZIPCCL_TRY(add(out, paths[i], NULL, error));
            continue;
        }
        status = unpack(out, &r, wanted);
        archive_read_free(r.archive);
        ZIPCCL_TRY(status);
    }
    return ZIPCCL_OK;
}

void zipccl_archive_rename(const struct zipccl_unpacked *u, struct zipccl_error *error)
{
    char text[sizeof error->text];

    if (error == NULL || u->folder[0] == '\0')
        return;
    for (size_t i = 0; i < u->n; i++) {
        const char *at = u->of[i] != NULL ? strstr(error->text, u->files[i]) : NULL;

        if (at == NULL)
            continue;
        snprintf(text, sizeof text, "%.*s%s:%s%s", (int)(at - error->text), error->text, u->of[i],
                 member_of(u->folder, u->files[i]), at + strlen(u->files[i]));
        strcpy(error->text, text);
    }
}

void zipccl_archive_remove(struct zipccl_unpacked *u)
{
    for (size_t i = 0; i < u->n; i++) {
        char *slash;

        if (u->of[i] != NULL) {
            unlink(u->files[i]);
            for (int up = 0; up < 2 && (slash = strrchr(u->files[i], '/')) != NULL; up++) {
                *slash = '\0';
                rmdir(u->files[i]);
            }
        }
        free(u->files[i]);
    }
    if (u->folder[0] != '\0')
        rmdir(u->folder);
    free(u->files);
    free(u->of);
    memset(u, 0, sizeof *u);
}
