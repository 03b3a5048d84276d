"""`cistern serve` answers over HTTP and gRPC with the bits of `cistern predict`, and follows new versions."""

import http.client
import json
import signal
import struct
import sys
import threading
import unittest

from programs import ROOT, ProgramTest, Samples, finish, run, start, wait_for
from serve_process import Serve, arrays_of, binary_body, json_body
from serving_library import predictions_of, text_of

sys.path.append(str(ROOT / "build" / "tritonclient"))
try:
    import numpy
    import tritonclient.grpc as grpc_client
    from tritonclient.grpc import service_pb2, service_pb2_grpc
    import grpc
except ImportError:
    grpc_client = None


class ServeTest(ProgramTest):

    def setUp(self):
        super().setUp()
        self.serving = self.folder / "serving"
        self.samples = Samples(self.SAMPLES // 4, seed=2).rows  # those of the test file

    def export(self, name="run", *flags):
        """Trains and exports; returns what `cistern predict` says about the test file."""
        self.run_ok("cistern", "train", self.config, "--out", self.folder / name, *flags)
        self.run_ok("cistern", "export", "serving", self.config, "--out", self.serving, "--model",
                    self.folder / name)
        output = self.folder / "predictions.tsv"
        self.run_ok("cistern", "predict", self.config, "--data", self.test_file, "--output", output,
                    "--model", self.folder / name)
        return predictions_of(output)

    def batches(self, size):
        return [self.samples[i:i + size] for i in range(0, len(self.samples), size)]

    def test_every_form_of_a_request_gives_the_bits_of_predict(self):
        expected = [text_of(p) for p in self.export()]
        with Serve(self.serving) as server:
            self.assertEqual(server.ready["model"], "model")
            for size in (1, 7, 100, 500):
                from_json, from_binary = [], []
                for batch in self.batches(size):
                    status, reply, _ = server.post(json_body(batch))
                    self.assertEqual(status, 200, reply)
                    self.assertEqual(reply["outputs"][0]["shape"], [len(batch), 1])
                    from_json += reply["outputs"][0]["data"]
                    status, reply, data = server.post(*binary_body(batch))
                    self.assertEqual(status, 200, reply)
                    from_binary += struct.unpack(f"<{len(batch)}f", data[:4 * len(batch)])
                with self.subTest(batch=size):
                    self.assertEqual([text_of(p) for p in from_json], expected)
                    self.assertEqual([text_of(p) for p in from_binary], expected)
                    if grpc_client is not None:
                        self.assertEqual(self.over_grpc(server, size), expected)
            result = server.stop()
        self.expect(result, 0)
        self.assertEqual(json.loads(result.out)["ready"], False)

    def over_grpc(self, server, size):
        predictions = []
        with grpc_client.InferenceServerClient(server.ready["grpc"]) as client:
            for batch in self.batches(size):
                inputs = []
                for name, kind, shape, code, values in arrays_of(batch):
                    inputs.append(grpc_client.InferInput(name, shape, kind))
                    inputs[-1].set_data_from_numpy(numpy.array(values, code).reshape(shape))
                result = client.infer("model", inputs).as_numpy("probability")
                predictions += [text_of(p) for p in result[:, 0]]
        return predictions

    @unittest.skipIf(grpc_client is None, "tritonclient is not installed")
    def test_malformed_grpc_requests_are_refused(self):
        """In the real program: two of its classes once had one name, and each other's destructor."""

        def fp64(inputs):
            inputs[0].datatype = "FP64"
            inputs[0].contents.Clear()
            inputs[0].contents.fp64_contents.extend([1.0] * Samples.DENSE)

        def fp16(inputs):
            inputs[0].datatype = "FP16"

        def fp64_after_others(inputs):
            inputs[2].datatype = "FP64"

        def texts_and_numbers(inputs):
            inputs[2].datatype = "BYTES"
            inputs[2].contents.bytes_contents.append(b"x")

        def two_lists(inputs):
            inputs[2].contents.int64_contents.append(1)

        self.export()
        lists = {"FP32": "fp32_contents", "INT64": "int64_contents", "INT32": "int_contents"}

        def typed():
            request = service_pb2.ModelInferRequest(model_name="model")
            for name, kind, shape, _, values in arrays_of(self.samples[:1]):
                one = request.inputs.add(name=name, datatype=kind, shape=shape)
                getattr(one.contents, lists[kind]).extend(values)
            return request

        def raw_and_typed():
            request = typed()
            request.raw_input_contents.extend(
                struct.pack(f"<{len(values)}{code}", *values)
                for *_, code, values in arrays_of(self.samples[:1]))
            return request

        def changed(change):
            request = typed()
            change(request.inputs)
            return request

        cases = [(change.__name__, changed(change), words) for change, words in (
            (fp64, "has datatype 'FP64'"), (fp16, "has datatype 'FP16'"),
            (fp64_after_others, "has datatype 'FP64'"),
            (texts_and_numbers, "several typed lists"), (two_lists, "several typed lists"))]
        cases.append(("raw_and_typed", raw_and_typed(), "has contents although"))
        with Serve(self.serving) as server, grpc.insecure_channel(server.ready["grpc"]) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            for what, request, words in cases * 3:
                with self.subTest(what):
                    with self.assertRaises(grpc.RpcError) as refused:
                        stub.ModelInfer(request, timeout=60)
                    self.assertEqual(refused.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
                    self.assertIn(words, refused.exception.details())
                    answer = stub.ModelInfer(typed(), timeout=60)
                    self.assertEqual(answer.outputs[0].name, "probability")
            self.expect(server.stop(), 0)

    def test_a_new_version_replaces_the_old_one_without_a_failed_request(self):
        first = self.export()
        body = json_body(self.samples[:10])
        with Serve(self.serving, "--threads", 2) as server:
            answers, stop = [], threading.Event()

            def ask():
                connection = http.client.HTTPConnection(server.ready["http"], timeout=60)
                while not stop.is_set():
                    connection.request("POST", "/v2/models/model/infer", body)
                    answer = connection.getresponse()
                    answers.append((answer.status, json.loads(answer.read())))
                connection.close()

            clients = [threading.Thread(target=ask) for _ in range(3)]
            for client in clients:
                client.start()
            self.addCleanup(stop.set)
            second = self.export("again", "--set", "solver.num_epochs=1")
            expected = {tuple(map(text_of, p[:10])) for p in (first, second)}
            self.assertEqual(len(expected), 2)

            def both_seen():
                return {tuple(map(text_of, reply["outputs"][0]["data"]))
                        for status, reply in list(answers) if status == 200} >= expected

            wait_for(both_seen, "the new version")
            stop.set()
            for client in clients:
                client.join()
        for status, reply in answers:
            self.assertEqual(status, 200, reply)
            self.assertIn(tuple(map(text_of, reply["outputs"][0]["data"])), expected)

    def test_the_log_holds_what_was_predicted(self):
        expected = self.export()
        log = self.folder / "requests.jsonl"
        with Serve(self.serving, "--log-requests", log, "--log-share", 0.5) as server:
            for i, batch in enumerate(self.batches(50)):
                body = dict(json.loads(json_body(batch)), id=str(i))
                self.assertEqual(server.post(json.dumps(body))[0], 200)
            status, metrics = server.get("/metrics")
            self.assertEqual(status, 200)
            self.assertIn(f"cistern_serve_samples_total {len(self.samples)}\n", metrics)
            self.assertIn(f"cistern_serve_commit {server.ready['commit']}\n", metrics)
            server.stop()
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        self.assertEqual(sorted(line["id"] for line in lines), ["1", "3", "5", "7", "9"])
        for line in lines:
            first = 50 * int(line["id"])
            self.assertEqual([text_of(p) for p in line["probability"]],
                             [text_of(p) for p in expected[first:first + 50]])
            keys = arrays_of(self.samples[first:first + 50])[1][4]
            self.assertEqual(line["inputs"][0]["keys"], keys)
            self.assertEqual(line["commit"], server.ready["commit"])

    def test_logged_requests_are_computed_again(self):
        self.run_ok("cistern", "train", self.config, "--out", self.folder / "run", "--durability",
                    "commit")
        self.run_ok("cistern", "publish", self.config, "--follow", self.folder / "run", "--out",
                    self.serving, "--once")
        log = self.folder / "requests.jsonl"
        with Serve(self.serving, "--log-requests", log, "--log-share", 1) as server:
            for batch in self.batches(100):
                self.assertEqual(server.post(*binary_body(batch))[0], 200)
            server.stop()
        verify = ["cistern", "verify", "online", log, "--state", self.folder / "run", "--serving",
                  self.serving]
        self.run_ok(*verify)
        self.run_ok(*verify[:-2])  # the log names the folder
        counted = log.read_text().replace('"unseen_keys":', '"unseen_keys":9', 1)
        (self.folder / "counted.jsonl").write_text(counted)
        verify[3] = self.folder / "counted.jsonl"
        self.assertIn("unseen keys were counted", self.expect(run(*verify), 1).err)
        verify[3] = log
        log.write_text(log.read_text().replace('"probability":[0.', '"probability":[0.0', 1))
        self.assertNotEqual(run(*verify).code, 0)

    def test_unseen_keys_are_counted(self):
        self.export()
        sample = (0, [0.5, 0.5], [[10**15], [10**15 + 1], [], [1]])
        body = json.loads(json_body([sample]))
        body["outputs"] = [{"name": "unseen_keys"}]
        with Serve(self.serving) as server:
            status, reply, _ = server.post(json.dumps(body))
            self.assertEqual((status, reply["outputs"][0]["data"]), (200, [2]))

    def test_mistakes_are_explained(self):
        self.expect(finish(start("cistern", "serve", self.folder)), 2, "holds other things",
                    "cistern export serving")
        self.export()
        self.expect(finish(start("cistern", "serve", self.serving, "--bind", "0.0.0.0")), 2,
                    "in the clear", "--tls-cert")
        self.expect(finish(start("cistern", "serve", self.serving, "--tls-cert", "x")), 2,
                    "--tls-key")
        self.expect(finish(start("cistern", "serve", self.serving, "--port", "70000")), 2,
                    "70000 is not in 0 to 65535 (--port)")
        self.expect(finish(start("cistern", "serve", self.serving, "--log-requests", "/dev/null",
                                 "--port", 0, "--grpc-port", 0)), 2, "is not a file")
        with Serve(self.serving, "--max-samples", 5) as server:
            port = server.ready["http"].split(":")[1]
            self.expect(finish(start("cistern", "serve", self.serving, "--port", port)), 1,
                        "is taken")
            status, reply, _ = server.post(json_body(self.samples[:6]))
            self.assertEqual(status, 400)
            self.assertIn("accepts 5 at a time", reply["error"])
            status, reply, _ = server.post(json_body(self.samples[:1]), version="/versions/999")
            self.assertEqual(status, 404)
            self.expect(server.stop(signal.SIGINT), 0)


if __name__ == "__main__":
    unittest.main()
