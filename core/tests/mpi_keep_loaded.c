/*
 * mpi_keep_loaded.c - tell leaks of Open MPI, which are not ours, from others
 *
 * Builds with AddressSanitizer only; part of each program that uses MPI.  Memory that Open MPI and what
 * it loads never free is overlooked, and nothing else.  Open MPI unloads the components that it does not
 * use, and what they have not freed would then belong to no library: dlclose() does nothing here.
 * MPI_Finalize, by MPI's profiling interface, is what makes the linker take this file, and looks for
 * leaks while Open MPI's own pointers to its memory still stand.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dlfcn.h>
#include <mpi.h>
#include <sanitizer/lsan_interface.h>

/* asprintf(), which zipccl never calls, too: its callers in Open MPI have no frame to be named by. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void)
{
    return "leak:libmpi.so\nleak:libopen-pal.so\nleak:libopen-rte.so\nleak:/openmpi/\n"
           "leak:libpmix.so\nleak:/pmix2/\nleak:libhwloc.so\nleak:libevent\n"
           "leak:__vasprintf_internal\n";
}

__attribute__((visibility("default"))) int dlclose(void *handle)
{
    (void)handle;
    return 0;
}

int MPI_Finalize(void)
{
    __lsan_do_leak_check(); /* instead of at exit; it ends the process where it finds one */
    return PMPI_Finalize();
}
