#!/usr/bin/env python3
"""Times whole trainings on a GPU: data is read, passes are cut, rows pulled, trained and committed.

usage: gpu_training.py data --cistern PROGRAM --folder DIR [--samples 24000000]
       gpu_training.py train --cistern PROGRAM --folder DIR [--seconds 12] [--observer LIBRARY] NAME ...

`data` writes samples of Criteo's shape (26 million keys in 26 slots, 13 dense features, Raw), with as
many processes as there are cores. `train` trains each model for some seconds (servers are inside the
process) and prints one JSON object on stdout. NAME: dlrm16, dlrm64 or dlrm128, and after a comma
settings of the model file, for example dlrm128,cistern.pass_memory_mb=8192.

samples_per_s is the rate of the last half of the passes; idle is the share of that time in which the
device had no step to run, by cause; busy_steps is the share in which it computed steps, by its own clock. With --observer (libkernel_times.so) a second, observed run of half the time also
tells in which share of the time the GPU computed; being observed makes it a little slower.
"""
import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys

from criteo_shape import DENSE, SHARES, SLOTS

KEYS = 26000000
SAMPLE_BYTES = 4 * (1 + DENSE + SLOTS)


def tower(name, bottom, widths, top, linear):
    layers = []
    for i, width in enumerate(widths):
        last = i + 1 == len(widths)
        product = top if last and linear else f"{name}_fc{i}"
        layers.append({"type": "InnerProduct", "name": product, "bottom": bottom, "top": product,
                       "fc_param": {"num_output": width}})
        if last and linear:
            break
        bottom = top if last else f"{name}_relu{i}"
        layers.append({"type": "ReLU", "name": bottom, "bottom": product, "top": bottom})
    return layers


def model(dim, samples, source):
    """The DLRM of model_benchmark."""
    sizes = [max(1, KEYS * share // sum(SHARES)) for share in SHARES]
    data = {"name": "data", "type": "Data", "format": "Raw", "check": "None", "source": source,
            "num_samples": samples, "float_label_dense": False, "slot_size_array": sizes,
            "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": DENSE},
            "sparse": [{"top": "data1", "type": "DistributedSlot", "slot_num": SLOTS,
                        "max_feature_num_per_sample": SLOTS}]}
    embedding = {"name": "emb", "type": "DistributedSlotSparseEmbeddingHash", "bottom": "data1",
                 "top": "emb", "sparse_embedding_hparam": {"embedding_vec_size": dim, "combiner": "sum"}}
    return {
        "solver": {"num_epochs": 1000, "batchsize": 65536, "batchsize_eval": 65536,
                   "display": 1000000, "seed": 1, "input_key_type": "I32"},
        "optimizer": {"type": "AdaGrad", "update_type": "Local", "adagrad_hparam": {
            "learning_rate": 0.01, "initial_accu_value": 0.1, "epsilon": 1e-7}},
        "cistern": {"activations": "bfloat16"},
        "layers": [data, embedding, *tower("bottom", "dense", [512, 256, dim], "x", False),
                   {"type": "Interaction", "name": "pairs", "bottom": ["x", "emb"], "top": "pairs"},
                   *tower("top", "pairs", [1024, 1024, 512, 256, 1], "logit", True),
                   {"type": "BinaryCrossEntropyLoss", "name": "loss", "bottom": ["logit", "label"],
                    "top": "loss"}]}


def write_data(args):
    path = os.path.join(args.folder, "model.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(model(16, 1000, "none"), file)
    parts = max(1, min(16, os.cpu_count() or 1))
    each = args.samples // parts
    folders = [os.path.join(args.folder, f"part{i}") for i in range(parts)]
    writers = [subprocess.Popen(
        [args.cistern, "data", "generate", "--model", path, "--samples", str(each), "--test-samples", "1",
         "--alpha", "1.05", "--seed", str(i + 1), "--out", folder, "--overwrite"],
        stdout=subprocess.DEVNULL) for i, folder in enumerate(folders)]
    if any([writer.wait() != 0 for writer in writers]):
        sys.exit("gpu_training: cistern data generate failed")
    with open(os.path.join(args.folder, "data.bin"), "wb") as whole:
        for folder in folders:
            with open(os.path.join(folder, "train", "data.bin"), "rb") as part:
                shutil.copyfileobj(part, whole, 1 << 24)
            shutil.rmtree(folder)


def run(args, name, seconds, environment):
    """Trains for `seconds`; returns the pass lines of metrics.jsonl."""
    shape, *settings = name.split(",")
    data = os.path.join(args.folder, "data.bin")
    config = model(int(shape.removeprefix("dlrm")), os.path.getsize(data) // SAMPLE_BYTES, data)
    path, out = os.path.join(args.folder, "model.json"), os.path.join(args.folder, "run")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    sets = [word for setting in settings for word in ("--set", setting)]
    shutil.rmtree(out, ignore_errors=True)
    command = [args.cistern, "train", path, "--device", "cuda", "--out", out, "--no-save-model", *sets]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as process:
        try:
            said, _ = process.communicate(timeout=seconds)
            raise RuntimeError(said[-400:])  # it ended by itself: the data is endless
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    shutil.rmtree(out)
    return [line for line in lines if line["event"] == "pass"][:-1]  # the last one was cut short


def measure(args, name):
    passes = run(args, name, args.seconds, dict(os.environ))
    late = passes[len(passes) // 2:]
    if len(late) < 2:
        raise RuntimeError(f"{len(passes)} passes in {args.seconds} s")
    samples = late[-1]["samples"] - late[0]["samples"]
    seconds = late[-1]["seconds"] - late[0]["seconds"]
    figures = {"model": name, "samples_per_s": round(samples / seconds), "passes": len(late) - 1,
               "rows_per_pass": round(statistics.mean(line["rows"] for line in late[1:]))}
    for cause in ("share", "data", "pull", "carry_over", "commit"):
        parts = [line["idle"][cause] for line in late[1:]]
        figures["idle" if cause == "share" else f"idle_{cause}"] = round(statistics.mean(parts), 3)
    figures["busy_steps"] = round(sum(line["busy"]["seconds"] for line in late[1:]) / seconds, 3)
    if args.observer:
        times = os.path.join(args.folder, "times.json")
        run(args, name, args.seconds / 2, {**os.environ, "CUDA_INJECTION64_PATH": args.observer,
                                       "CISTERN_KERNEL_TIMES": times})
        try:
            with open(times, encoding="utf-8") as file:
                observed = json.load(file)
        except OSError:
            figures["error"] = f"{args.observer} observed nothing"
        else:
            figures["computing"] = observed["kernels_busy"]
            figures["busy"] = observed["busy"]
    return figures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["data", "train"])
    parser.add_argument("models", nargs="*", metavar="NAME")
    parser.add_argument("--cistern", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--samples", type=int, default=24000000)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--observer")
    args = parser.parse_intermixed_args()
    os.makedirs(args.folder, exist_ok=True)
    if args.what == "data":
        write_data(args)
        return
    figures = []
    for name in args.models:
        try:
            figures.append(measure(args, name))
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            figures.append({"model": name, "error": str(error)[-400:]})
        print(json.dumps(figures[-1]), file=sys.stderr, flush=True)
    print(json.dumps({"cores": os.cpu_count(), "trainings": figures}, indent=1))
    if any("error" in figure for figure in figures):
        sys.exit(1)


if __name__ == "__main__":
    main()
