/*
 * shim.c - start and end of the library in a process
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/shim.h"

#include "gpu/preload/comms.h"
#include "gpu/preload/log.h"
#include "gpu/preload/rates.h"
#include "gpu/preload/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct zipccl_shim zipccl_shim;
__thread struct zipccl_shim_thread zipccl_shim_thread __attribute__((tls_model("initial-exec")));

static const char *look_up(const char *name)
{
    return getenv(name);
}

/* What was wrong with the variables; told when NCCL is used, since the shells and tools of a job have
 * this library preloaded too. */
static char problem[1024];

__attribute__((constructor)) static void start(void)
{
    struct zipccl_shim_settings *settings = &zipccl_shim.settings;
    const char *level = getenv("ZIPCCL_DEBUG");
    bool ok = zipccl_shim_settings_read(look_up, settings, problem, sizeof problem);

    ok = ok && zipccl_shim_rates_read(settings->cluster, problem, sizeof problem);
    if (!zipccl_log_open(level, getenv("ZIPCCL_DEBUG_FILE")) && ok) {
        (void)snprintf(problem, sizeof problem, "ZIPCCL_DEBUG=%.40s: expected WARN or INFO", level);
        ok = false;
    }
    if (!ok)
        settings->mode = ZIPCCL_SHIM_OFF;
    zipccl_shim.digest = zipccl_shim_settings_digest(settings);
    zipccl_shim.active = settings->mode != ZIPCCL_SHIM_OFF;
#ifdef ZIPCCL_FORWARDING
    /* Whoever asks this library for a function that the one behind it lacks must not find it. */
    zipccl_nccl_find_early();
#endif
}

__attribute__((destructor)) static void stop(void)
{
    if (zipccl_shim.active && zipccl_shim.pid == (int)getpid())
        zipccl_shim_report();
}

void zipccl_shim_say_hello(void)
{
    static int said;
    const struct zipccl_nccl *nccl = zipccl_nccl_get();
    char ops[128];

    if (zipccl_nccl_look_twice())
        zipccl_log_warn(
            "NCCL is in this process twice: %s (%d), which is used here, and %s (%d); a "
            "communicator of one must not be given to the other",
            nccl->path, nccl->version, nccl->second_path, nccl->second_version);
    if (__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED) != 0)
        return;
    zipccl_shim.pid = (int)getpid();
    zipccl_nccl_say_old(nccl);
    if (problem[0] != '\0')
        zipccl_log_warn("%s; zipccl is off in this process", problem);
    zipccl_shim_ops_text(&zipccl_shim.settings, ops, sizeof ops);
    zipccl_log_info("mode %s, NCCL %d (%s, %s); ops: %s",
                    zipccl_shim_mode_name(zipccl_shim.settings.mode), nccl->version, nccl->path,
                    nccl->found, ops);
}

void zipccl_shim_stand_aside(void)
{
    zipccl_shim.active = false;
}
