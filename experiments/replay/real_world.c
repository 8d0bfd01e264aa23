/*
 * real_world.c - the world that a command line asks for: threads, or a launcher's processes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/replay/real_world.h"

#include "experiments/ranks/launch.h"
#include "experiments/ranks/world_nccl.h"
#ifdef ZIPCCL_HAVE_MPI
#include "experiments/ranks/world_mpi.h"
#endif

#include <string.h>
#include <unistd.h>

static uint32_t processors(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n > 2 ? (uint32_t)n : 2;
}

static zipccl_status open_nccl(struct zipccl_world_options *options,
                               const struct zipccl_launch *launch, struct zipccl_world **out,
                               struct zipccl_error *error)
{
    options->kind = ZIPCCL_WORLD_NCCL;
    if (options->open_nccl == NULL)
        return zipccl_fail(
            error, ZIPCCL_ERR_UNSUPPORTED,
            "--on nccl is of zipccl-perf-nccl, which 'zipccl' runs for it where CUDA "
            "and NCCL were found");
    if (launch->launcher != NULL && options->nthreads > 1)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "-t %u is of --on nccl without a launcher; %s has started %u process%s, "
                           "one rank each",
                           options->nthreads, launch->launcher, launch->size,
                           launch->size != 1 ? "es" : "");
    return zipccl_world_open(options, out, error);
}

zipccl_status zipccl_real_world_open(const struct zipccl_real_world *wanted,
                                     struct zipccl_world **out, struct zipccl_error *error)
{
    struct zipccl_world_options options = {.kind = ZIPCCL_WORLD_THREADS,
                                           .nthreads = wanted->nthreads,
                                           .ranks_per_node = wanted->ranks_per_node,
                                           .timeout_s = wanted->timeout_s,
                                           .gate = wanted->gate};
    struct zipccl_launch launch;

#ifdef ZIPCCL_HAVE_MPI
    options.open_mpi = zipccl_world_open_mpi;
#endif
    options.open_nccl = zipccl_world_nccl_opener();
    ZIPCCL_TRY(zipccl_launch_from_environment(&launch, error));
    if (wanted->on == ZIPCCL_ON_NCCL)
        return open_nccl(&options, &launch, out, error);
    /* A lone process that is told of threads has them, also where srun started a shell. */
    if (wanted->on == ZIPCCL_ON_MPI || (wanted->on == ZIPCCL_ON_AUTO && launch.launcher != NULL &&
                                        (launch.size > 1 || wanted->nthreads == 0)))
        options.kind = ZIPCCL_WORLD_MPI;
    if (options.kind == ZIPCCL_WORLD_MPI && wanted->nthreads > 1 && launch.launcher == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "-t %u is of --on threads; ranks of --on mpi are processes: start them "
                           "with mpirun -np %u",
                           wanted->nthreads, wanted->nthreads);
    if (options.kind == ZIPCCL_WORLD_MPI && wanted->nthreads > 1)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "-t %u is of --on threads; %s has started %u process%s, one rank each",
                           wanted->nthreads, launch.launcher, launch.size,
                           launch.size != 1 ? "es" : "");
    if (options.kind == ZIPCCL_WORLD_THREADS)
        ZIPCCL_TRY(zipccl_launch_check_alone(&launch, error));
    if (options.nthreads == 0)
        options.nthreads = processors();
    if (options.kind == ZIPCCL_WORLD_THREADS && options.nthreads > ZIPCCL_MAX_RANK_THREADS)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%u ranks as threads, expected at most %d: more as processes of mpirun",
                           options.nthreads, ZIPCCL_MAX_RANK_THREADS);
    return zipccl_world_open(&options, out, error);
}

void zipccl_real_world_rates(const struct zipccl_world *world, struct zipccl_cost_params *params)
{
    struct zipccl_comm_config defaults;

    zipccl_comm_config_init(&defaults);
    *params = defaults.params;
    if (world->device != NULL) {
        world->device->params(params);
        return;
    }
    if (world->nhost < world->nranks)
        return;
    params->nic_Bps = params->nvlink_Bps;
    params->nic_alpha_s = params->nvlink_alpha_s;
    params->nics_per_node = 1; /* one for each rank: memory has no port that they share */
    for (uint32_t v = 0; v < world->topology->nnodes; v++)
        if (zipccl_topology_node_size(world->topology, v) > params->nics_per_node)
            params->nics_per_node = zipccl_topology_node_size(world->topology, v);
}

void zipccl_real_world_list_rates(const struct zipccl_cost_params *p,
                                  struct zipccl_rate out[ZIPCCL_NUM_RATES])
{
    const struct zipccl_rate rates[ZIPCCL_NUM_RATES] = {
        {"nvlink.rate", "B/s", p->nvlink_Bps},
        {"nvlink.alpha", "s", p->nvlink_alpha_s},
        {"nic.rate", "B/s", p->nic_Bps},
        {"nic.alpha", "s", p->nic_alpha_s},
        {"nic.per_node", "", p->nics_per_node},
        {"codec.encode_rate", "B/s", p->encode_Bps},
        {"codec.decode_rate", "B/s", p->decode_Bps},
        {"codec.launch", "s", p->codec_launch_s},
        {"codec.fence", "s", p->fence_s},
        {"copy.rate", "B/s", p->copy_Bps},
    };

    memcpy(out, rates, sizeof rates);
}

const char *zipccl_real_world_rates_source(bool cluster)
{
    return cluster ? "the cluster, for the chooser alone" : "round figures, for the chooser alone";
}

bool zipccl_real_world_writes(void)
{
    struct zipccl_launch launch;
    struct zipccl_error error;

    /* What is wrong with the variables zipccl_real_world_open() tells. */
    return zipccl_launch_from_environment(&launch, &error) != ZIPCCL_OK || launch.rank == 0;
}
