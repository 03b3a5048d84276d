"""Reads data sets from a real S3 server, behind a proxy that cuts connections, delays and refuses.

The server is moto's (PyPI: moto, flask, flask-cors), which the test starts on a free port; scripts/test.sh
installs it into build/moto. Exit code 77 (skipped) without it, or if this build of cistern has no S3.
GCS and HDFS have no test: no server for them can be installed from a package.
"""

import http.client
import http.server
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
import unittest

from programs import ROOT, ProgramTest, Samples, run, write_list

sys.path.append(str(ROOT / "build" / "moto"))
try:
    import boto3
    import moto.server  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

SECRET = "secret-that-must-not-be-printed"
KEY = "AKIA-KEY-THAT-MUST-NOT-BE-PRINTED"
SERVER = """
import sys, threading
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


class Proxy(http.server.ThreadingHTTPServer):
    """Passes requests on to `port`, and disturbs those that `disturb(method, path, count)` names."""

    daemon_threads = True

    def __init__(self, port):
        super().__init__(("127.0.0.1", 0), Handler)
        self.backend, self.disturb, self.counts = port, lambda *_: None, {}
        self.lock, self.bytes_out = threading.Lock(), 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # clients close connections that were cut


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def pass_on(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else None
        with self.server.lock:
            key = (self.command, self.path)
            count = self.server.counts[key] = self.server.counts.get(key, 0) + 1
        what = self.server.disturb(self.command, self.path, count)
        if isinstance(what, int):
            self.send_response(what)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        backend = http.client.HTTPConnection("127.0.0.1", self.server.backend)
        backend.request(self.command, self.path, body, dict(self.headers))
        reply = backend.getresponse()
        content = reply.read()
        if what == "slow":
            time.sleep(2)
        self.send_response(reply.status)
        for name, value in reply.getheaders():
            if name.lower() not in ("connection", "transfer-encoding", "content-length", "date", "server"):
                self.send_header(name, value)
        size = reply.getheader("Content-Length") if self.command == "HEAD" else len(content)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        if what == "cut":
            self.wfile.write(content[:len(content) // 2])
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        self.wfile.write(content)
        with self.server.lock:
            self.server.bytes_out += len(content)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = pass_on


class ObjectStore(ProgramTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        environment = dict(os.environ, PYTHONPATH=str(ROOT / "build" / "moto"))
        cls.server = subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                      env=environment)
        cls.port = int(cls.server.stdout.readline())
        cls.s3 = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{cls.port}", region_name="us-east-1",
                              aws_access_key_id=KEY, aws_secret_access_key=SECRET)
        cls.s3.create_bucket(Bucket="data")

    @classmethod
    def tearDownClass(cls):
        cls.server.stdin.close()
        cls.server.stdout.close()
        cls.server.wait()
        super().tearDownClass()

    def setUp(self):
        super().setUp()
        self.proxy = Proxy(self.port)
        self.environment = dict(os.environ, AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET,
                                AWS_DEFAULT_REGION="us-east-1", AWS_EC2_METADATA_DISABLED="true",
                                AWS_ENDPOINT_URL=f"http://127.0.0.1:{self.proxy.server_address[1]}")
        (self.folder / "set").mkdir()
        names = [f"part-{i:05d}.norm" for i in range(3)]
        for i, name in enumerate(names):
            Samples(15000, seed=i).write(self.folder / "set" / name)  # about 1 MB: several requests
        write_list(self.folder / "set/file_list.txt", names)
        for path in (self.folder / "set").iterdir():
            self.s3.upload_file(str(path), "data", f"set/{path.name}")

    def tearDown(self):
        self.proxy.shutdown()
        self.proxy.server_close()
        super().tearDown()

    def inspect(self, *sources):
        result = run("cistern", "data", "inspect", *sources, "--json", env=self.environment)
        for secret in (SECRET, KEY):
            self.assertNotIn(secret, result.out + result.err)
        return result

    def expect_same(self, remote, local):
        expected = self.inspect(local)
        self.expect(expected, 0)
        result = self.inspect(remote)
        self.expect(result, 0)
        self.assertEqual(result.json(), expected.json())

    def test_lists_patterns_and_files_read_as_local_ones(self):
        local = self.folder / "set/file_list.txt"
        self.expect_same("s3://data/set/file_list.txt", local)
        self.expect_same("s3://data/set/part-*.norm", local)
        self.expect_same("s3://data/set/part-{00000..00002}.norm", local)
        self.expect_same(f"file://{local}", local)

    def test_cut_connections_and_passing_errors_are_retried(self):
        def disturb(method, path, count):
            if method == "GET" and path.endswith(".norm"):
                return {1: "cut", 2: 503, 3: "slow"}.get(count)
            return 500 if method == "HEAD" and count == 1 else None
        self.proxy.disturb = disturb
        self.expect_same("s3://data/set/part-*.norm", self.folder / "set/file_list.txt")
        self.assertGreater(max(self.proxy.counts.values()), 2)

    def test_a_connection_that_is_always_cut_is_an_error(self):
        self.proxy.disturb = lambda method, path, count: "cut" if method == "GET" and ".norm" in path else None
        result = self.inspect("s3://data/set/part-00000.norm")
        self.assertNotEqual(result.code, 0)
        self.assertIn("s3://data/set/part-00000.norm", result.err)

    def test_missing_and_refused_objects_name_the_path(self):
        result = self.inspect("s3://data/no/such.norm")
        self.assertNotEqual(result.code, 0)
        self.assertIn("s3://data/no/such.norm", result.err)
        self.assertIn("does not exist", result.err)
        result = self.inspect("s3://no-bucket/part-*.norm")
        self.assertNotEqual(result.code, 0)
        self.proxy.disturb = lambda method, path, count: 403
        result = self.inspect("s3://data/set/part-00000.norm")
        self.assertNotEqual(result.code, 0)
        self.assertIn("credentials", result.err)

    def test_credentials_in_a_path_are_refused_and_not_repeated(self):
        result = self.inspect(f"s3://{KEY}:{SECRET}@data/set/part-00000.norm")
        self.assertNotEqual(result.code, 0)
        self.assertIn("environment", result.err)

    def test_lists_ten_thousand_objects(self):
        content = self.test_file.read_bytes()
        for i in range(10000):
            self.s3.put_object(Bucket="data", Key=f"many/x-{i:05d}.norm", Body=b"" if i else content)
        started = time.monotonic()
        result = self.inspect("s3://data/many/x-00000.nor*")
        self.expect(result, 0)
        self.assertEqual(result.json()["files"], 1)
        # All of them: the second is empty, which is found when it is read.
        result = self.inspect("s3://data/many/*.norm")
        self.assertIn("x-00001.norm", result.err)
        print(f"two listings of 10,000 objects: {time.monotonic() - started:.1f} s")

    def test_reading_overlaps_training(self):
        def change(content):
            content["solver"].update(num_epochs=3, display=1, eval_interval=0)
            data = content["layers"][0]
            data.update(source="s3://data/set/file_list.txt", check="Sum")
        self.write_model(change)
        log = self.folder / "run" / "metrics.jsonl"
        steps = []  # done when each part of the data is requested

        def disturb(method, path, _):
            if method == "GET" and path.endswith(".norm"):
                steps.append(log.read_bytes().count(b'"event":"train"') if log.exists() else 0)
                time.sleep(0.05)
        self.proxy.disturb = disturb
        self.expect(run("cistern", "train", self.config, "--out", self.folder / "run", env=self.environment), 0)
        last = log.read_bytes().count(b'"event":"train"')
        during = [step for step in steps if 0 < step < last]
        self.assertGreater(len(during), 3, f"{len(steps)} requests, after steps {steps} of {last}")

    def test_a_model_trains_from_the_store_to_the_same_bits(self):
        def use(source, kind="Norm"):
            def change(content):
                content["cistern"] = {"shuffle_buffer": 700}
                data = content["layers"][0]
                data.update(source=str(source), eval_source=str(source), format=kind, check="Sum" if kind == "Norm" else "None")
            self.write_model(change)

        def losses(name):
            self.expect(run("cistern", "train", self.config, "--out", self.folder / name, env=self.environment), 0)
            lines = (self.folder / name / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
            return [json.loads(line).get("loss") for line in lines]

        use(self.folder / "set/file_list.txt")
        expected = losses("local")
        use("s3://data/set/file_list.txt")
        self.assertEqual(losses("norm"), expected)
        use(self.folder / "set/file_list.txt")
        self.run_ok("cistern", "data", "pack", "--model", self.config, "--out", self.folder / "shards")
        for path in sorted((self.folder / "shards").glob("*.tar")):
            self.s3.upload_file(str(path), "data", f"shards/{path.name}")
        use("s3://data/shards/data-*.tar", "Tar")
        self.assertEqual(losses("tar"), expected)


if __name__ == "__main__":
    unittest.main()
