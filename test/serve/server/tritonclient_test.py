"""Asks for predictions with NVIDIA's clients, which know nothing of our code: gRPC, HTTP in JSON and binary, TLS.

    tritonclient_test.py build/release/bin/fake_serve

Uses the installed tritonclient, or the one that scripts/test.sh installs with pip into build/tritonclient.
Exit code 77 (skipped) if there is neither.
"""

import pathlib
import shutil
import ssl
import subprocess
import sys
import tempfile
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).parents[3]
sys.path.append(str(ROOT / "build" / "tritonclient"))
try:
    import numpy as np
    import tritonclient.grpc as grpc_client
    import tritonclient.http as http_client
    from tritonclient.utils import InferenceServerException
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

PROGRAM = sys.argv.pop(1)

# The samples of test/serve/server/tensors.h, and what fake_predictor.h makes of them.
NAMED = {"dense": np.array([[0.5, 1], [2, 3]], np.float32),
         "wide.keys": np.array([1, 2, 3, 4], np.int64),
         "wide.offsets": np.array([0, 1, 3, 3, 4], np.int32),
         "deep.keys": np.array([5, 6, 7], np.int64),
         "deep.offsets": np.array([0, 1, 3], np.int32)}
HUGE_CTR = {"DES": np.array([[0.5, 1, 2, 3]], np.float32),
            "CATCOLUMN": np.array([[1, 2, 3, 5, 4, 6, 7]], np.uint32),
            "ROWINDEX": np.array([[0, 1, 3, 3, 4, 0, 1, 3]], np.int32)}
EXPECTED = (1 / np.array([18.5, 36.0])).astype(np.float32)
TYPES = {"float32": "FP32", "int64": "INT64", "int32": "INT32", "uint32": "UINT32"}


class FakeServer:
    """A fake_serve process, for a `with` statement."""

    def __init__(self, *tls):
        self.process = subprocess.Popen([PROGRAM, *map(str, tls)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.http_port, self.grpc_port = map(int, self.process.stdout.readline().split())
        self.http, self.grpc = (f"127.0.0.1:{port}" for port in (self.http_port, self.grpc_port))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate()
        assert self.process.returncode == 0


def tensors(module, arrays, **options):
    inputs = []
    for name, array in arrays.items():
        tensor = module.InferInput(name, list(array.shape), TYPES[str(array.dtype)])
        tensor.set_data_from_numpy(array, **options)
        inputs.append(tensor)
    return inputs


class TritonClient(unittest.TestCase):

    def setUp(self):
        self.server = FakeServer()
        self.http = http_client.InferenceServerClient(self.server.http)
        self.grpc = grpc_client.InferenceServerClient(self.server.grpc)
        self.addCleanup(self.server.__exit__)
        self.addCleanup(self.http.close)
        self.addCleanup(self.grpc.close)

    def check(self, result, version="7"):
        probability = result.as_numpy("probability")
        self.assertEqual(probability.shape, (2, 1))
        np.testing.assert_array_equal(probability[:, 0], EXPECTED)
        np.testing.assert_array_equal(result.as_numpy("commit"), [7])
        response = result.get_response()
        self.assertEqual(response["model_version"] if isinstance(response, dict)
                         else response.model_version, version)

    def test_grpc(self):
        self.check(self.grpc.infer("ads", tensors(grpc_client, NAMED), request_id="1"))
        self.check(self.grpc.infer("ads", tensors(grpc_client, NAMED), model_version="7",
                                   client_timeout=20, timeout=20_000_000))

    def test_http_in_every_combination_of_binary_and_json(self):
        for binary_in in (True, False):
            self.check(self.http.infer("ads", tensors(http_client, NAMED, binary_data=binary_in)))
            for binary_out in (True, False):
                outputs = [http_client.InferRequestedOutput(name, binary_data=binary_out)
                           for name in ("commit", "probability")]
                self.check(self.http.infer("ads", tensors(http_client, NAMED, binary_data=binary_in),
                                           outputs=outputs, request_id="2", timeout=20_000_000))

    def test_mixed_binary_and_json_inputs(self):
        inputs = (tensors(http_client, {"dense": NAMED["dense"]}, binary_data=False)
                  + tensors(http_client, {k: v for k, v in NAMED.items() if k != "dense"}))
        self.check(self.http.infer("ads", inputs))

    def test_the_inputs_of_hugectr_backend(self):
        for module, client in ((http_client, self.http), (grpc_client, self.grpc)):
            result = client.infer("ads", tensors(module, HUGE_CTR),
                                  outputs=[module.InferRequestedOutput("OUTPUT0"),
                                           module.InferRequestedOutput("unseen_keys")])
            np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), EXPECTED)
            np.testing.assert_array_equal(result.as_numpy("unseen_keys"), [0])

    def test_health_and_metadata(self):
        for client in (self.http, self.grpc):
            self.assertTrue(client.is_server_live())
            self.assertTrue(client.is_server_ready())
            self.assertTrue(client.is_model_ready("ads"))
        self.assertTrue(self.http.is_model_ready("ads", "7"))
        self.assertFalse(self.http.is_model_ready("ads", "6"))
        self.assertEqual(self.http.get_server_metadata()["name"], "cistern")
        self.assertEqual(self.grpc.get_server_metadata().name, "cistern")
        over_http = self.http.get_model_metadata("ads")
        over_grpc = self.grpc.get_model_metadata("ads", as_json=True)
        self.assertEqual([i["name"] for i in over_http["inputs"]], list(NAMED))
        self.assertEqual([(i["name"], i["datatype"]) for i in over_grpc["inputs"]],
                         [(i["name"], i["datatype"]) for i in over_http["inputs"]])
        self.assertEqual(self.http.get_model_config("ads")["max_batch_size"], 0)

    def test_errors(self):
        inputs = tensors(http_client, {k: v for k, v in NAMED.items() if k != "deep.keys"})
        with self.assertRaisesRegex(InferenceServerException, "'deep.keys' is missing") as raised:
            self.http.infer("ads", inputs)
        self.assertEqual(raised.exception.status(), "400")
        with self.assertRaisesRegex(InferenceServerException, "serves commit 7") as raised:
            self.grpc.infer("ads", tensors(grpc_client, NAMED), model_version="6")
        self.assertEqual(raised.exception.status(), "StatusCode.NOT_FOUND")
        with self.assertRaisesRegex(InferenceServerException, "it serves 'ads'"):
            self.http.infer("bids", tensors(http_client, NAMED))
        with self.assertRaisesRegex(InferenceServerException, "UNIMPLEMENTED"):
            self.grpc.get_inference_statistics()
        with self.assertRaisesRegex(InferenceServerException, "compressed"):
            self.http.infer("ads", tensors(http_client, NAMED),
                            request_compression_algorithm="gzip")
        self.check(self.http.infer("ads", tensors(http_client, NAMED)))

    def test_metrics(self):
        self.http.infer("ads", tensors(http_client, NAMED))
        text = urllib.request.urlopen(f"http://{self.server.http}/metrics").read().decode()
        self.assertIn("cistern_serve_samples_total 2\n", text)


def openssl(folder, *words):
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def make_certificates(folder):
    """ca.pem signs server.pem (for localhost) and client.pem; other.pem signs itself."""
    for name in ("ca", "other"):
        openssl(folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key",
                "-out", f"{name}.pem", "-days", "2", "-subj", f"/CN={name}")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for name in ("server", "client"):
        openssl(folder, "req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out",
                f"{name}.csr", "-subj", f"/CN={name}")
        openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                "-CAcreateserial", "-out", f"{name}.pem", "-days", "2", "-extfile", "names")


@unittest.skipUnless(shutil.which("openssl"), "no openssl program")
class Certificates(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        make_certificates(cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def path(self, name):
        return str(self.folder / name)

    def http_live(self, server, *client, ca="ca.pem"):
        context = ssl.create_default_context(cafile=self.path(ca))
        if client:
            context.load_cert_chain(*map(self.path, client))
        url = f"https://127.0.0.1:{server.http_port}/v2/health/live"
        with urllib.request.urlopen(url, context=context, timeout=20) as answer:
            return answer.status

    def grpc_client(self, server, *client, ca="ca.pem"):
        return grpc_client.InferenceServerClient(
            server.grpc, ssl=True, root_certificates=self.path(ca),
            private_key=self.path(client[1]) if client else None,
            certificate_chain=self.path(client[0]) if client else None)

    def test_encrypted(self):
        with FakeServer(self.path("server.pem"), self.path("server.key")) as server:
            self.assertEqual(self.http_live(server), 200)
            with self.grpc_client(server) as client:
                result = client.infer("ads", tensors(grpc_client, NAMED))
            np.testing.assert_array_equal(result.as_numpy("probability")[:, 0], EXPECTED)
            with http_client.InferenceServerClient(
                    server.http, ssl=True, ssl_options={"ca_certs": self.path("ca.pem")}) as client:
                result = client.infer("ads", tensors(http_client, NAMED))
            np.testing.assert_array_equal(result.as_numpy("probability")[:, 0], EXPECTED)
            with self.assertRaises(urllib.error.URLError):  # not the authority of this server
                self.http_live(server, ca="other.pem")
            with self.assertRaises(OSError):  # plain HTTP on the port of TLS
                urllib.request.urlopen(f"http://{server.http}/v2/health/live", timeout=20)

    def test_clients_show_certificates(self):
        files = [self.path(name) for name in ("server.pem", "server.key", "ca.pem")]
        with FakeServer(*files) as server:
            self.assertEqual(self.http_live(server, "client.pem", "client.key"), 200)
            with self.grpc_client(server, "client.pem", "client.key") as client:
                self.assertTrue(client.is_server_live())
            with self.assertRaisesRegex(urllib.error.HTTPError, "403"):
                self.http_live(server)
            with self.assertRaisesRegex(urllib.error.HTTPError, "403"):
                self.http_live(server, "other.pem", "other.key")
            for stranger in ((), ("other.pem", "other.key")):
                with self.grpc_client(server, *stranger) as client:
                    with self.assertRaisesRegex(InferenceServerException, "UNAVAILABLE"):
                        client.is_server_live(client_timeout=5)

    def test_certificates_that_do_not_fit(self):
        result = subprocess.run([PROGRAM, self.path("server.pem"), self.path("client.key")],
                                stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("check that the key belongs to the certificate", result.stderr)


if __name__ == "__main__":
    unittest.main()
