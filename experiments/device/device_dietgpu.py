#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""device_dietgpu.py - how long DietGPU takes to encode and decode bf16 on one GPU

device_dietgpu.py LIBDIETGPU [-o RESULT.json] [--most BYTES] [--repeats N]

DietGPU has no C interface: its library is an extension of PyTorch, and is called through it.  Rows are those
of zipccl-device-check: Gaussian elements, median and quartiles, raw bytes a second, bytes moved (raw and
compressed).  With -o they are added to that program's result as "dietgpu".  What comes back must be what went in.
"""
import argparse
import json
import os
import sys

WORKS = ("encode", "decode")


def timed(torch, device, call):
    """Milliseconds of one call, by events of the device."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    call()
    end.record()
    torch.cuda.synchronize(device)
    return start.elapsed_time(end)


def row_of(work, nbytes, packed, ms):
    ms = sorted(ms)
    n = len(ms)
    return {
        "peer": "DietGPU",
        "work": work,
        "raw_bytes": nbytes,
        "median_s": ms[n // 2] / 1e3,
        "q1_s": ms[n // 4] / 1e3,
        "q3_s": ms[3 * n // 4] / 1e3,
        "moved_bytes": nbytes + packed,
        "ratio": nbytes / packed,
    }


def measure(torch, device, timer, nbytes, repeats):
    """Rows of one size; ValueError if elements come back changed."""
    ops, n = torch.ops.dietgpu, nbytes // 2
    generator = torch.Generator(device=device).manual_seed(1)
    elements = (torch.randn(n, generator=generator, device=device) * 0.02).to(torch.bfloat16)
    room = torch.empty([max(64 << 20, 2 * nbytes)], dtype=torch.uint8, device=device)
    rows, columns = ops.max_float_compressed_output_size([elements])
    packed = torch.empty([rows, columns], dtype=torch.uint8, device=device)
    sizes = torch.zeros([1], dtype=torch.int, device=device)
    back = torch.empty_like(elements)
    status = torch.empty([1], dtype=torch.uint8, device=device)
    got = torch.empty([1], dtype=torch.int32, device=device)

    def encode():
        ops.compress_data(True, [elements], False, room, packed, sizes)

    encode()
    size = int(sizes[0].item())
    message = packed[0, :size].contiguous()

    def decode():
        ops.decompress_data(True, [message], [back], False, room, status, got)

    decode()
    if not torch.equal(back.view(torch.int16), elements.view(torch.int16)):
        raise ValueError(f"{nbytes} bytes: what comes back is not what went in")
    return [row_of(work, nbytes, size, [timer(torch, device, call) for _ in range(repeats)])
            for work, call in zip(WORKS, (encode, decode))]


def print_row(row, out):
    median = row["median_s"] or 1e-9
    print(f"{row['raw_bytes']:12d}  {'DietGPU ' + row['work']:<21s} {'-':>4s} {row['median_s'] * 1e6:11.2f} "
          f"{row['q1_s'] * 1e6:11.2f} {row['q3_s'] * 1e6:11.2f} {row['raw_bytes'] / median / 1e9:9.1f} "
          f"{row['moved_bytes'] / median / 1e9:9.1f} {'-':>8s} {row['ratio']:6.3f}", file=out)


def add_to(path, rows):
    """Put the rows into the result at 'path', which changes whole or not at all."""
    with open(path, encoding="utf-8") as file:
        result = json.load(file)
    result["dietgpu"] = {"rows": rows}
    partial = f"{path}.{os.getpid()}"
    try:
        with open(partial, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=4)
            file.write("\n")
        os.replace(partial, path)
    except OSError:
        if os.path.exists(partial):
            os.unlink(partial)
        raise


def main(arguments, device="cuda:0", timer=timed):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("library", help="libdietgpu.so, as DietGPU's own build makes it")
    parser.add_argument("-o", dest="result", help="zipccl-device-check's JSON, which gets the rows")
    parser.add_argument("--most", type=int, default=1 << 30, help="largest size in bytes (default 1 GiB)")
    parser.add_argument("--repeats", type=int, default=21)
    options = parser.parse_args(arguments)
    rows = []
    try:
        import torch  # only here: without it there is an error to tell

        torch.ops.load_library(options.library)
        nbytes = 64 << 10
        while nbytes <= options.most:
            for row in measure(torch, device, timer, nbytes, options.repeats):
                print_row(row, sys.stdout)
                rows.append(row)
            nbytes *= 4
        if options.result:
            add_to(options.result, rows)
    except (ImportError, OSError, RuntimeError, ValueError, AttributeError) as error:
        print(f"DietGPU   not measured: {(str(error) or type(error).__name__).splitlines()[0]}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
