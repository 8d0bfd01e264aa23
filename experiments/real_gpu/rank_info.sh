#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# rank_info.sh - what this rank sees, for the preflight
#
# rank_info.sh         one line: where it runs, its GPUs, its NICs, and whether the launcher says where rank 0 is
# rank_info.sh gpus    of rank 0 alone: how its GPUs are connected, and their clocks
rank=${OMPI_COMM_WORLD_RANK:-${RANK:-${SLURM_PROCID:-${PMI_RANK:-0}}}}
size=${OMPI_COMM_WORLD_SIZE:-${WORLD_SIZE:-${SLURM_NTASKS:-${PMI_SIZE:-1}}}}
if [ "${1:-}" = gpus ]; then
    [ "$rank" = 0 ] || exit 0
    nvidia-smi topo -m 2>/dev/null
    nvidia-smi --query-gpu=index,name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,clocks_throttle_reasons.active,power.draw,power.limit,temperature.gpu,memory.used,compute_mode,persistence_mode \
        --format=csv 2>/dev/null
    exit 0
fi
gpus=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | sort | uniq -c |
    sed 's/^ *//' | paste -sd ';' - 2>/dev/null)
nics=$(for dev in /sys/class/infiniband/*; do
    [ -e "$dev/ports/1/rate" ] && printf '%s %s;' "${dev##*/}" "$(cut -d' ' -f1-2 "$dev/ports/1/rate")"
done)
[ -n "$nics" ] || nics=$(for dev in /sys/class/net/*; do
    case ${dev##*/} in lo | docker* | veth*) continue ;; esac
    printf '%s %s Mb/s;' "${dev##*/}" "$(cat "$dev/speed" 2>/dev/null || echo '?')"
done)
nics=${nics%;} master=unknown
[ -z "${MASTER_ADDR:-}" ] || master=known
printf 'zipccl-rank %s of %s on %s: GPUs %s; NICs %s; rank 0 %s\n' "$rank" "$size" "$(uname -n)" "${gpus:-none seen}" \
    "${nics:-none seen}" "$master"
