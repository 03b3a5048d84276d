"""A `cistern serve` process, and the requests that its tests send."""

import http.client
import json
import signal
import struct

from programs import Samples, finish, start


class Serve:
    """A `cistern serve` process, for a `with` statement."""

    def __init__(self, folder, *flags, drain=0, port=0, grpc_port=0):
        self.process = start("cistern", "serve", folder, "--port", port, "--grpc-port", grpc_port, "--json",
                             "--poll-ms", 20, "--drain-seconds", drain, *flags)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(str(finish(self.process)))
        self.ready = json.loads(line)
        self.connection = http.client.HTTPConnection(self.ready["http"], timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()
        if self.process.poll() is None:
            self.stop()

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return finish(self.process)

    def get(self, path):
        self.connection.request("GET", path)
        answer = self.connection.getresponse()
        return answer.status, answer.read().decode()

    def post(self, body, headers=(), version="", model="model"):
        self.connection.request("POST", f"/v2/models/{model}{version}/infer", body, dict(headers))
        answer = self.connection.getresponse()
        content = answer.read()
        end = int(answer.headers.get("Inference-Header-Content-Length", len(content)))
        return answer.status, json.loads(content[:end]), content[end:]


def arrays_of(samples):
    """The inputs of the protocol: name, data type, shape, struct format, values."""
    keys, offsets = [], [0]
    for _, _, slots in samples:
        for slot in slots:
            keys += slot
            offsets.append(len(keys))
    dense = [value for _, features, _ in samples for value in features]
    return [("dense", "FP32", [len(samples), Samples.DENSE], "f", dense),
            ("data1.keys", "INT64", [len(keys)], "q", keys),
            ("data1.offsets", "INT32", [len(offsets)], "i", offsets)]


def json_body(samples):
    return json.dumps({"inputs": [
        {"name": name, "datatype": kind, "shape": shape, "data": values}
        for name, kind, shape, _, values in arrays_of(samples)]})


def binary_body(samples):
    """The body, and its headers."""
    arrays = [(*rest, struct.pack(f"<{len(values)}{code}", *values))
              for *rest, code, values in arrays_of(samples)]
    head = json.dumps({"parameters": {"binary_data_output": True}, "inputs": [
        {"name": name, "datatype": kind, "shape": shape,
         "parameters": {"binary_data_size": len(data)}}
        for name, kind, shape, data in arrays]}).encode()
    return (head + b"".join(data for *_, data in arrays),
            {"Inference-Header-Content-Length": str(len(head))})
