#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run_mpi.sh - run a program as NRANKS processes of this machine: run_mpi.sh NRANKS PROGRAM [ARG...]
#
# NRANKS "alone": one process that no launcher has started.
# More processes than cores are expected.
set -u
nranks=$1
shift
command -v mpirun >/dev/null || { echo "skipped: no mpirun here"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export LSAN_OPTIONS="print_suppressions=0:${LSAN_OPTIONS:-}"
[ "$nranks" != alone ] || exec "$@"
exec mpirun --oversubscribe --bind-to none -n "$nranks" \
    --mca btl vader,self --mca pml ob1 --mca btl_base_warn_component_unused 0 \
    -x LSAN_OPTIONS "$@"
