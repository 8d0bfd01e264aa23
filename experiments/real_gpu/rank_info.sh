#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# rank_info.sh - one line of this rank for the preflight: where it runs, its GPUs, its NICs
rank=${OMPI_COMM_WORLD_RANK:-${RANK:-${SLURM_PROCID:-${PMI_RANK:-0}}}}
size=${OMPI_COMM_WORLD_SIZE:-${WORLD_SIZE:-${SLURM_NTASKS:-${PMI_SIZE:-1}}}}
gpus=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | sort | uniq -c |
    sed 's/^ *//' | paste -sd ';' - 2>/dev/null)
nics=$(for dev in /sys/class/infiniband/*; do
    [ -e "$dev/ports/1/rate" ] && printf '%s %s;' "${dev##*/}" "$(cut -d' ' -f1-2 "$dev/ports/1/rate")"
done)
[ -n "$nics" ] || nics=$(for dev in /sys/class/net/*; do
    case ${dev##*/} in lo | docker* | veth*) continue ;; esac
    printf '%s %s Mb/s;' "${dev##*/}" "$(cat "$dev/speed" 2>/dev/null || echo '?')"
done)
printf 'zipccl-rank %s of %s on %s: GPUs %s; NICs %s\n' "$rank" "$size" "$(uname -n)" "${gpus:-none seen}" "${nics:-none seen}"
