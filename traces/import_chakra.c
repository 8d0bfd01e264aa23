/*
 * import_chakra.c - imports Chakra execution traces, protobuf or JSON, one a rank
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_chakra.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define HEAD_SIZE 4096

enum kind { PROTOBUF, JSON, GROUPS };

static bool kind_of(const char *head, size_t nbytes, enum kind *out)
{
    if (chakra_is_json(head, nbytes))
        *out = JSON;
    else if (chakra_is_groups(head, nbytes))
        *out = GROUPS;
    else if (chakra_is_protobuf(head, nbytes))
        *out = PROTOBUF;
    else
        return false;
    return true;
}

static bool detect(const char *head, size_t nbytes)
{
    enum kind kind;

    return kind_of(head, nbytes, &kind);
}

/* What a file is, by its beginning; what is none of all is read as protobuf, which tells why. */
static enum kind look(const char *path)
{
    gzFile file = gzopen(path, "rb");
    char head[HEAD_SIZE];
    enum kind kind = PROTOBUF;
    int n = file != NULL ? gzread(file, head, sizeof head) : 0;

    if (n > 0)
        kind_of(head, (size_t)n, &kind);
    if (file != NULL)
        gzclose(file);
    return kind;
}

/* The last part of the file's name that is a number: "all_reduce.3.et.gz". */
static int64_t rank_of_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    int64_t rank = -1;

    for (const char *p = strchr(name, '.'); p != NULL; p = strchr(p + 1, '.')) {
        size_t n = strspn(p + 1, "0123456789");

        if (n > 0 && n < 8 && (p[1 + n] == '.' || p[1 + n] == '\0'))
            rank = strtoll(p + 1, NULL, 10);
    }
    return rank;
}

struct reading {
    struct kineto_import k;
    struct chakra_groups groups;
    const char **paths; /* [npaths] of ranks */
    size_t npaths;
};

static zipccl_status read_rank(struct reading *r, const char *path, struct kineto_rank *rank)
{
    struct chakra_file f = {.importer = r->k.importer, .path = path, .world = -1};
    zipccl_status status = look(path) == JSON ? chakra_read_json(&f) : chakra_read_protobuf(&f);

    r->k.importer->report->nlayers += f.nnodes;
    if (status == ZIPCCL_OK)
        status = chakra_make_rank(&r->k, &f, &r->groups, rank_of_name(path), rank);
    chakra_file_free(&f);
    return status;
}

static zipccl_status check_calls(const struct reading *r)
{
    struct zipccl_place at = {r->paths[0], 0, r->k.importer->error};

    for (size_t i = 0; i < r->k.nranks; i++)
        for (size_t c = 0; c < r->k.ranks[i].ncalls; c++)
            if (!r->k.ranks[i].calls[c].opaque)
                return ZIPCCL_OK;
    return zipccl_place_fail(&at,
                             "%" PRIu64 " nodes, none of them communication with \"comm_type\" and "
                             "\"comm_size\", expected one or more: convert with chakra_converter "
                             "from an execution trace and a profile of the same step, or import "
                             "those two themselves",
                             r->k.importer->report->nlayers);
}

static zipccl_status import(struct reading *r, const struct zipccl_importer *all)
{
    for (size_t i = 0; i < all->npaths; i++) {
        if (look(all->paths[i]) == GROUPS)
            ZIPCCL_TRY(chakra_read_groups(&r->groups, all->paths[i], all->error));
        else
            r->paths[r->npaths++] = all->paths[i];
    }
    if (r->npaths == 0)
        return zipccl_fail(all->error, ZIPCCL_ERR_INPUT,
                           "%s: groups alone, expected the .et files of ranks beside it",
                           all->paths[0]);
    for (; r->k.nranks < r->npaths; r->k.nranks++)
        ZIPCCL_TRY(read_rank(r, r->paths[r->k.nranks], &r->k.ranks[r->k.nranks]));
    ZIPCCL_TRY(check_calls(r));
    if (r->k.world < 2)
        return zipccl_fail(all->error, ZIPCCL_ERR_INPUT,
                           "%s: the file of one rank, and no groups, expected the files of all "
                           "ranks, comm_group.json beside them, or the number of ranks (--ranks N)",
                           r->paths[0]);
    return kineto_finish(&r->k);
}

static zipccl_status run(const struct zipccl_importer *importer)
{
    struct zipccl_importer ranks = *importer;
    struct reading r = {.k = {.importer = &ranks,
                              .what = "Chakra execution trace",
                              .rank_of_name = rank_of_name,
                              .provenance = "imported from Chakra execution traces",
                              .generator = "traces/import_chakra 1",
                              .nstreams = 2}};
    zipccl_status status = ZIPCCL_ERR_NOMEM;

    importer->report->layers = "nodes";
    r.k.ranks = calloc(importer->npaths + 1, sizeof *r.k.ranks);
    r.paths = malloc((importer->npaths + 1) * sizeof *r.paths);
    /* The importer of the ranks' files; until they are parted, that of all. */
    for (size_t i = 0; r.paths != NULL && i < importer->npaths; i++)
        r.paths[i] = importer->paths[i];
    ranks.paths = r.paths;
    if (r.k.ranks != NULL && r.paths != NULL) {
        size_t ngroups = 0;

        for (size_t i = 0; i < importer->npaths; i++)
            ngroups += look(importer->paths[i]) == GROUPS;
        ranks.npaths = importer->npaths - ngroups;
        status = import(&r, importer);
    } else {
        zipccl_fail(importer->error, status, "out of memory");
    }
    r.k.nranks = importer->npaths; /* also one that failed half-way */
    kineto_import_free(&r.k);
    chakra_groups_free(&r.groups);
    free(r.paths);
    return status;
}

const struct zipccl_import_format zipccl_import_chakra = {
    .name = "chakra",
    .about = "Chakra: .et or JSON, one file a rank, and comm_group.json",
    .detect = detect,
    .run = run,
};
