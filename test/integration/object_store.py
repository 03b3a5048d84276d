"""A real S3 server for tests (moto's), behind a proxy that cuts connections, delays and refuses.

PyPI: moto, flask, flask-cors; scripts/test.sh installs them into build/moto. Without them, a test that imports
this module ends with exit code 77 (skipped).
"""

import http.client
import http.server
import os
import socket
import subprocess
import sys
import threading
import time

from programs import ROOT, ProgramTest, write_list, write_samples

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
for line in sys.stdin:  # "PREFIX COUNT": puts empty objects, faster than requests do
    from moto.s3.models import s3_backends
    prefix, count = line.split()
    for i in range(int(count)):
        s3_backends["123456789012"]["aws"].put_object("data", f"{prefix}{i:05d}.norm", b"")
    print("done", flush=True)
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

    def body(self):
        """The bytes of the request; what was sent in chunks is passed on in one piece."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            length = int(self.headers.get("Content-Length") or 0)
            return self.rfile.read(length) if length else None
        del self.headers["Transfer-Encoding"]
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers
        return b"".join(chunks)

    def pass_on(self):
        body = self.body()
        del self.headers["Expect"]
        with self.server.lock:
            key = (self.command, self.path)
            count = self.server.counts[key] = self.server.counts.get(key, 0) + 1
        what = self.server.disturb(self.command, self.path, count)
        if what == "drop":  # before anything is passed on
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
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


class ObjectStoreTest(ProgramTest):

    FILE_SAMPLES = 15000  # of each of three files: about 1 MB, several requests

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

    def put_empty_objects(self, prefix, count):
        """Puts PREFIX00000.norm, PREFIX00001.norm, ... into the bucket `data`."""
        self.server.stdin.write(f"{prefix} {count}\n")
        self.server.stdin.flush()
        self.assertEqual(self.server.stdout.readline(), "done\n")

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
            write_samples(self.folder / "set" / name, self.FILE_SAMPLES, seed=i)
        write_list(self.folder / "set/file_list.txt", names)
        for path in (self.folder / "set").iterdir():
            self.s3.upload_file(str(path), "data", f"set/{path.name}")

    def tearDown(self):
        self.proxy.shutdown()
        self.proxy.server_close()
        super().tearDown()
