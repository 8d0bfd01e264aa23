/*
 * units.h - the one strict parser of numbers with units, for cluster files, --set and options
 *
 * "200Gbps", "24.2 GBps", "5us", "80GB", "312TFLOPS", "0.5", "108".  Nothing else passes: no
 * trailing characters, no nan, no inf, no hex, no leading zeros, no missing or foreign unit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_MODELS_UNITS_H
#define ZIPCCL_MODELS_UNITS_H

#include "core/status.h"

enum zipccl_unit {
    ZIPCCL_UNIT_NONE,  /* plain number or fraction */
    ZIPCCL_UNIT_COUNT, /* plain integer >= 0 */
    ZIPCCL_UNIT_RATE,  /* bytes/s: kBps MBps GBps TBps, kbps Mbps Gbps Tbps (decimal) */
    ZIPCCL_UNIT_TIME,  /* s: s ms us ns */
    ZIPCCL_UNIT_BYTES, /* bytes: B kB MB GB TB (decimal) KiB MiB GiB TiB (binary) */
    ZIPCCL_UNIT_FLOPS  /* flop/s: GFLOPS TFLOPS PFLOPS */
};

/*
 * Parse 'text' as a number of 'unit' within [min, max] (in base units: bytes/s, s, bytes, flop/s).
 * ZIPCCL_ERR_INPUT with what was found and what was expected (examples) in 'error'.
 */
zipccl_status zipccl_parse_quantity(const char *text, enum zipccl_unit unit, double min, double max,
                                    double *out, struct zipccl_error *error);

#endif
