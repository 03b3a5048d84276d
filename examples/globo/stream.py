#!/usr/bin/env python3
"""News clicks as a stream: trains on them while they arrive, serves every commit, and measures how far it is behind.

    examples/globo/stream.py CSV_DIR [--out globo_stream] [--days 16] [--speed 1000] [--seconds 1] [-- FLAGS]

CSV_DIR holds day00.csv, day01.csv ... of samples.py. `cistern train` trains day 0. Then the clicks of the other days
appear in a folder, hour by hour at --speed times the time of the clicks, while `cistern train --stream` trains them in
passes of --seconds and publishes its commits, and `cistern serve` serves them. FLAGS go to the training, for example
`--set cistern.embeddings.embedding.max_rows=100000`.

Prints for each day the AUC and log loss of its clicks before they were trained, then the time from click to served
prediction (from the moment when a file is complete until the server has a commit with all of its samples), and memory,
open files and threads of both processes over the run. All of it is in OUT/stream.json, too. CISTERN_BIN names the
folder of the programs.
"""

import argparse
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("CISTERN_BIN", ROOT / "build" / "release" / "bin"))
FILES_PER_HOUR = 4
LOOK_SECONDS = 0.05


def hours_of(path):
    """The header of a day's file, and its lines by hour, in order."""
    with open(path, encoding="utf-8") as file:
        header = file.readline()
        for _, lines in itertools.groupby(file, key=lambda line: line.split(",", 5)[4]):
            yield header, list(lines)


class Watch(threading.Thread):
    """Notes when the server has which commit, and what both processes use."""

    def __init__(self, port, processes):
        super().__init__(daemon=True)
        self.url = f"http://127.0.0.1:{port}/metrics"
        self.processes = processes
        self.served = []  # (time, commit)
        self.use = []  # of the processes, every few seconds
        self.ended = threading.Event()

    def run(self):
        next_use = 0.0
        while not self.ended.wait(LOOK_SECONDS):
            page = urllib.request.urlopen(self.url, timeout=30).read().decode()
            found = re.search(r"^cistern_serve_commit(?:{[^}]*})? (\d+)", page, re.MULTILINE)
            if found and (not self.served or self.served[-1][1] != int(found.group(1))):
                self.served.append((time.monotonic(), int(found.group(1))))
            if time.monotonic() >= next_use:
                self.use.append({name: use_of(process.pid) for name, process in self.processes.items()})
                next_use = time.monotonic() + 5


def use_of(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return {"rss_mb": int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) // 1024,
            "threads": int(re.search(r"Threads:\s+(\d+)", status).group(1)),
            "files": len(os.listdir(f"/proc/{pid}/fd"))}


def passes_of(run):
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines if line.endswith("}")]
    start = max(i for i, event in enumerate(events) if event["event"] == "resume")
    return [event for event in events[start:] if event["event"] == "pass"]


def replay(days, folder, speed):
    """Writes the clicks; returns (time, samples so far, day) of each file."""
    written, samples, begin = [], 0, time.monotonic()
    hour = 0
    for day in days:
        for header, lines in hours_of(day):
            size = -(-len(lines) // FILES_PER_HOUR)
            for part in range(FILES_PER_HOUR):
                piece = lines[part * size:(part + 1) * size]
                wait = begin + (hour + part / FILES_PER_HOUR) * 3600 / speed - time.monotonic()
                if wait > 0:
                    time.sleep(wait)
                if not piece:
                    continue
                name = f"{len(written):06}.csv"
                (folder / f".{name}").write_text(header + "".join(piece), encoding="utf-8")
                (folder / f".{name}").rename(folder / name)
                samples += len(piece)
                written.append((time.monotonic(), samples, day.stem))
            hour += 1
    return written


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(q * len(values)))] if values else None


def delays_of(written, passes, served, first):
    """Seconds from each file until the server had a commit with all of its samples. first: (commit, pass) of one."""
    ready, of_pass = {}, {event["pass"]: event["samples"] for event in passes}
    for when, commit in served:
        ready[of_pass.get(commit - first[0] + first[1], 0)] = when
    delays = []
    for when, samples, _ in written:
        later = [at for done, at in ready.items() if done >= samples]
        if later:
            delays.append(min(later) - when)
    return delays


def scores_of(written, passes):
    """The mean of AUC and log loss of the passes that end in a day, by samples."""
    ends = {day: samples for _, samples, day in written}
    days, before = {}, 0
    for event in passes:
        day = next((day for day, end in ends.items() if event["samples"] <= end), None)
        share = event["samples"] - before
        before = event["samples"]
        if day is None or event.get("auc") is None:
            continue
        sums = days.setdefault(day, [0, 0.0, 0.0])
        for i, value in enumerate((1, event["auc"], event["logloss"])):
            sums[i] += share * value
    return {day: {"samples": n, "auc": auc / n, "logloss": loss / n} for day, (n, auc, loss) in days.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("csv_dir", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("globo_stream"))
    parser.add_argument("--days", type=int, default=16)
    parser.add_argument("--speed", type=float, default=1000)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("flags", nargs="*")
    arguments = parser.parse_args()
    days = sorted(arguments.csv_dir.glob("day*.csv"))[:arguments.days]
    if len(days) < 2:
        sys.exit(f"stream.py: {arguments.csv_dir} holds fewer than two dayNN.csv: make them with samples.py")
    shutil.rmtree(arguments.out, ignore_errors=True)
    folder, run, serving = (arguments.out / name for name in ("in", "run", "serving"))
    folder.mkdir(parents=True)
    subprocess.run([BIN / "cistern", "train", days[0], "--out", run, "--label", "label", "--min-count", "1"],
                   check=True, stdout=subprocess.DEVNULL)
    with open(arguments.out / "train.log", "w", encoding="utf-8") as log:
        training = subprocess.Popen(
            [BIN / "cistern", "train", run, "--stream", folder, "--publish", serving, "--set",
             f"cistern.stream.seconds={arguments.seconds}", *arguments.flags], stdout=log, stderr=log)
    while not (serving / "HEAD").exists():
        if training.poll() is not None:
            sys.exit(f"stream.py: the training ended; see {arguments.out}/train.log")
        time.sleep(0.1)
    server = subprocess.Popen([BIN / "cistern", "serve", serving, "--port", "0"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    try:
        port = re.search(r"http=127.0.0.1:(\d+)", server.stdout.readline()).group(1)
        listing = json.loads(subprocess.run([BIN / "cistern", "serving", "ls", serving, "--json"], check=True,
                                            stdout=subprocess.PIPE).stdout)["versions"][-1]
        watch = Watch(port, {"train": training, "serve": server})
        watch.start()
        written = replay(days[1:], folder, arguments.speed)
        while training.poll() is None and (not passes_of(run) or passes_of(run)[-1]["samples"] < written[-1][1]):
            time.sleep(0.2)
        time.sleep(5)
        watch.ended.set()
        watch.join()
    finally:
        for process in (training, server):
            process.terminate()
        for process in (training, server):
            process.wait()
    passes = passes_of(run)
    delays = delays_of(written, passes, watch.served, (listing["commit"], listing["pass"]))
    result = {"days": scores_of(written, passes), "passes": len(passes), "files": len(written),
              "samples": written[-1][1], "trained": passes[-1]["samples"] if passes else 0,
              "click_to_served_seconds": {f"p{round(100 * q)}": quantile(delays, q) for q in (0.5, 0.9, 0.99)},
              "measured_files": len(delays), "use": watch.use}
    (arguments.out / "stream.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    for day, score in result["days"].items():
        print(f"{day}  samples {score['samples']:>8}  auc {score['auc']:.4f}  logloss {score['logloss']:.4f}")
    times = "  ".join(f"{name} {seconds:.2f}" for name, seconds in result["click_to_served_seconds"].items() if seconds)
    print(f"click to served, seconds: {times}  ({len(delays)} of {len(written)} files, {len(passes)} passes)")
    print(f"samples written {result['samples']}, trained {result['trained']}")
    for name in ("train", "serve"):
        for i in sorted({0, len(watch.use) // 4, len(watch.use) // 2, 3 * len(watch.use) // 4, len(watch.use) - 1}):
            print(f"{name} after {5 * i:4} s: {watch.use[i][name]}")


if __name__ == "__main__":
    main()
