#!/usr/bin/env python3
"""Tabulates registers, spills, shared memory and load widths of every kernel, as the compiler reports them.

usage: scripts/kernel_resources.py [--out FILE] [--nvcc NVCC] [--nvdisasm NVDISASM]

Compiles each .cu of cuda/ for sm_80 and sm_90 (about two minutes; nothing is linked or run) and writes
a table (default docs/measurements/kernel_resources.md). Fails if a kernel spills. CUB's kernels, which
are part of the toolkit, are left out. The number of threads that fit a multiprocessor follows from the
registers: a multiprocessor has 65,536, and at most 2,048 threads.

The widths of loads and stores come from the disassembly for sm_90 if nvdisasm is installed next to nvcc,
on PATH, or by `pip install nvidia-cuda-nvdisasm`; else from the PTX, whose widths ptxas rarely changes.
The page states which.
"""
import argparse
import collections
import concurrent.futures
import importlib.util
import pathlib
import re
import shutil
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

# In the disassembly: LDG.E.128, or LD if the compiler cannot tell that the memory is global.
SASS_KERNEL = re.compile(r"^\.text\.(\w+):")
SASS_MOVE = re.compile(r"\b(LDGSTS|LDG|LD|STG|ST)((?:\.\w+)*) ")
SASS_WIDTH = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
# In the PTX: ld.global.v4.u32.
PTX_KERNEL = re.compile(r"\.entry (\w+)\(")
PTX_MOVE = re.compile(r"\b(ld|st)\.(?:global\.)?(?:[a-zL][\w:]*\.)*?(?:v([248])\.)?[busf](\d+)\s")


def short_name(demangled):
    """A kernel's name, its plain template arguments, and the op whose lambda instantiates it."""
    at = demangled.split("cistern::", 1)[1]
    for prefix in ("cistern::", "op::", "gpu::", "(anonymous namespace)::"):
        at = at.replace(prefix, "")
    name = re.search(r"(\w+Kernel|Ramp)\b(<[^(){}]*>)?", at)
    arguments = at.split("Kernel", 1)[-1]
    if "{lambda" not in arguments:
        return name.group(1) + (name.group(2) or "")
    op = re.search(r"(\w+(?:<[\w, ]*>)?)\([^{]*\{lambda[^}]*#(\d+)\}", arguments)
    ordinal = f" ({op.group(2)})" if op.group(2) != "1" else ""
    return f"{name.group(1)} for {op.group(1)}{ordinal}"


def sass_widths(lines):
    """{kernel: (widths of loads, widths of stores)} for global memory, in bytes."""
    found, kernel = collections.defaultdict(lambda: (set(), set())), None
    for line in lines:
        if match := SASS_KERNEL.search(line):
            kernel = match.group(1)
        elif kernel is not None and (match := SASS_MOVE.search(line)):
            wide = [SASS_WIDTH[part] for part in match.group(2).split(".") if part in SASS_WIDTH]
            found[kernel][match.group(1).startswith("ST")].add(wide[0] if wide else 4)
    return found


def ptx_widths(lines):
    found, kernel = collections.defaultdict(lambda: (set(), set())), None
    for line in lines:
        if match := PTX_KERNEL.search(line):
            kernel = match.group(1)
        elif kernel is not None and (match := PTX_MOVE.search(line)):
            if re.search(r"\.(param|shared|local|const)\b", line):
                continue
            bits = int(match.group(2) or 1) * int(match.group(3))
            found[kernel][match.group(1) == "st"].add(bits // 8)
    return found


def find_nvdisasm(nvcc):
    """The path of nvdisasm, or None."""
    toolkit = shutil.which(nvcc)
    beside = pathlib.Path(toolkit).resolve().parent / "nvdisasm" if toolkit else None
    if beside and beside.exists():
        return str(beside)
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations if spec else ():
        for program in pathlib.Path(folder).glob("*/bin/nvdisasm"):
            return str(program)
    return shutil.which("nvdisasm")


def compile_one(nvcc, nvdisasm, source, architecture):
    with tempfile.TemporaryDirectory() as folder:
        command = [nvcc, "-std=c++20", "-O3", "--extended-lambda", f"-arch={architecture}", "-cubin",
                   "-Xptxas", "-v", "-keep", "-keep-dir", folder, "-I", str(ROOT), str(source), "-o",
                   f"{folder}/x.cubin"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            sys.exit(f"kernel_resources: {source}: {result.stderr}")
        if nvdisasm:
            listing = subprocess.run([nvdisasm, f"{folder}/x.cubin"], capture_output=True, text=True,
                                     check=True).stdout
            widths = sass_widths(listing.splitlines())
        else:
            ptx = next(pathlib.Path(folder).glob("*.ptx"))
            widths = ptx_widths(ptx.read_text(encoding="utf-8").splitlines())
    kernels, kernel = {}, None
    for line in result.stderr.splitlines():
        if match := ENTRY.search(line):
            kernel = kernels.setdefault(match.group(1), {})
            kernel["widths"] = [" ".join(str(w) for w in sorted(of, reverse=True))
                                for of in widths[match.group(1)]]
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
    """Threads that fit a multiprocessor, a multiple of 32. Registers are allocated in units of eight."""
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
            cells += found[source][ARCHITECTURES[-1]][name]["widths"]
            rows.append((source.relative_to(ROOT / "cuda"), short_name(readable[name]), cells))
    return rows


def table(rows, version, listing):
    columns = ["registers", "threads", "spill", "stack", "shared"]
    head = [f"{architecture[3:]}: {c}" for architecture in ARCHITECTURES for c in columns]
    head += ["loads", "stores"]
    lines = ["# Resources of every kernel, as the compiler reports them", "",
             f"Made by `scripts/kernel_resources.py` with {version}. Registers per thread; threads that "
             "fit a", "multiprocessor (at most 2,048); bytes of spills, stack and static shared "
             "memory. The launch sets", "dynamic shared memory: see the `.cu`.", "",
             "Loads and stores: the widths of accesses to global memory, in bytes, from the "
             f"{listing}.", "A kernel with two widths uses wide accesses where its arrays allow it, "
             "and narrow ones elsewhere, at", "edges, or for its indexes. Threads x loads in flight x "
             "width are a kernel's bytes in flight: an H200", "needs about 40 KB of them per "
             "multiprocessor.", "",
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
    parser.add_argument("--nvdisasm", help="path of nvdisasm; default: search for it; 'none': use the PTX")
    arguments = parser.parse_args()
    nvdisasm = arguments.nvdisasm or find_nvdisasm(arguments.nvcc)
    if nvdisasm == "none":
        nvdisasm = None
    sources = sorted((ROOT / "cuda").rglob("*.cu"))
    found = {source: {} for source in sources}
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        jobs = [pool.submit(compile_one, arguments.nvcc, nvdisasm, source, architecture)
                for source in sources for architecture in ARCHITECTURES]
        for job in jobs:
            source, architecture, kernels = job.result()
            found[source][architecture] = kernels
    rows = rows_of(found)
    version = subprocess.run([arguments.nvcc, "--version"], capture_output=True, text=True,
                             check=True).stdout.splitlines()[-2].split(",")[-1].strip()
    listing = "disassembly for sm_90" if nvdisasm else "PTX for sm_90"
    arguments.out.write_text(table(rows, f"nvcc {version}", listing), encoding="utf-8")
    spilling = [f"{source}: {name}" for source, name, cells in rows if cells[2] or cells[7]]
    print(f"{len(rows)} kernels, {len(spilling)} spill: {arguments.out}")
    for line in spilling:
        print(f"  {line}")
    return 1 if spilling else 0


if __name__ == "__main__":
    sys.exit(main())
