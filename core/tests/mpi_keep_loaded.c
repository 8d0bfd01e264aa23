/*
 * mpi_keep_loaded.c - keep what Open MPI has loaded, so that its leaks have a name
 *
 * Builds with AddressSanitizer only.  Open MPI unloads the components that it does not use, and what
 * they have not freed then belongs to no library that tests/mpi_leaks.txt could name.  dlclose() does
 * nothing here; MPI_Finalize, by MPI's profiling interface, is what makes the linker take this file,
 * and looks for leaks while Open MPI's own pointers to its memory still stand.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dlfcn.h>
#include <mpi.h>
#include <sanitizer/lsan_interface.h>

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
