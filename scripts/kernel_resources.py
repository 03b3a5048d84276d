#!/usr/bin/env python3
"""Registers, spills, stack and shared memory of every kernel, from the compiler's own report.

usage: scripts/kernel_resources.py [--out FILE] [--nvcc NVCC]

Compiles each .cu of cuda/ for sm_80 and sm_90 (about two minutes; nothing is linked or run) and writes
a table (default docs/measurements/kernel_resources.md). Fails if a kernel spills. CUB's kernels, which
come with the toolkit, are left out. Threads that fit a multiprocessor follow from the registers: 65,536
of them, at most 2,048 threads.
"""
import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ARCHITECTURES = ("sm_80", "sm_90")
REGISTERS, THREADS = 65536, 2048  # of a multiprocessor, on both

OURS = re.compile(r"(void )?cistern::")
ENTRY = re.compile(r"Compiling entry function '(\w+)'")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers(?:.*?, (\d+) bytes smem)?")


def short_name(demangled):
    """A kernel's name, its plain template arguments, and the op whose lambda it is made for."""
    at = demangled.split("cistern::", 1)[1]
    name = re.search(r"(\w+Kernel|Ramp)\b(<[^()]*?>)?", at)
    op = re.search(r"gpu::\(?.*?(\w+)\([^{]*\{lambda", at.split("Kernel", 1)[-1])
    ordinal = re.search(r"\{lambda[^}]*\}?\)?#(\d+)\}", at)
    arguments = name.group(2) if name.group(2) and "lambda" not in name.group(2) else ""
    label = name.group(1) + (arguments or "")
    if op:
        label += f" for {op.group(1)}"
        if ordinal and ordinal.group(1) != "1":
            label += f" ({ordinal.group(1)})"
    return label


def compile_one(nvcc, source, architecture):
    with tempfile.TemporaryDirectory() as folder:
        command = [nvcc, "-std=c++20", "-O3", "--extended-lambda", f"-arch={architecture}", "-cubin",
                   "-Xptxas", "-v", "-I", str(ROOT), str(source), "-o", f"{folder}/x.cubin"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"kernel_resources: {source}: {result.stderr}")
    kernels, kernel = {}, None
    for line in result.stderr.splitlines():
        if match := ENTRY.search(line):
            kernel = kernels.setdefault(match.group(1), {})
        elif (match := FRAME.search(line)) and kernel is not None:
            kernel["stack"] = int(match.group(1))
            kernel["spill"] = int(match.group(2)) + int(match.group(3))
        elif (match := USED.search(line)) and kernel is not None:
            kernel["registers"] = int(match.group(1))
            kernel["shared"] = int(match.group(2) or 0)
    return source, architecture, kernels


def demangle(names):
    result = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True,
                            check=True)
    return dict(zip(names, result.stdout.splitlines()))


def fits(registers):
    """Threads of a multiprocessor, in warps: registers are given out in eights."""
    return min(THREADS, REGISTERS // (-(-registers // 8) * 8) // 32 * 32)


def rows_of(found):
    rows = []
    for source in sorted(found):
        names = sorted(set().union(*found[source].values()))
        readable = demangle(names)
        names = [name for name in names if OURS.match(readable[name])]
        for name in sorted(names, key=lambda n: short_name(readable[n])):
            cells = []
            for architecture in ARCHITECTURES:
                kernel = found[source][architecture][name]
                cells += [kernel["registers"], fits(kernel["registers"]), kernel["spill"],
                          kernel["stack"], kernel["shared"]]
            rows.append((source.relative_to(ROOT / "cuda"), short_name(readable[name]), cells))
    return rows


def table(rows, version):
    columns = ["registers", "threads", "spill", "stack", "shared"]
    head = [f"{architecture[3:]}: {c}" for architecture in ARCHITECTURES for c in columns]
    lines = ["# Resources of every kernel, by the compiler", "",
             f"Made by `scripts/kernel_resources.py` with {version}. Registers a thread; threads that "
             "then fit a", "multiprocessor (of 2,048); bytes of spills, stack and static shared "
             "memory. Dynamic shared memory is", "the launch's: see the `.cu`.", "",
             "| file | kernel | " + " | ".join(head) + " |", "|---" * (len(head) + 2) + "|"]
    for source, name, cells in rows:
        lines.append(f"| {source} | `{name}` | " + " | ".join(str(c) for c in cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=ROOT / "docs/measurements/kernel_resources.md",
                        type=pathlib.Path)
    parser.add_argument("--nvcc", default="nvcc")
    arguments = parser.parse_args()
    sources = sorted((ROOT / "cuda").rglob("*.cu"))
    found = {source: {} for source in sources}
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        jobs = [pool.submit(compile_one, arguments.nvcc, source, architecture)
                for source in sources for architecture in ARCHITECTURES]
        for job in jobs:
            source, architecture, kernels = job.result()
            found[source][architecture] = kernels
    rows = rows_of(found)
    version = subprocess.run([arguments.nvcc, "--version"], capture_output=True, text=True,
                             check=True).stdout.splitlines()[-2].split(",")[-1].strip()
    arguments.out.write_text(table(rows, f"nvcc {version}"), encoding="utf-8")
    spilling = [f"{source}: {name}" for source, name, cells in rows if cells[2] or cells[7]]
    print(f"{len(rows)} kernels, {len(spilling)} spill: {arguments.out}")
    for line in spilling:
        print(f"  {line}")
    return 1 if spilling else 0


if __name__ == "__main__":
    sys.exit(main())
