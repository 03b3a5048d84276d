"""A model that is exported and served predicts what `cistern predict` predicts, bit for bit."""

import json
import os
import shutil
import struct
import subprocess
import unittest

from programs import BIN, ROOT, Samples, Servers, run as run_program
from serving_folder import ServingTest
from serving_library import Model, ServeError, predictions_of
from serving_rows import read_rows


class Exports(ServingTest):

    def test_online_equals_offline_whatever_the_batch(self):
        run = self.train()
        expected = self.expected("--model", run)
        self.export("--model", run)
        with Model(self.serving) as model:
            for batch in (1, 7, 100, 4096):
                with self.subTest(batch=batch):
                    self.assertEqual(self.online(model, batch), expected)
            self.assertEqual(model.stats()["samples"], 4 * len(self.samples))
        offline = predictions_of(self.predict(self.serving, "--batch", 33))
        self.assertEqual(offline, expected)

    def test_another_reader_finds_every_row(self):
        """Compares with the rows of the HugeCTR export, a list of (key, weights)."""
        run = self.train()
        self.run_ok("cistern", "export", "hugectr", self.config, "--model", run, "--out",
                    self.folder / "hugectr")
        expected = {}
        for key, *row in struct.iter_unpack(
                "<I4f", (self.folder / "hugectr0_sparse_0.model").read_bytes()):
            expected[key] = row
        for precision, bound in (("float32", 0), ("float16", 1e-3), ("bfloat16", 1e-2),
                                 ("int8", 1e-2)):
            self.export("--model", run, "--precision", precision)
            rows = read_rows(self.serving / self.published_name() / "rows-000.rows")
            self.assertEqual(rows.keys(), expected.keys())
            for key, row in rows.items():
                for read, exact in zip(row, expected[key]):
                    self.assertLessEqual(abs(read - exact), bound, (precision, key))

    def test_predictions_go_to_standard_output(self):
        run = self.train()
        file = self.predict(self.config, "--model", run)
        piped = self.run_ok("cistern", "predict", self.config, "--model", run, "--data",
                            self.test_file, "--output", "-")
        self.assertEqual(piped.out, file.read_text())
        self.assertIn("auc", piped.err)
        self.assertFalse((self.folder / "-").exists())

    def test_every_source_gives_the_same_version(self):
        run = self.train("run", "--durability", "commit")
        expected = self.expected("--model", run)
        for flags in (("--model", run), ("--state", run)):
            shutil.rmtree(self.serving, ignore_errors=True)
            self.export(*flags)
            self.assertEqual(predictions_of(self.predict(self.serving)), expected)
        with Servers(2, self.folder) as servers:
            self.train("fleet", "--servers", servers.addresses)
            shutil.rmtree(self.serving)
            self.export("--servers", servers.addresses)
            self.assertEqual(predictions_of(self.predict(self.serving)), expected)

    def exported(self, *flags):
        """What a fresh export says of its source: commit, hash of its manifest, digests of the tables."""
        shutil.rmtree(self.serving, ignore_errors=True)
        self.export(*flags)
        version = json.loads((self.serving / self.published_name() / "serving.json").read_text())
        return (version["commit"], version["manifest_xxh3"],
                [table["digest"] for table in version["tables"]])

    def test_a_version_of_a_saved_model_names_the_commit(self):
        saved, here = self.folder / "saved", self.folder / "here"
        here.mkdir()
        with Servers(2, self.folder, durability="commit") as servers:
            fleet = ("--servers", servers.addresses)
            run = self.train("fleet", *fleet)
            self.run_ok("cistern", "save", *fleet, "--name", "monday")
            self.run_ok("cistern", "save", *fleet, "--name", "rounded", "--six-digits")
            self.run_ok("cistern", "save", *fleet, "--to", here / "tuesday")
            expected = self.exported("--state", saved)
            self.assertGreater(expected[0], 0)
            self.assertNotEqual(int(expected[1], 16), 0)
            for flags in (fleet, ("--model", saved / "monday"), ("--model", here / "tuesday"),
                          ("--model", run)):
                with self.subTest(flags=flags):
                    self.assertEqual(self.exported(*flags), expected)
            published = self.run_ok("cistern", "publish", self.config, "--follow", saved, "--out",
                                    self.serving, "--once")
            self.assertIn("published 0 versions", published.out)  # it is a version of this training
            self.expect(run_program("cistern", "publish", self.config, "--follow", saved, "--out",
                                    self.serving, "--once", "--base-share", -1), 2, "-1 is not a share", "--base-share")
            self.assertEqual(self.exported("--model", saved / "rounded")[0], 0)
        memory = self.train("memory", "--durability", "none")
        self.assertEqual(self.exported("--model", memory)[0], 0)
        told = self.run_ok("cistern", "export", "onnx", self.config, "--model", memory, "--out",
                           self.folder / "network.onnx")
        self.assertIn("names no commit", told.err)
        told = self.run_ok("cistern", "export", "onnx", self.config, "--model", run, "--out",
                           self.folder / "network.onnx")
        self.assertNotIn("names no commit", told.err)

    def test_lower_precision_stays_close(self):
        run = self.train()
        expected = self.expected("--model", run)
        sizes = {}
        for precision, bound in (("float16", 2e-3), ("bfloat16", 2e-2), ("int8", 2e-2)):
            shutil.rmtree(self.serving, ignore_errors=True)
            sizes[precision] = self.export("--model", run, "--precision", precision)["bytes"]
            found = predictions_of(self.predict(self.serving))
            largest = max(abs(a - b) for a, b in zip(found, expected))
            self.assertLess(largest, bound, precision)
            self.assertGreater(largest, 0, precision)

    def test_a_precision_that_costs_too_much_is_not_served(self):
        run = self.train()
        check = self.export("--model", run, "--precision", "int8", "--check-data",
                            self.test_file)["check"]
        expected = self.expected("--model", run)
        found = predictions_of(self.predict(self.serving))
        largest = max(abs(a - b) for a, b in zip(found, expected))
        self.assertAlmostEqual(check["largest_difference"], largest, places=7)
        self.assertNotEqual(check["auc"], check["auc_float32"])
        before = self.published_name()
        refused = run_program("cistern", "export", "serving", self.config, "--model", run, "--out",
                              self.serving, "--precision", "int8", "--check-data", self.test_file,
                              "--max-auc-loss", -1)
        self.assertEqual(refused.code, 1, refused)
        self.assertIn("is not served", refused.err)
        self.assertEqual(self.published_name(), before)
        self.assertEqual([path.name for path in self.serving.iterdir() if path.is_dir()],
                         [before])

    def test_verify_online_names_what_was_served_wrongly(self):
        """Predictions of one training, checked against the state of another with other weights."""
        run = self.train("run", "--durability", "commit")
        other = self.train("other", "--durability", "commit", "--set",
                           "optimizer.adam_hparam.learning_rate=0.02")
        self.export("--state", other)
        _, dense, slots = self.samples[0]
        keys = [key for slot in slots for key in slot]
        offsets = [0]
        for slot in slots:
            offsets.append(offsets[-1] + len(slot))
        with Model(self.serving) as model:
            (prediction,), commit = model.predict(self.samples[:1])
        log = self.folder / "requests.jsonl"
        log.write_text(json.dumps({
            "commit": commit, "id": "r7", "samples": 1, "dense": dense,
            "inputs": [{"name": "data1", "keys": keys, "offsets": offsets}], "unseen_keys": 0,
            "probability": [prediction]}) + "\n")
        words = ("cistern", "verify", "online", log, "--serving", self.serving, "--state")
        good = self.run_ok(*words, other)
        self.assertIn("every prediction is the same, bit for bit", good.out)
        bad = run_program(*words, run)
        self.assertEqual(bad.code, 1, bad)
        self.assertRegex(bad.err, "line 1 .request 'r7', commit .*sample 0: ")
        self.assertRegex(bad.err, f"embedding 'deep', key {keys[0]}, weight 0: .* was served")

    def test_bad_requests_are_refused(self):
        self.export("--model", self.train())
        with Model(self.serving, "max_samples=10") as model:
            slots, dense = Samples.SLOTS, Samples.DENSE
            good = (1, [0.0] * dense, list(range(slots)), list(range(slots + 1)))
            model.predict_arrays(*good)
            inf = float("inf")
            for what, bad in {
                    "without samples": (0, [], [], [0]),
                    "11 samples": (11, [0.0] * 11 * dense, [], [0] * (11 * slots + 1)),
                    "dense features": (1, [0.0], good[2], good[3]),
                    "not a finite": (1, [inf] * dense, good[2], good[3]),
                    "offsets; 1 samples": (1, good[1], good[2], good[3][:-1]),
                    "the first offset": (1, good[1], good[2], [1] + good[3][1:]),
                    "below the one before": (1, good[1], good[2], [0, 3, 2, 3, 4]),
                    "but there are": (1, good[1], good[2], [0, 1, 2, 3, 400]),
            }.items():
                with self.subTest(what), self.assertRaisesRegex(ServeError, what) as refused:
                    model.predict_arrays(*bad)
                self.assertEqual(refused.exception.code, -1)
            with self.assertRaisesRegex(ServeError, "room for 3"):
                model.predict_arrays(*good, outputs=3)
            model.predict_arrays(*good)
            self.assertEqual(model.stats()["refused"], 9)
        for options in ("threads=0", "threads=x", "colour=red", "verify=2"):
            with self.assertRaisesRegex(ServeError, "expected threads"):
                Model(self.serving, options)
        with self.assertRaisesRegex(ServeError, "No such file"):
            Model(self.folder / "nothing")

    def test_unseen_keys_read_zeros(self):
        run = self.train()
        self.export("--model", run)
        unseen = [(0.0, [0.5, -0.5], [[10**6 + s] for s in range(Samples.SLOTS)])]
        empty = [(0.0, [0.5, -0.5], [[] for _ in range(Samples.SLOTS)])]
        with Model(self.serving) as model:
            self.assertEqual(model.predict(unseen)[0], model.predict(empty)[0])
            self.assertEqual(model.stats()["unseen_keys"], Samples.SLOTS)

    def test_a_c_program_compiles_against_the_header(self):
        program = self.folder / "program.c"
        program.write_text("""
            #include "cistern_serve.h"
            #include <stdio.h>
            int main(int argc, char** argv) {
              char error[200], json[2000];
              cistern_model* model = cistern_open(argv[1], NULL, error, sizeof(error));
              if (model == NULL) { puts(error); return 1; }
              cistern_describe(model, json, sizeof(json));
              puts(json);
              cistern_close(model);
              return 0;
            }""")
        library = BIN.parent / "lib"
        compiler = ["cc", "-std=c99", "-pedantic-errors", "-Wall", "-Werror", str(program)]
        subprocess.run([*compiler, f"-I{ROOT}/serve/library", f"-L{library}", "-lcistern_serve",
                        f"-Wl,-rpath,{library}", "-o", str(self.folder / "program")], check=True)
        self.export("--model", self.train())
        programs = [self.folder / "program"]
        installed = self.install()
        if shutil.which("pkg-config"):
            words = subprocess.run(
                ["pkg-config", "--cflags", "--libs", "cistern_serve"], check=True, text=True,
                capture_output=True, env={**os.environ, "PKG_CONFIG_PATH": f"{installed}/pkgconfig"},
            ).stdout.split()
            programs.append(self.folder / "by_pkg_config")
            subprocess.run([*compiler, *words, f"-Wl,-rpath,{installed}", "-o",
                            str(programs[-1])], check=True)
        programs.append(self.by_cmake(program, installed.parent))
        for executable in programs:
            done = subprocess.run([str(executable), str(self.serving)], check=True,
                                  capture_output=True, text=True)
            self.assertEqual(json.loads(done.stdout)["inputs"], [{"name": "data1", "slots": 4}])
        failed = subprocess.run([str(programs[0]), "nowhere"], check=False, capture_output=True,
                                text=True)
        self.assertIn("nowhere", failed.stdout)

    def install(self):
        """Installs the library, moves it, and returns the folder of the shared object."""
        first, moved = self.folder / "first", self.folder / "moved"
        subprocess.run(["cmake", "--install", str(BIN.parent / "serve" / "library"), "--prefix",
                        str(first)], check=True, stdout=subprocess.DEVNULL)
        first.rename(moved)
        (found,) = moved.rglob("libcistern_serve.so")
        return found.parent

    def by_cmake(self, program, prefix):
        project = self.folder / "project"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(f"""
            cmake_minimum_required(VERSION 3.20)
            project(test C)
            find_package(cistern_serve 0.1 REQUIRED)
            add_executable(by_cmake {program})
            target_link_libraries(by_cmake cistern::cistern_serve)""")
        subprocess.run(["cmake", "-S", str(project), "-B", str(project / "build"),
                        f"-DCMAKE_PREFIX_PATH={prefix}"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cmake", "--build", str(project / "build")], check=True,
                       stdout=subprocess.DEVNULL)
        return project / "build" / "by_cmake"


if __name__ == "__main__":
    unittest.main(verbosity=2)
