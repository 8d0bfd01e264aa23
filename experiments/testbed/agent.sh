#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# agent.sh - mpirun's way to a host of the testbed: agent.sh [OPTION...] ADDRESS COMMAND...
#
# Stands where ssh would.  Enters the network namespace that has the address, with a host name of its
# own, since Open MPI tells hosts apart by name.  ZIPCCL_TESTBED is the name of the testbed.
while [ "${1#-}" != "$1" ]; do shift; done
node=$ZIPCCL_TESTBED-node${1##*.}
shift
exec ip netns exec "$node" unshare --uts sh -c 'hostname "$1" && shift && eval "exec $*"' sh "$node" "$@"
