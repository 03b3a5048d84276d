#!/usr/bin/env python3
"""Asks a `cistern serve` for predictions of the samples of a Norm data set, and writes them.

    examples/query_server.py --http HOST:PORT --model NAME --data file_list.txt --output FILE
                             [--grpc HOST:PORT] [--batch 100] [--key-bytes 4|8]

FILE gets the lines of `cistern predict`: label<TAB>prediction, nine significant digits. Uses
tritonclient (pip install 'tritonclient[grpc,http]') over gRPC if --grpc is given, otherwise HTTP with
JSON from Python's standard library.
"""

import argparse
import json
import pathlib
import struct
import urllib.request


def read_norm(path, key_bytes):
    """Yields (labels, dense, keys of each slot) of the samples of a Norm file."""
    key = "I" if key_bytes == 4 else "Q"
    with open(path, "rb") as file:
        data = file.read()
    checked = struct.unpack_from("<i", data)[0] == 64  # the length that precedes a checked header
    at = 4 if checked else 0
    _, count, labels, dense, slots = struct.unpack_from("<5q", data, at)
    at += 64 + (1 if checked else 0)
    for _ in range(count):
        at += 4 if checked else 0
        numbers = struct.unpack_from(f"<{labels + dense}f", data, at)
        at += 4 * (labels + dense)
        sample = []
        for _ in range(slots):
            nnz = struct.unpack_from("<i", data, at)[0]
            sample.append(struct.unpack_from(f"<{nnz}{key}", data, at + 4))
            at += 4 + nnz * key_bytes
        at += 1 if checked else 0
        yield numbers[:labels], numbers[labels:], sample


def files_of(source):
    """The files of a list (a count, then paths that count from the list's folder), or the file itself."""
    with open(source, "rb") as file:
        is_list = file.read(1).isdigit()
    if not is_list:
        return [source]
    with open(source, encoding="utf-8") as lines:
        names = lines.read().split()[1:]
    folder = pathlib.Path(source).parent
    return [name if pathlib.Path(name).exists() else folder / name for name in names]


class Json:
    """The server over HTTP, with tensors as JSON."""

    def __init__(self, address):
        self.address = address

    def metadata(self, name):
        with urllib.request.urlopen(f"http://{self.address}/v2/models/{name}") as answer:
            return json.loads(answer.read())

    def infer(self, name, tensors):
        body = {"inputs": [{"name": tensor, "datatype": datatype, "shape": shape, "data": data}
                           for tensor, (datatype, shape, data) in tensors.items()]}
        request = urllib.request.Request(f"http://{self.address}/v2/models/{name}/infer",
                                         json.dumps(body).encode())
        with urllib.request.urlopen(request) as answer:
            outputs = json.loads(answer.read())["outputs"]
        return next(o["data"] for o in outputs if o["name"] == "probability")


class Grpc:
    """The server over gRPC, through tritonclient."""

    def __init__(self, address):
        import numpy
        import tritonclient.grpc as triton
        self.numpy, self.triton = numpy, triton
        self.client = triton.InferenceServerClient(address)

    def infer(self, name, tensors):
        types = {"FP32": self.numpy.float32, "INT64": self.numpy.int64, "INT32": self.numpy.int32}
        inputs = []
        for tensor, (datatype, shape, data) in tensors.items():
            inputs.append(self.triton.InferInput(tensor, shape, datatype))
            array = self.numpy.array(data).astype(types[datatype]).reshape(shape)
            inputs[-1].set_data_from_numpy(array)
        return self.client.infer(name, inputs).as_numpy("probability").ravel().tolist()


def signed(key):
    return key - 2**64 if key >= 2**63 else key


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for flag in ("--http", "--data", "--output", "--model"):
        parser.add_argument(flag, required=True)
    parser.add_argument("--grpc")
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--key-bytes", type=int, default=8, choices=(4, 8))
    flags = parser.parse_args()

    http = Json(flags.http)
    server = Grpc(flags.grpc) if flags.grpc else http
    tensors = [tensor["name"] for tensor in http.metadata(flags.model)["inputs"]]
    sparse = [name[:-len(".keys")] for name in tensors if name.endswith(".keys")]
    if len(sparse) != 1:
        raise SystemExit("this script knows models with one sparse input")

    def ask(samples):
        count, dense_dim = len(samples), len(samples[0][1])
        keys, offsets = [], [0]
        for _, _, slots in samples:
            for slot in slots:
                keys += map(signed, slot)
                offsets.append(len(keys))
        request = {f"{sparse[0]}.keys": ("INT64", [len(keys)], keys),
                   f"{sparse[0]}.offsets": ("INT32", [len(offsets)], offsets)}
        if dense_dim > 0:
            dense = [x for sample in samples for x in sample[1]]
            request["dense"] = ("FP32", [count, dense_dim], dense)
        return server.infer(flags.model, request)

    asked = 0
    with open(flags.output, "w", encoding="utf-8") as output:
        for path in files_of(flags.data):
            samples = list(read_norm(path, flags.key_bytes))
            for first in range(0, len(samples), flags.batch):
                batch = samples[first:first + flags.batch]
                predictions = ask(batch)
                labels = [label for sample in batch for label in sample[0]]
                width = len(batch[0][0])
                pairs = [f"{label:g}\t{p:.9g}" for label, p in zip(labels, predictions)]
                for row in range(0, len(pairs), width):
                    output.write("\t".join(pairs[row:row + width]) + "\n")
                asked += len(batch)
    print(f"{asked} samples predicted by {flags.grpc or flags.http}")


if __name__ == "__main__":
    main()
