/*
 * import_kineto.c - imports files of the PyTorch profiler, one a rank, all or some of them
 *
 * Files are read one after the other and let go once their calls and compute are known, so that
 * memory holds one at a time.  traces/IMPORT.md has what is read and what is guessed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_kineto.h"

#include "traces/import_et.h"
#include "traces/trace_internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool contains(const char *head, size_t nbytes, const char *word)
{
    size_t n = strlen(word);

    for (size_t i = 0; i + n <= nbytes; i++)
        if (memcmp(head + i, word, n) == 0)
            return true;
    return false;
}

static bool detect(const char *head, size_t nbytes)
{
    size_t i = nbytes >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

    while (i < nbytes && isspace((unsigned char)head[i]))
        i++;
    if (i == nbytes || (head[i] != '{' && head[i] != '['))
        return false;
    if (contains(head, nbytes, "\"traceEvents\"") || contains(head, nbytes, "\"distributedInfo\""))
        return true;
    if (head[i] == '[')
        return contains(head, nbytes, "\"ph\"");
    return contains(head, nbytes, "\"schemaVersion\"") &&
           contains(head, nbytes, "\"deviceProperties\"");
}

struct zipccl_importer kineto_at(const struct kineto_import *k, const char *const *path)
{
    struct zipccl_importer at = *k->importer;

    at.paths = path;
    at.npaths = 1;
    return at;
}

/* The number after "rank" or "worker" in the file's name, -1 if there is none. */
static int64_t rank_of_name(const char *path)
{
    static const char *const words[] = {"rank", "Rank", "worker"};
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const char *at = strstr(name, words[i]);

        if (at == NULL)
            continue;
        at += strlen(words[i]);
        at += strspn(at, "-_.");
        if (isdigit((unsigned char)*at))
            return strtoll(at, NULL, 10);
    }
    return -1;
}

/* Ranks that groups of the file speak of, plus 1. */
static uint64_t least_world(const struct kineto_file *f, uint64_t rank)
{
    uint64_t least = rank + 1;

    for (size_t i = 0; i < f->nmetas; i++) {
        const struct kineto_meta *m = &f->metas[i];
        uint64_t list[64];
        bool cut;
        size_t n = kineto_list(m->pg_ranks, list, 64, &cut);

        for (size_t k = 0; k < n; k++)
            least = list[k] >= least ? list[k] + 1 : least;
        least = m->size > least ? m->size : least;
        if (m->first >= 0 && m->stride > 0 && m->size > 0 && m->first <= UINT32_MAX &&
            m->stride <= UINT32_MAX) {
            uint64_t last = (uint64_t)m->first + (uint64_t)m->stride * (m->size - 1);

            least = last >= least ? last + 1 : least;
        }
    }
    return least;
}

/*
 * The world of files that do not tell it and need 'least' ranks.  Several files are all ranks or most
 * of them, as their names tell; one, or a few, may be of a cluster that is as large as likely.
 */
static uint64_t likely_world(const struct kineto_import *k, uint64_t least)
{
    uint64_t world = least, likely = k->importer->options->likely_nranks;
    size_t n = k->importer->npaths;

    for (size_t i = 0; k->rank_of_name != NULL && n > 1 && i < n; i++) {
        int64_t rank = k->rank_of_name(k->importer->paths[i]);

        world = rank >= 0 && (uint64_t)rank >= world ? (uint64_t)rank + 1 : world;
    }
    world = n > world ? n : world;
    return likely >= world && (n == 1 || 2 * n < world) ? likely : world;
}

/* The size of the world: what the first file says, or --ranks, or what its groups need. */
static zipccl_status find_world(struct kineto_import *k, const struct kineto_file *f, uint64_t rank)
{
    const struct zipccl_import_options *o = k->importer->options;
    struct zipccl_importer at = kineto_at(k, &f->path);
    struct zipccl_place place = {f->path, 0, k->importer->error};
    uint64_t world = f->world > 0 ? (uint64_t)f->world : o->nranks;

    if (world == 0) {
        world = likely_world(k, least_world(f, rank));
        ZIPCCL_TRY(zipccl_import_count(&at, true, "world", 0, 1,
                                       "the file does not tell the number of ranks: taken to be "
                                       "%" PRIu64 "; option nranks sets another",
                                       world));
    }
    if (o->nranks > 0 && o->nranks != world)
        return zipccl_place_fail(&place,
                                 "a world of %" PRIu64 " ranks, expected %" PRIu32 " as given",
                                 world, o->nranks);
    if (world > ZIPCCL_TRACE_MAX_RANKS)
        return zipccl_place_fail(&place, "a world of %" PRIu64 " ranks, expected at most %" PRIu32,
                                 world, ZIPCCL_TRACE_MAX_RANKS);
    if (o->ranks_per_node > 0 && world % o->ranks_per_node != 0)
        return zipccl_place_fail(&place,
                                 "a world of %" PRIu64 " ranks, expected a multiple of the "
                                 "%" PRIu32 " ranks per node",
                                 world, o->ranks_per_node);
    k->world = (uint32_t)world;
    return ZIPCCL_OK;
}

static zipccl_status find_rank(struct kineto_import *k, const struct kineto_file *f, uint64_t *out)
{
    struct zipccl_importer at = kineto_at(k, &f->path);
    struct zipccl_place place = {f->path, 0, k->importer->error};
    int64_t rank = f->rank >= 0 ? f->rank : rank_of_name(f->path);

    if (f->rank < 0 && rank >= 0)
        ZIPCCL_TRY(zipccl_import_count(&at, true, "rank", 0, 1,
                                       "files that do not tell their rank: it is taken from the "
                                       "file's name"));
    if (rank < 0 && k->importer->npaths > 1)
        return zipccl_place_fail(&place, "no rank in the file or its name, expected "
                                         "\"distributedInfo\" or a name with rank and number");
    if (rank < 0)
        ZIPCCL_TRY(zipccl_import_count(&at, true, "rank", 0, 1,
                                       "the file does not tell its rank: taken to be rank 0"));
    *out = rank < 0 ? 0 : (uint64_t)rank;
    return ZIPCCL_OK;
}

zipccl_status kineto_set_rank(struct kineto_import *k, const struct kineto_file *f,
                              struct kineto_rank *r)
{
    struct zipccl_place place = {f->path, 0, k->importer->error};
    uint64_t rank = 0;

    ZIPCCL_TRY(find_rank(k, f, &rank));
    if (k->world == 0)
        ZIPCCL_TRY(find_world(k, f, rank));
    if (f->world > 0 && (uint64_t)f->world != k->world)
        return zipccl_place_fail(&place,
                                 "a world of %" PRId64 " ranks, expected %" PRIu32
                                 " as the files before it have",
                                 f->world, k->world);
    if (rank >= k->world)
        return zipccl_place_fail(&place, "rank %" PRIu64 ", expected 0 to %" PRIu32, rank,
                                 k->world - 1);
    for (const struct kineto_rank *other = k->ranks; other < r; other++)
        if (other->rank == rank)
            return zipccl_place_fail(&place, "rank %" PRIu64 ", expected another than that of %s",
                                     rank, other->path);
    r->rank = (uint32_t)rank;
    r->path = f->path;
    return ZIPCCL_OK;
}

/*
 * One time that is off (0 where others count from 1970) makes a step of years.  In double, as the
 * difference may not fit.
 */
static zipccl_status check_span(struct kineto_import *k, const struct kineto_file *f)
{
    struct zipccl_place place = {f->path, 0, k->importer->error};
    int64_t first = f->ngpu > 0 ? f->gpu[0].start_ns : 0, last = first;

    for (size_t i = 0; i < f->ngpu; i++) {
        first = f->gpu[i].start_ns < first ? f->gpu[i].start_ns : first;
        last = f->gpu[i].end_ns > last ? f->gpu[i].end_ns : last;
    }
    if (1e-9 * ((double)last - (double)first) <= ZIPCCL_TRACE_MAX_SECONDS)
        return ZIPCCL_OK;
    return zipccl_place_fail(
        &place,
        "GPU activities from \"ts\" %.16g to %.16g us, expected at most %.0f s "
        "between them: a time is off",
        1e-3 * (double)first, 1e-3 * (double)last, ZIPCCL_TRACE_MAX_SECONDS);
}

/* Something to import, and times that are numbers. */
static zipccl_status check_file(struct kineto_import *k, const struct kineto_file *f)
{
    struct zipccl_importer at = kineto_at(k, &f->path);
    struct zipccl_place place = {f->path, 0, k->importer->error};

    ZIPCCL_TRY(zipccl_import_count(&at, true, "untimed events", f->first_untimed, f->nuntimed,
                                   "events whose time is no number are left out"));
    ZIPCCL_TRY(zipccl_import_count(&at, true, "dropped collectives", f->first_dropped, f->ndropped,
                                   "NCCL kernels whose time is no number: their collectives are "
                                   "missing from the trace"));
    ZIPCCL_TRY(zipccl_import_count(&at, false, "no JSON", 0, f->nreplaced,
                                   "values that JSON lacks (NaN, infinities) and control "
                                   "characters in strings, read as null and as spaces"));
    place.line = f->second_gpu;
    if (f->second_gpu > 0)
        return zipccl_place_fail(&place, "NCCL kernels of a second GPU in one file, expected the "
                                         "file of one rank");
    if (f->nnccl > 0 || f->nforeign > 0)
        return check_span(k, f);
    place.line = f->first_dropped;
    if (f->ndropped > 0)
        return zipccl_place_fail(&place,
                                 "NCCL kernels, none with a time (%" PRIu64
                                 " dropped), expected \"ts\" and \"dur\" that are numbers, \"dur\" "
                                 "of 0 or more",
                                 f->ndropped);
    if (f->nkernels == 0)
        return zipccl_place_fail(
            &place,
            "%" PRIu64 " events, none of them a kernel of a GPU%s%s%s, expected NCCL kernels: on "
            "GPUs record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]; a job on "
            "CPUs (gloo, MPI) is recorded by traces/capture, see docs/capture.md",
            f->nevents, f->backend[0] != '\0' ? " (backend " : "", f->backend,
            f->backend[0] != '\0' ? ")" : "");
    return zipccl_place_fail(&place,
                             "%" PRIu64 " kernels, none of them communication, expected NCCL "
                             "kernels: record a step of more than one rank",
                             f->nkernels);
}

/* Time alone is no message: without any size nothing can be replayed. */
static zipccl_status check_sizes(const struct kineto_import *k)
{
    const struct kineto_rank *r = &k->ranks[0];
    struct zipccl_place place = {r->path, 0, k->importer->error};
    size_t n = 0;

    for (size_t i = 0; i < k->nranks; i++)
        for (size_t c = 0; c < k->ranks[i].ncalls; c++) {
            if (!k->ranks[i].calls[c].opaque)
                return ZIPCCL_OK;
            n++;
        }
    return zipccl_place_fail(
        &place,
        "%zu communication kernels, none with op, type and size, expected \"In msg nelems\" or "
        "shapes: record with PyTorch 2.4 or newer, activities CPU and CUDA, record_shapes=True",
        n);
}

/* The execution trace of the file's rank; one alone beside one file is taken to be. */
static void find_beside(struct kineto_import *k, struct kineto_file *file, uint32_t rank)
{
    for (size_t i = 0; i < k->nbeside && file->beside == NULL; i++) {
        int64_t own = et_rank(&k->beside[i].file, k->nbeside);

        if (own == (int64_t)rank || (k->nbeside == 1 && k->importer->npaths == 1))
            file->beside = &k->beside[i];
    }
    if (file->beside != NULL)
        file->beside->used = true;
}

static zipccl_status read_rank(struct kineto_import *k, const char *path, struct kineto_rank *r)
{
    struct kineto_file file;
    zipccl_status status = kineto_read(path, &file, k->importer->error);

    if (status == ZIPCCL_OK)
        status = check_file(k, &file);
    if (status == ZIPCCL_OK)
        status = kineto_set_rank(k, &file, r);
    if (status == ZIPCCL_OK)
        find_beside(k, &file, r->rank);
    if (status == ZIPCCL_OK)
        status = kineto_make_calls(k, &file, r);
    if (status == ZIPCCL_OK)
        status = kineto_make_compute(k, &file, r);
    k->importer->report->nlayers += file.nevents;
    k->nsteps = file.nsteps > k->nsteps ? file.nsteps : k->nsteps;
    kineto_file_free(&file);
    return status;
}

zipccl_status kineto_finish(struct kineto_import *k)
{
    struct kineto_graph graph;
    zipccl_status status;

    ZIPCCL_TRY(kineto_match(k));
    status = kineto_graph_make(k, &graph);
    if (status == ZIPCCL_OK)
        status = kineto_write(k, &graph);
    kineto_graph_free(k, &graph);
    return status;
}

void kineto_import_free(struct kineto_import *k)
{
    for (size_t i = 0; k->ranks != NULL && i < k->nranks; i++) {
        free(k->ranks[i].calls);
        if (!k->ranks[i].shares_segments)
            free(k->ranks[i].segments);
        zipccl_arena_free(&k->ranks[i].arena);
    }
    free(k->ranks);
    for (size_t i = 0; i < k->nbeside; i++)
        kineto_file_free(&k->beside[i].file);
    free(k->beside);
    kineto_sets_free(k);
    zipccl_arena_free(&k->arena);
}

/* Execution traces that nothing was taken from. */
static zipccl_status note_beside(const struct kineto_import *k)
{
    uint64_t unused = 0;

    for (size_t i = 0; i < k->nbeside; i++)
        unused += !k->beside[i].used;
    return zipccl_import_count(k->importer, true, "execution traces", 0, unused,
                               "execution traces of ranks that have no profiler file: not used");
}

static zipccl_status import(struct kineto_import *k)
{
    for (; k->nranks < k->importer->npaths; k->nranks++)
        ZIPCCL_TRY(read_rank(k, k->importer->paths[k->nranks], &k->ranks[k->nranks]));
    ZIPCCL_TRY(check_sizes(k));
    ZIPCCL_TRY(note_beside(k));
    ZIPCCL_TRY(zipccl_import_count(k->importer, false, "steps", 0, k->nsteps > 1,
                                   "the trace holds %" PRIu64 " steps of the profiler; times are "
                                   "sums over them",
                                   k->nsteps));
    return kineto_finish(k);
}

/* Part the files: 'paths' [npaths] are those of the profiler, execution traces are read. */
static zipccl_status part_files(struct kineto_import *k, const struct zipccl_importer *all,
                                const char **paths, size_t *npaths)
{
    char format[ZIPCCL_IMPORT_NAME_SIZE];
    struct stat info;

    for (size_t i = 0; i < all->npaths; i++) {
        /* What is none of both is refused by the reader of profiler files, which tells why. */
        if (all->npaths == 1 || stat(all->paths[i], &info) != 0 || !S_ISREG(info.st_mode) ||
            zipccl_import_detect(all->paths[i], format, sizeof format, NULL) != ZIPCCL_OK ||
            strcmp(format, zipccl_import_et.name) != 0) {
            paths[(*npaths)++] = all->paths[i];
            continue;
        }
        ZIPCCL_TRY(et_read(all->paths[i], &k->beside[k->nbeside++].file, all->error));
    }
    return ZIPCCL_OK;
}

static zipccl_status run(const struct zipccl_importer *importer)
{
    struct zipccl_importer profiles = *importer;
    struct kineto_import k = {.importer = &profiles,
                              .what = "PyTorch profile",
                              .provenance = "imported from files of the PyTorch profiler (Kineto)",
                              .generator = "traces/import_kineto 1",
                              .rank_of_name = rank_of_name,
                              .nstreams = 1};
    const char **paths = malloc((importer->npaths + 1) * sizeof *paths);
    zipccl_status status = ZIPCCL_ERR_NOMEM;

    importer->report->layers = "events";
    profiles.paths = paths;
    profiles.npaths = 0;
    k.ranks = calloc(importer->npaths + 1, sizeof *k.ranks);
    k.beside = calloc(importer->npaths + 1, sizeof *k.beside);
    if (k.ranks != NULL && k.beside != NULL && paths != NULL)
        status = part_files(&k, importer, paths, &profiles.npaths);
    else
        zipccl_fail(importer->error, status, "out of memory");
    if (status == ZIPCCL_OK && profiles.npaths == 0)
        status = zipccl_fail(importer->error, ZIPCCL_ERR_INPUT,
                             "%s: execution traces alone, expected profiler files beside them, or "
                             "the format pytorch-et",
                             importer->paths[0]);
    if (status == ZIPCCL_OK)
        status = import(&k);
    k.nranks = profiles.npaths; /* also one that failed half-way */
    kineto_import_free(&k);
    free(paths);
    return status;
}

const struct zipccl_import_format zipccl_import_kineto = {
    .name = "kineto",
    .about = "PyTorch profiler: JSON or .json.gz, one file a rank",
    .detect = detect,
    .run = run,
};
