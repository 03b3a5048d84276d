#!/usr/bin/env python3
"""News clicks as a stream: trains on them while they arrive, serves every commit, and measures how far it is behind.

    examples/globo/stream.py CSV_DIR [--out globo_stream] [--days 16] [--rounds 1] [--speed 1000] [--seconds 1] [-- FLAGS]

CSV_DIR holds day00.csv, day01.csv ... of samples.py. `cistern train` trains day 0. Then the clicks of the other days
appear in a folder, hour by hour at --speed times the time of the clicks, while `cistern train --stream` trains them in
passes of --seconds and publishes its commits, and `cistern serve` serves them to a client that asks for predictions all
the time. --rounds repeats these days: 3 rounds of 16 days take 65 minutes. FLAGS go to the training, for example
`--set cistern.embeddings.embedding.max_rows=100000`.

Prints for each day the AUC and log loss of its clicks before they were trained, then the time from click to served
prediction (from the moment when a file is complete until a prediction is answered by a commit with all of its samples),
the time from commit to served prediction, the time of a prediction, and memory, threads, open files, and the files of
state and versions over the run. All of it is in OUT/stream.json, too. CISTERN_BIN names the folder of the programs.
"""

import argparse
import bisect
import contextlib
import http.client
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

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("CISTERN_BIN", ROOT / "build" / "release" / "bin"))
FILES_PER_HOUR = 4
LOOK_SECONDS = 0.05  # between two predictions
USE_SECONDS = 30


def hours_of(path):
    """The header of a day's file, and its lines by hour, in order."""
    with open(path, encoding="utf-8") as file:
        header = file.readline()
        for _, lines in itertools.groupby(file, key=lambda line: line.split(",", 5)[4]):
            yield header, list(lines)


class Client(threading.Thread):
    """Asks for predictions; notes when the first one of each commit is answered, and when that commit was written."""

    def __init__(self, port, row, state):
        super().__init__(daemon=True)
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self.question = json.dumps({"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1], "data": [row]}]})
        self.manifests = state / "manifest"
        self.served = {}     # commit: time of its first answer
        self.committed = {}  # commit: time of its manifest
        self.seconds = []    # of each prediction
        self.error = None
        self.ended = threading.Event()

    def run(self):
        try:
            while not self.ended.wait(LOOK_SECONDS):
                self.ask()
                self.look()
        except (OSError, ValueError, http.client.HTTPException) as error:
            self.error = error

    def ask(self):
        begin = time.time()
        self.connection.request("POST", "/v2/models/run/infer", self.question)
        answer = self.connection.getresponse()
        content = answer.read().decode()
        if answer.status != 200:
            raise ValueError(content)
        self.seconds.append(time.time() - begin)
        commit = int(json.loads(content)["model_version"])
        if self.served and commit < max(self.served):
            raise ValueError(f"commit {commit} is served after {max(self.served)}")
        self.served.setdefault(commit, time.time())

    def look(self):
        for path in self.manifests.iterdir():
            if path.name.isdigit() and int(path.name) not in self.committed:
                self.committed[int(path.name)] = path.stat().st_mtime


class Watch(threading.Thread):
    """Notes what processes and folders use, every USE_SECONDS."""

    def __init__(self, processes, folders):
        super().__init__(daemon=True)
        self.processes, self.folders = processes, folders
        self.use = []
        self.ended = threading.Event()

    def run(self):
        begin = time.monotonic()
        while not self.ended.wait(max(0, begin + len(self.use) * USE_SECONDS - time.monotonic())):
            use = {name: use_of(process.pid) for name, process in self.processes.items()}
            use |= {name: size_of(folder) for name, folder in self.folders.items()}
            self.use.append({"seconds": round(time.monotonic() - begin), "load": os.getloadavg()[0], **use})


def use_of(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return {"rss_mb": int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) // 1024,
            "threads": int(re.search(r"Threads:\s+(\d+)", status).group(1)),
            "files": len(os.listdir(f"/proc/{pid}/fd"))}


def size_of(folder):
    """Files may go meanwhile."""
    files = size = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            if path.is_file():
                size += path.stat().st_size
                files += 1
    return {"files": files, "mb": size >> 20}


def passes_of(run):
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines if line.endswith("}")]
    start = max(i for i, event in enumerate(events) if event["event"] == "resume")
    return [event for event in events[start:] if event["event"] == "pass"]


def replay(days, rounds, folder, speed):
    """Writes the clicks; returns (time, samples so far, day) of each file."""
    written, samples, begin = [], 0, time.monotonic()
    hour = 0
    for i, day in itertools.product(range(rounds), days):
        name_of_day = day.stem if i == 0 else f"{day.stem} again, {i}"
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
                written.append((time.time(), samples, name_of_day))
            hour += 1
    return written


def quantiles(values):
    values = sorted(values)
    return {f"p{round(100 * q)}": round(values[min(len(values) - 1, int(q * len(values)))], 4)
            for q in (0.5, 0.9, 0.99) if values} | {"count": len(values)}


def click_delays(written, passes, served, first):
    """Seconds from each file until a prediction of a commit with all of its samples. first: (commit, pass) of one."""
    of_pass = {event["pass"]: event["samples"] for event in passes}
    ready = sorted((when, of_pass.get(commit - first[0] + first[1], 0)) for commit, when in served.items())
    delays, at = [], 0
    for when, samples, _ in written:
        while at < len(ready) and ready[at][1] < samples:
            at += 1
        if at < len(ready):
            delays.append(ready[at][0] - when)
    return delays


def commit_delays(client):
    """Seconds from each commit until a prediction of it, or of a later one."""
    served = sorted(client.served.items())
    delays = []
    for commit, when in sorted(client.committed.items()):
        answered = next((at for later, at in served[bisect.bisect_left(served, (commit,)):]), None)
        if commit >= served[0][0] and answered is not None:
            delays.append(answered - when)
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


def report(result):
    for day, score in result["days"].items():
        print(f"{day}  samples {score['samples']:>8}  auc {score['auc']:.4f}  logloss {score['logloss']:.4f}")
    for what in ("click_to_served_seconds", "commit_to_served_seconds", "prediction_seconds"):
        print(f"{what}: " + "  ".join(f"{name} {value}" for name, value in result[what].items()))
    print(f"files {result['files']}, passes {result['passes']}; samples written {result['samples']}, trained {result['trained']}")
    use = result["use"]
    for one in [use[i] for i in sorted({round(i * (len(use) - 1) / 8) for i in range(9)})]:
        held = "; ".join(f"{name} " + " ".join(f"{what} {value}" for what, value in fields.items())
                         for name, fields in one.items() if isinstance(fields, dict))
        print(f"after {one['seconds']:4} s: {held}; load {one['load']:.1f}")


def run_stream(arguments, days):
    """Trains, serves and watches; returns what --out/stream.json holds."""
    folder, run, serving = (arguments.out / name for name in ("in", "run", "serving"))
    with open(arguments.out / "train.log", "w", encoding="utf-8") as log:
        training = subprocess.Popen(
            [BIN / "cistern", "train", run, "--stream", folder, "--publish", serving, "--set",
             f"cistern.stream.seconds={arguments.seconds}", *arguments.flags], stdout=log, stderr=log)
    while not (serving / "HEAD").exists():
        if training.poll() is not None:
            sys.exit(f"stream.py: the training ended; see {arguments.out}/train.log")
        time.sleep(0.1)
    server = subprocess.Popen([BIN / "cistern", "serve", serving, "--port", "0", "--grpc-port", "0"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        port = int(re.search(r"http=127.0.0.1:(\d+)", server.stdout.readline()).group(1))
        listing = json.loads(subprocess.run([BIN / "cistern", "serving", "ls", serving, "--json"], check=True,
                                            stdout=subprocess.PIPE).stdout)["versions"][-1]
        row = next(hours_of(days[1]))[1][0].strip().split(",", 1)[1]
        client = Client(port, row, run / "state")
        watch = Watch({"train": training, "serve": server}, {"state": run / "state", "serving": serving})
        client.start()
        watch.start()
        written = replay(days[1:], arguments.rounds, folder, arguments.speed)
        while training.poll() is None and (not passes_of(run) or passes_of(run)[-1]["samples"] < written[-1][1]):
            time.sleep(0.2)
        time.sleep(5)
        for thread in (client, watch):
            thread.ended.set()
            thread.join()
    finally:
        for process in (training, server):
            process.terminate()
        for process in (training, server):
            process.wait()
    if client.error is not None:
        sys.exit(f"stream.py: predictions failed: {client.error}")
    passes = passes_of(run)
    return {"days": scores_of(written, passes), "passes": len(passes), "files": len(written),
            "samples": written[-1][1], "trained": passes[-1]["samples"] if passes else 0,
            "click_to_served_seconds": quantiles(click_delays(written, passes, client.served,
                                                              (listing["commit"], listing["pass"]))),
            "commit_to_served_seconds": quantiles(commit_delays(client)),
            "prediction_seconds": quantiles(client.seconds), "use": watch.use}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("csv_dir", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("globo_stream"))
    parser.add_argument("--days", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--speed", type=float, default=1000)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("flags", nargs="*")
    arguments = parser.parse_args()
    days = sorted(arguments.csv_dir.glob("day*.csv"))[:arguments.days]
    if len(days) < 2:
        sys.exit(f"stream.py: {arguments.csv_dir} holds fewer than two dayNN.csv: make them with samples.py")
    shutil.rmtree(arguments.out, ignore_errors=True)
    (arguments.out / "in").mkdir(parents=True)
    subprocess.run([BIN / "cistern", "train", days[0], "--out", arguments.out / "run", "--label", "label", "--min-count",
                    "1"], check=True, stdout=subprocess.DEVNULL)
    result = run_stream(arguments, days)
    (arguments.out / "stream.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    report(result)


if __name__ == "__main__":
    main()
