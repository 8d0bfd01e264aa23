/*
 * platform.c - writes and loads the SimGrid platform of a cluster
 *
 * One zone per node, all joined at the root: routes grow with nodes squared, not with GPUs squared.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/platform.h"

#include <errno.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <simgrid/version.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

#define SIMULATOR                                                                                  \
    {                                                                                              \
        "simulator",                                                                               \
            "SimGrid " TEXT(SIMGRID_VERSION_MAJOR) "." TEXT(SIMGRID_VERSION_MINOR) "." TEXT(       \
                SIMGRID_VERSION_PATCH),                                                            \
            "", "version compiled against"                                                         \
    }
#define COMMON_SETTINGS                                                                            \
    {"network/TCP-gamma", "0", "", "no TCP window limit"},                                         \
        {"network/crosstraffic", "0", "", "no TCP acknowledgements on the way back"},              \
        {"maxmin/precision", "1e-9", "", "relative to the capacities above 1e11 used here"},       \
        {"surf/precision", "1e-12", "s", "times closer than this are one"},                        \
        {"contexts/factory", "raw", "", "no effect on results"},                                   \
        {"contexts/stack-size", "256", "KiB", "no effect on results"},                             \
    {                                                                                              \
        "contexts/nthreads", "1", "", "all simulated ranks share one thread"                       \
    }

static const struct zipccl_result_note flow_settings[] = {
    SIMULATOR,
    {"host/model", "ptask_L07", "", "parallel tasks; network, codec, SMs and HBM shared max-min"},
    COMMON_SETTINGS,
    {"link latency", "0", "s", "alpha is charged once per round instead"},
    {"seed", "1", "", "generated samples; the simulation itself draws no random numbers"},
};

static const struct zipccl_result_note message_settings[] = {
    SIMULATOR,
    {"network/model", "CM02", "", "each message a flow; links shared max-min"},
    COMMON_SETTINGS,
    {"link latency", "0", "s", "alpha is charged by the sender's and the receiver's group instead"},
    {"seed", "1", "", "generated samples; the simulation itself draws no random numbers"},
};

const struct zipccl_result_note *zipccl_platform_settings(enum zipccl_platform_kind kind, size_t *n)
{
    if (kind == ZIPCCL_PLATFORM_MESSAGES) {
        *n = sizeof(message_settings) / sizeof(message_settings[0]);
        return message_settings;
    }
    *n = sizeof(flow_settings) / sizeof(flow_settings[0]);
    return flow_settings;
}

static void start_simgrid(enum zipccl_platform_kind kind)
{
    char name[] = "zipccl-sim", flows[] = "--cfg=host/model:ptask_L07",
         messages[] = "--cfg=network/model:CM02", gamma[] = "--cfg=network/TCP-gamma:0",
         cross[] = "--cfg=network/crosstraffic:0", maxmin[] = "--cfg=maxmin/precision:1e-9",
         surf[] = "--cfg=surf/precision:1e-12", factory[] = "--cfg=contexts/factory:raw",
         stack[] = "--cfg=contexts/stack-size:256", threads[] = "--cfg=contexts/nthreads:1",
         quiet[] = "--log=root.thres:critical";
    char *argv[] = {name,    kind == ZIPCCL_PLATFORM_MESSAGES ? messages : flows,
                    gamma,   cross,
                    maxmin,  surf,
                    factory, stack,
                    threads, quiet,
                    NULL};
    int argc = 10;

    simgrid_init(&argc, argv);
}

static void write_link(FILE *f, const char *name, uint32_t id, double Bps)
{
    fprintf(f, "<link id=\"%s%u\" bandwidth=\"%.17gBps\" latency=\"0s\"/>\n", name, id, Bps);
}

static void write_route(FILE *f, const char *src_kind, uint32_t src, const char *dst_kind,
                        uint32_t dst)
{
    fprintf(f, "<route src=\"%s%u\" dst=\"%s%u\" symmetrical=\"NO\">", src_kind, src, dst_kind,
            dst);
}

static void write_node(FILE *f, const struct zipccl_cluster *c, uint32_t node)
{
    uint32_t gpn = c->gpus_per_node, first = node * gpn;

    fprintf(f, "<zone id=\"node%u\" routing=\"Full\">\n", node);
    for (uint32_t g = first; g < first + gpn; g++) {
        fprintf(f, "<host id=\"gpu%u\" speed=\"%.17gf\"/>\n", g, ZIPCCL_PLATFORM_SPEED);
        fprintf(f, "<host id=\"sm%u\" speed=\"%.17gf\"/>\n", g, ZIPCCL_PLATFORM_SPEED);
        fprintf(f, "<host id=\"hbm%u\" speed=\"%.17gf\"/>\n", g, c->gpu_hbm_Bps);
    }
    fprintf(f, "<router id=\"exit%u\"/>\n", node);
    for (uint32_t g = first; g < first + gpn; g++) {
        write_link(f, "nvup", g, c->nvlink_Bps);
        write_link(f, "nvdown", g, c->nvlink_Bps);
    }
    for (uint32_t k = 0; k < c->nics_per_node; k++) {
        write_link(f, "nicup", node * c->nics_per_node + k, c->nic_Bps);
        write_link(f, "nicdown", node * c->nics_per_node + k, c->nic_Bps);
    }
    for (uint32_t g = first; g < first + gpn; g++) {
        uint32_t nic = node * c->nics_per_node + (g - first) * c->nics_per_node / gpn;

        for (uint32_t h = first; h < first + gpn; h++) {
            if (h == g)
                continue;
            write_route(f, "gpu", g, "gpu", h);
            fprintf(f, "<link_ctn id=\"nvup%u\"/><link_ctn id=\"nvdown%u\"/></route>\n", g, h);
        }
        write_route(f, "gpu", g, "exit", node);
        fprintf(f, "<link_ctn id=\"nicup%u\"/></route>\n", nic);
        write_route(f, "exit", node, "gpu", g);
        fprintf(f, "<link_ctn id=\"nicdown%u\"/></route>\n", nic);
    }
    fprintf(f, "</zone>\n");
}

static void write_platform(FILE *f, const struct zipccl_cluster *c)
{
    /* A non-blocking fabric is no limit, but SimGrid wants a link in each route between zones. */
    double fabric_Bps = c->fabric_oversubscription > 1
                            ? c->nics_per_node * c->nic_Bps / c->fabric_oversubscription
                            : c->nics_per_node * c->nic_Bps * 16;

    fprintf(f, "<?xml version='1.0'?>\n"
               "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
               "<platform version=\"4.1\">\n<zone id=\"world\" routing=\"Full\">\n");
    for (uint32_t n = 0; n < c->nodes; n++)
        write_node(f, c, n);
    for (uint32_t n = 0; n < c->nodes; n++) {
        write_link(f, "fabup", n, fabric_Bps);
        write_link(f, "fabdown", n, fabric_Bps);
    }
    for (uint32_t a = 0; a < c->nodes; a++)
        for (uint32_t b = 0; b < c->nodes; b++)
            if (a != b)
                fprintf(f,
                        "<zoneRoute src=\"node%u\" dst=\"node%u\" gw_src=\"exit%u\" "
                        "gw_dst=\"exit%u\" symmetrical=\"NO\"><link_ctn id=\"fabup%u\"/>"
                        "<link_ctn id=\"fabdown%u\"/></zoneRoute>\n",
                        a, b, a, b, a, b);
    fprintf(f, "</zone>\n</platform>\n");
}

/* An XML file in memory: nothing to unlink, however this process ends.  '*out' is its descriptor. */
static zipccl_status write_file(const struct zipccl_cluster *cluster, int *out,
                                struct zipccl_error *error)
{
    int fd = memfd_create("zipccl-platform", MFD_CLOEXEC), copy = fd >= 0 ? dup(fd) : -1;
    FILE *f = copy >= 0 ? fdopen(copy, "w") : NULL;
    bool failed = f == NULL;

    if (f != NULL) {
        write_platform(f, cluster);
        failed = ferror(f) != 0;
        failed |= fclose(f) != 0;
    } else if (copy >= 0) {
        close(copy);
    }
    if (!failed) {
        *out = fd;
        return ZIPCCL_OK;
    }
    if (fd >= 0)
        close(fd);
    return zipccl_fail(error, ZIPCCL_ERR_IO, "a platform in memory cannot be written: %s",
                       strerror(errno));
}

static sg_host_t find_host(const char *kind, uint32_t gpu)
{
    char name[32];

    snprintf(name, sizeof(name), "%s%u", kind, gpu);
    return sg_host_by_name(name);
}

zipccl_status zipccl_platform_load(const struct zipccl_cluster *cluster,
                                   enum zipccl_platform_kind kind, struct zipccl_platform *out,
                                   struct zipccl_error *error)
{
    char path[64];
    int fd = -1;
    struct zipccl_platform p = {.ngpus = cluster->nodes * cluster->gpus_per_node};

    p.gpu = calloc((size_t)p.ngpus * 3, sizeof(*p.gpu));
    if (p.gpu == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    p.sm = p.gpu + p.ngpus;
    p.hbm = p.sm + p.ngpus;
    if (write_file(cluster, &fd, error) != ZIPCCL_OK) {
        free(p.gpu);
        return ZIPCCL_ERR_IO;
    }
    start_simgrid(kind);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    simgrid_load_platform(path);
    close(fd);
    for (uint32_t g = 0; g < p.ngpus; g++) {
        p.gpu[g] = find_host("gpu", g);
        p.sm[g] = find_host("sm", g);
        p.hbm[g] = find_host("hbm", g);
    }
    *out = p;
    return ZIPCCL_OK;
}

void zipccl_platform_release(struct zipccl_platform *platform)
{
    free(platform->gpu);
    platform->gpu = NULL;
}
