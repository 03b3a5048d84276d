"""A served model over retraining, restarts and faults: its name, its folder, its certificates, its end."""

import http.client
import itertools
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from programs import BIN, ROOT, ProgramTest, finish, free_port, run, start, wait_for
from serve_process import Serve, json_body
from serving_folder import ServingTest

sys.path.append(str(ROOT / "build" / "tritonclient"))
try:
    import tritonclient.grpc as grpc_client
except ImportError:
    grpc_client = None


class Lines:
    """The lines that a process writes to its standard error, while it runs."""

    def __init__(self, process):
        self.all = []
        self.thread = threading.Thread(target=self._read, args=(process.stderr,))
        self.thread.start()

    def _read(self, stream):
        for line in stream:
            self.all.append(line)

    def text(self):
        return "".join(self.all)

    def wait_for(self, words):
        return wait_for(lambda: words in self.text(), f"{words!r} in the log")

    def end(self, process):
        """The exit code, after the end of the process."""
        code = process.wait(60)
        self.thread.join()
        process.stdout.close()
        process.stderr.close()
        return code


def ask(port, path):
    """The status of a GET; None: nobody answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    except OSError:
        return None
    finally:
        connection.close()


class Names(ServingTest):

    def export_as(self, name, *flags):
        """Exports a run of this name from its run folder."""
        if not (self.folder / name).exists():
            self.train(name)
        return self.run_ok("cistern", "export", "serving", self.folder / name, "--out", self.serving,
                           "--json", *flags)

    def names(self):
        listed = self.run_ok("cistern", "serving", "ls", self.serving, "--json").json()
        return [version["name"] for version in listed["versions"]]

    def test_a_folder_keeps_its_first_name_over_retraining(self):
        self.export_as("day1")
        with Serve(self.serving) as old:
            again = self.export_as("day2")
            self.assertEqual(again.json()["name"], "day1")
            self.assertIn("still called 'day1'", again.err)
            self.assertIn("--name day2", again.err)
            second = self.published_name()
            wait_for(lambda: f'"{int(second[:10])}"' in old.get("/v2/models/day1")[1], "the version")
            with Serve(self.serving) as restarted:
                self.assertEqual(restarted.ready["model"], "day1")
                for server in (old, restarted):
                    self.assertEqual(server.post(json_body(self.samples[:1]), model="day1")[0], 200)
        self.assertEqual(self.names(), ["day1", "day1"])
        self.assertIn("NAME", self.run_ok("cistern", "serving", "ls", self.serving).out)

    def test_replicas_that_run_and_that_restart_agree_on_a_new_name(self):
        self.export_as("day1", "--name", "ctr")
        with Serve(self.serving) as old, Serve(self.serving, "--name", "fixed") as fixed:
            log = Lines(old.process)
            self.assertEqual(old.ready["model"], "ctr")
            renamed = self.export_as("day2", "--name", "clicks")
            self.assertIn("'clicks' from this version on, not 'ctr'", renamed.err)
            log.wait_for("has the model name 'clicks', not 'ctr'")
            with Serve(self.serving) as restarted:
                for server in (old, restarted):
                    body = json_body(self.samples[:1])
                    self.assertEqual(server.post(body, model="clicks")[0], 200)
                    status, reply, _ = server.post(body, model="ctr")
                    self.assertEqual(status, 404)
                    self.assertIn("'clicks'", reply["error"])
            self.assertEqual(fixed.post(json_body(self.samples[:1]), model="fixed")[0], 200)
            rolled = self.run_ok("cistern", "serving", "rollback", self.serving)
            self.assertIn("called 'ctr' again", rolled.out)
            wait_for(lambda: old.post(json_body(self.samples[:1]), model="ctr")[0] == 200, "ctr")
            old.process.terminate()
            self.assertEqual(log.end(old.process), 0)
        self.assertEqual(self.names(), ["ctr", "clicks"])

    def test_publish_names_its_versions(self):
        run_folder = self.train("live", "--durability", "commit")
        publish = ["cistern", "publish", run_folder, "--follow", run_folder, "--once", "--out"]
        self.run_ok(*publish, self.serving, "--name", "ctr")
        self.assertEqual(set(self.names()), {"ctr"})
        refused = run(*publish, self.folder / "other", "--name", "a b")
        self.expect(refused, 2, "--name", "a b")
        self.expect(run("cistern", "serve", self.serving, "--name", "../x"), 2, "--name")


class Folders(ServingTest):

    def test_processes_start_in_any_order(self):
        live, port = self.folder / "runs" / "live", free_port()
        serve = start("cistern", "serve", self.serving, "--port", port, "--grpc-port", 0, "--poll-ms",
                      20, "--drain-seconds", 0)
        self.addCleanup(serve.kill)
        log = Lines(serve)
        log.wait_for("waiting for a version in")
        self.assertEqual(ask(port, "/v2/health/live"), 200)
        self.assertEqual(ask(port, "/v2/health/ready"), 503)
        self.assertEqual(ask(port, "/v2/models/live"), 503)
        publish = start("cistern", "publish", live, "--follow", live, "--out", self.serving,
                        "--poll-ms", 20)
        self.addCleanup(publish.kill)
        published = Lines(publish)
        published.wait_for("waiting for the training")
        self.run_ok("cistern", "train", self.config, "--out", live, "--durability", "commit")
        published.wait_for(f"published commit {self.newest(live)}")
        wait_for(lambda: ask(port, "/v2/health/ready") == 200, "the served model")
        self.assertIn("model=live", serve.stdout.readline())
        self.assertEqual(ask(port, "/v2/models/live"), 200)
        for process, lines in ((serve, log), (publish, published)):
            process.terminate()
            self.assertEqual(lines.end(process), 0, lines.text())

    def test_a_server_that_waits_can_be_stopped(self):
        serve = start("cistern", "serve", self.serving, "--port", 0, "--grpc-port", 0)
        self.addCleanup(serve.kill)
        log = Lines(serve)
        log.wait_for("waiting for a version in")
        serve.terminate()
        self.assertEqual(log.end(serve), 0)

    def test_a_server_waits_while_its_folder_is_copied(self):
        self.export("--model", self.train())
        copy = self.folder / "copy"
        shutil.copytree(self.serving, copy)
        rows = next((copy / self.published_name()).glob("*.rows"))
        whole = rows.read_bytes()
        rows.write_bytes(whole[:1])
        server = start("cistern", "serve", copy, "--port", 0, "--grpc-port", 0, "--poll-ms", 20)
        self.addCleanup(server.kill)
        for part in range(1, 16):  # three seconds: longer than a server waits for a folder at rest
            time.sleep(0.2)
            rows.write_bytes(whole[:part])
        rows.write_bytes(whole)
        self.assertIn("ready", server.stdout.readline())
        server.terminate()
        self.expect(finish(server), 0)

    def test_a_publisher_that_published_nothing_says_so(self):
        nowhere = self.folder / "nowhere"
        publish = start("cistern", "publish", nowhere, "--follow", nowhere, "--out", self.serving, "--json")
        self.addCleanup(publish.kill)
        lines = Lines(publish)
        lines.wait_for("waiting for the training")
        publish.terminate()
        said = json.loads(publish.stdout.read())
        self.assertEqual(lines.end(publish), 0)
        self.assertEqual((said["commit"], said["versions"]), (None, 0))

    def test_daemons_live_through_folders_that_are_away(self):
        live, away = self.train("live", "--durability", "commit"), self.folder / "away"
        publish = start("cistern", "publish", live, "--follow", live, "--out", self.serving,
                        "--poll-ms", 20)
        self.addCleanup(publish.kill)
        published = Lines(publish)
        published.wait_for("published commit")
        with Serve(self.serving) as server:
            log = Lines(server.process)
            for folder in (live, live / "state", live / "state" / "manifest", self.serving):
                seen = len(published.all), len(log.all)
                folder.rename(away)
                wait_for(lambda: "fails: " in "".join(published.all[seen[0]:]), f"{folder} away")
                if folder == self.serving:
                    wait_for(lambda: "fails: " in "".join(log.all[seen[1]:]), "the server's log")
                    self.assertIn("cistern_serve_open_failing 1\n", server.get("/metrics")[1])
                    self.assertEqual(server.post(json_body(self.samples[:1]), model="live")[0], 200)
                self.assertFalse(folder.exists(), "nobody made it anew")
                away.rename(folder)
                wait_for(lambda: "works again" in "".join(published.all[seen[0]:]), f"{folder} back")
            log.wait_for("works again")
            self.assertIn("cistern_serve_open_failing 0\n", server.get("/metrics")[1])
            self.run_ok("cistern", "train", self.config, "--out", live, "--resume", "--set",
                        "solver.num_epochs=3")
            published.wait_for(f"published commit {self.newest(live)}")
            wait_for(lambda: f"cistern_serve_commit {self.newest(live)}\n" in server.get("/metrics")[1],
                     "the newest commit")
            publish.terminate()
            self.assertEqual(published.end(publish), 0, published.text())
            server.process.terminate()
            self.assertEqual(log.end(server.process), 0)

    def test_publish_says_that_a_training_began_anew(self):
        live = self.train("live", "--durability", "commit")
        publish = start("cistern", "publish", live, "--follow", live, "--out", self.serving,
                        "--poll-ms", 20)
        self.addCleanup(publish.kill)
        published = Lines(publish)
        published.wait_for(f"published commit {self.newest(live)}")
        self.train("live", "--durability", "commit", "--overwrite", "--set", "solver.num_epochs=1")
        published.wait_for("behind commit")
        self.assertIsNone(publish.poll())
        publish.terminate()
        self.assertEqual(published.end(publish), 0)

    def test_a_version_that_cannot_be_opened_is_reported(self):
        self.train()
        self.export("--model", self.folder / "run")
        with Serve(self.serving) as server:
            log = Lines(server.process)
            served = server.get("/v2/models/model")[1]
            broken = self.serving / "0000009999"
            broken.mkdir()
            (broken / "serving.json").write_text("{}")
            head = self.serving / "HEAD"
            good = head.read_text()
            (self.serving / "HEAD.new").write_text('{"version":"0000009999","xxh3":"0000000000000001"}')
            (self.serving / "HEAD.new").rename(head)
            log.wait_for("version 0000009999 cannot be served")
            metrics = server.get("/metrics")[1]
            self.assertIn("cistern_serve_open_failing 1\n", metrics)
            self.assertNotIn("cistern_serve_open_failures_total 0\n", metrics)
            self.assertEqual(server.get("/v2/models/model")[1], served)
            (self.serving / "HEAD.new").write_text(good)
            (self.serving / "HEAD.new").rename(head)
            log.wait_for("works again")
            server.process.terminate()
            self.assertEqual(log.end(server.process), 0)

    def test_defaults_fit_a_limit_of_1024_open_files(self):
        self.train()
        self.export("--model", self.folder / "run")
        words = [str(BIN / "cistern"), "serve", str(self.serving), "--port", "0", "--grpc-port", "0",
                 "--drain-seconds", "0"]

        def limited(*more):
            return subprocess.Popen(
                [*words, *more], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024)))

        server = limited()
        self.assertIn("ready", server.stdout.readline())
        server.terminate()
        self.expect(finish(server), 0)
        refused = finish(limited("--max-connections", "2000"))
        self.expect(refused, 2, "2000 connections are above 384", "ulimit -n")


class Ends(ServingTest):

    def setUp(self):
        super().setUp()
        self.train()
        self.export("--model", self.folder / "run")

    def test_a_server_answers_while_it_drains(self):
        server = Serve(self.serving, drain=3)
        port = int(server.ready["http"].split(":")[1])
        server.process.terminate()
        wait_for(lambda: ask(port, "/v2/health/ready") == 503, "not ready")
        status, reply, _ = server.post(json_body(self.samples[:1]))  # on an old connection
        self.assertEqual(status, 200, reply)
        fresh = http.client.HTTPConnection(server.ready["http"], timeout=20)
        fresh.request("POST", "/v2/models/model/infer", json_body(self.samples[:1]))
        answer = fresh.getresponse()
        self.assertEqual((answer.status, answer.headers["Connection"]), (200, "close"))
        answer.read()
        fresh.close()
        if grpc_client is not None:
            with grpc_client.InferenceServerClient(server.ready["grpc"]) as client:
                self.assertFalse(client.is_server_ready())
                self.assertTrue(client.is_server_live())
        self.assertIsNone(server.process.poll())
        self.expect(finish(server.process), 0, "--drain-seconds")
        server.connection.close()

    def test_a_second_signal_ends_the_drain(self):
        for first, second in itertools.product((signal.SIGTERM, signal.SIGINT), repeat=2):
            server = Serve(self.serving, drain=3600)
            port = int(server.ready["http"].split(":")[1])
            server.process.send_signal(first)
            wait_for(lambda: ask(port, "/v2/health/ready") == 503, "not ready")

            def ends():  # one of the other kind that comes at once is part of the first stop
                server.process.send_signal(second)
                return server.process.poll() is not None

            wait_for(ends, "the end")
            self.assertEqual(finish(server.process).code, -second, (first, second))
            server.connection.close()

    @unittest.skipUnless(shutil.which("openssl"), "no openssl program")
    def test_renewed_certificates_are_used(self):
        for name in ("one", "two"):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout",
                            self.folder / f"{name}.key", "-out", self.folder / f"{name}.pem", "-days",
                            "2", "-subj", "/CN=localhost"], check=True, capture_output=True)
        certificates = {name: ssl.PEM_cert_to_DER_cert((self.folder / f"{name}.pem").read_text())
                        for name in ("one", "two")}
        cert, key = self.folder / "cert.pem", self.folder / "key.pem"
        data = self.folder / "..data"
        for link in (cert, key):
            link.symlink_to(f"..data/{link.name}")

        def put(name_of_cert, name_of_key):
            """Exchanges both files at once, as Kubernetes does with a secret."""
            folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
            shutil.copy(self.folder / f"{name_of_cert}.pem", folder / cert.name)
            shutil.copy(self.folder / f"{name_of_key}.key", folder / key.name)
            (self.folder / "..new").symlink_to(folder.name)
            os.replace(self.folder / "..new", data)

        def shown(address):
            host, port = address.split(":")
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.set_alpn_protocols(["h2", "http/1.1"])
            with socket.create_connection((host, int(port)), timeout=20) as plain:
                with context.wrap_socket(plain) as encrypted:
                    return encrypted.getpeercert(True)

        put("one", "one")
        with Serve(self.serving, "--tls-cert", cert, "--tls-key", key, "--log-level", "info") as server:
            log = Lines(server.process)
            addresses = [server.ready[protocol] for protocol in ("http", "grpc")]
            open_one = http.client.HTTPSConnection(
                server.ready["http"], timeout=20, context=ssl._create_unverified_context())
            open_one.request("GET", "/v2/health/ready")
            self.assertEqual(open_one.getresponse().read(), b"{}")
            self.assertEqual([shown(a) for a in addresses], [certificates["one"]] * 2)
            put("two", "one")  # a key that does not belong to it
            log.wait_for("the certificates before stay in use")
            self.assertEqual([shown(a) for a in addresses], [certificates["one"]] * 2)
            cert.write_text("-----BEGIN CERTIFICATE-----\ntorn")
            log.wait_for("failing for")
            put("two", "two")
            log.wait_for("new connections use the renewed certificate")
            self.assertEqual([shown(a) for a in addresses], [certificates["two"]] * 2)
            open_one.request("GET", "/metrics")  # on a connection from before
            metrics = open_one.getresponse().read().decode()
            self.assertIn("cistern_serve_certificates_renewed_total 1\n", metrics)
            self.assertIn("cistern_serve_certificates_failing 0\n", metrics)
            open_one.close()
            server.process.terminate()
            self.assertEqual(log.end(server.process), 0)


class Texts(ProgramTest):

    def test_the_metadata_lists_the_input_text_and_its_columns(self):
        table, draw = self.folder / "train.csv", random.Random(1)
        table.write_text("label,age,city\n" + "".join(
            f"{int(draw.random() < 0.3)},{draw.randrange(20, 60)},{draw.choice(['paris', 'rome'])}\n"
            for _ in range(600)))
        self.run_ok("cistern", "train", table, "--label", "label", "--out", self.folder / "ads")
        serving = self.folder / "serving"
        self.run_ok("cistern", "export", "serving", self.folder / "ads", "--out", serving)
        with Serve(serving) as server:
            inputs = json.loads(server.get("/v2/models/ads")[1])["inputs"]
            self.assertIn({"name": "text", "datatype": "BYTES", "shape": [-1, 2],
                           "parameters": {"columns": "age,city"}}, inputs)
            config = json.loads(server.get("/v2/models/ads/config")[1])
            self.assertIn({"name": "text", "data_type": "TYPE_STRING", "dims": [-1, 2],
                           "optional": True}, config["input"])
            body = {"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1, 2],
                                "data": ["30", "rome"]}]}
            self.assertEqual(server.post(json.dumps(body), model="ads")[0], 200)
            if grpc_client is not None:
                with grpc_client.InferenceServerClient(server.ready["grpc"]) as client:
                    names = [one.name for one in client.get_model_metadata("ads").inputs]
                    self.assertIn("text", names)
                    config = client.get_model_config("ads", as_json=True)["config"]
                    self.assertEqual(config["parameters"]["text_columns"]["string_value"], "age,city")
                    self.assertEqual(config["input"][-1]["data_type"], "TYPE_STRING")
                    self.assertEqual(config["input"][-1]["dims"], ["-1", "2"])
                    self.assertTrue(config["input"][-1]["optional"])
                    self.assertEqual(config["backend"], "cistern")


if __name__ == "__main__":
    unittest.main(verbosity=2)
