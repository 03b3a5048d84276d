"""Reads data sets from a real S3 server, behind a proxy that cuts connections, delays and refuses
(object_store.py).

GCS and HDFS have no test: no server for them can be installed from a package.
"""

import json
import time
import unittest

from object_store import KEY, SECRET, ObjectStoreTest
from programs import Samples, run


class ObjectStore(ObjectStoreTest):

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
        for name in ("gone-*.norm", "gone.norm"):  # as for a file of this machine
            self.write_model(lambda content: content["layers"][0].update(source=f"s3://data/{name}"))
            self.expect(run("cistern", "train", self.config, "--out", self.folder / "gone", env=self.environment), 2,
                        "error: ", "s3://data/", "correct the path")
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
        self.put_empty_objects("many/x-", 10000)
        self.s3.put_object(Bucket="data", Key="many/x-00000.norm", Body=content)
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

    def test_a_prefix_is_a_stream(self):
        """Its objects are trained once each, in the order of their names, also after a restart."""
        def change(content):
            content["solver"].update(num_epochs=1, display=0, eval_interval=0)
            content["layers"][0].update(check="Sum")
        self.write_model(change)
        local = self.folder / "in"
        local.mkdir()

        def add(name, seed):
            Samples(150, seed).write(local / name)
            self.s3.put_object(Bucket="data", Key=f"clicks/{name}", Body=(local / name).read_bytes())

        def train(out, source):
            words = ("cistern", "train", self.config, "--out", self.folder / out, "--stream", source, "--once", "--json")
            return self.expect(run(*words, env=self.environment), 0).json()["samples"]
        self.s3.put_object(Bucket="data", Key="clicks/_ignored", Body=b"x")
        for turn in range(2):
            for i in range(2):
                add(f"{turn}{i}.norm", 10 * turn + i)
            for out, source in (("remote", "s3://data/clicks/"), ("local", local)):
                self.assertEqual(train(out, source), 300 * (turn + 1), out)
        models = [{str(path.relative_to(self.folder / out)): path.read_bytes()
                   for path in sorted((self.folder / out / "model").rglob("part-*")) if path.suffix != ".json"}
                  for out in ("remote", "local")]
        self.assertEqual(*({name.split("/", 1)[1]: content for name, content in model.items()} for model in models))
        self.expect(run("cistern", "train", self.config, "--out", self.folder / "x", "--stream", "s3://data/clicks/00.norm",
                        env=self.environment), 2, "name the prefix")

    def test_a_model_trains_from_the_store_to_the_same_bits(self):
        def use(source, kind="Norm"):
            def change(content):
                content["cistern"] = {"shuffle_buffer": 700}
                data = content["layers"][0]
                data.update(source=str(source), eval_source=str(source), format=kind, check="Sum" if kind == "Norm" else "None")
            self.write_model(change)

        def losses(name, *flags):
            self.expect(run("cistern", "train", self.config, "--out", self.folder / name, *flags,
                            env=self.environment), 0)
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
        # In streams, too: as many as Norm files, more than these, and more than shards. A manifest tells the number of
        # samples, which are otherwise counted by reading the shards.
        shards = sorted((self.folder / "shards").glob("*.tar"))
        files, tars = "set/file_list.txt", "shards/data-*.tar"
        for kind, source, count in (("Norm", files, 3), ("Norm", files, 8), ("Tar", tars, 8), ("Tar", tars, 25)):
            streams = ("--set", f"cistern.streams={count}", "--set", "solver.num_epochs=1")
            use(self.folder / source, kind)
            expected = losses(f"local-{kind}-{count}", *streams)
            use(f"s3://data/{source}", kind)
            before = self.proxy.bytes_out
            self.assertEqual(losses(f"remote-{kind}-{count}", *streams), expected)
            counted = self.proxy.bytes_out - before
        self.assertLess(len(shards), count)
        self.s3.upload_file(str(self.folder / "shards/manifest.json"), "data", "shards/manifest.json")
        before = self.proxy.bytes_out
        self.assertEqual(losses("listed", *streams), expected)
        listed = self.proxy.bytes_out - before
        self.assertGreater(counted - listed, sum(path.stat().st_size for path in shards) / 2)


if __name__ == "__main__":
    unittest.main()
