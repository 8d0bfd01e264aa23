/*
 * rendezvous.h - gives what rank 0 has to all processes of a launcher, without MPI
 *
 * For the few bytes with which NCCL finds its ranks.  Over TCP: rank 0 listens, the others fetch.
 *
 *     MASTER_ADDR, MASTER_PORT   where rank 0 is, as torchrun sets them; the port next to it is
 *                                taken, since torchrun's own store has that one.  Others set them
 *                                by hand
 *     neither                    all processes are on this host: a port that follows from their
 *                                parent.  Or Slurm has started them on several: rank 0 is on the
 *                                first of its list, the port follows from job and step
 *     ZIPCCL_JOB                 a word of the job's own, the same for all its processes; unset:
 *                                what torchrun, PMIx or Slurm calls the job
 *
 * Processes of another job, of another number of ranks, or that ask for another number of bytes get
 * nothing.  That keeps jobs apart, not attackers out: all goes in the clear.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_RENDEZVOUS_H
#define ZIPCCL_EXPERIMENTS_RENDEZVOUS_H

#include "experiments/ranks/launch.h"

#include <stddef.h>

/*
 * Fill 'bytes' [nbytes] on all processes with what rank 0 has in it.  Collective.
 *
 * timeout_s  longest to wait for the other processes; 0: a minute
 *
 * ZIPCCL_ERR_INPUT if the variables are wrong; ZIPCCL_ERR_MISMATCH if rank 0's job is of another
 * size; ZIPCCL_ERR_IO, with the address, if some do not come.
 */
zipccl_status zipccl_rendezvous(const struct zipccl_launch *launch, void *bytes, size_t nbytes,
                                double timeout_s, struct zipccl_error *error);

/*
 * Write the first host of Slurm's 'list' ("a[07-09,12]n[1-2],b": "a07n1") to 'out' [size].
 * False if there is none, or it is no list or too long.
 */
bool zipccl_rendezvous_first_host(const char *list, char *out, size_t size);

#endif
