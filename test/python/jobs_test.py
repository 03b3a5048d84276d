"""The trainer, exports, serving and commits from Python: the bits of the programs."""

import contextlib
import copy
import json
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import numpy as np

import cistern_ps as cs
from cistern_ps import programs
from program import run_cistern


def click_log(folder, samples=2000):
    """A small data set whose labels depend on its keys."""
    rng = np.random.default_rng(11)
    a, b = rng.integers(0, 40, samples), rng.integers(40, 60, samples)
    label = (rng.random(samples) < np.where((a + b) % 3 == 0, 0.8, 0.2)).astype(int)
    path = pathlib.Path(folder)
    (path / "in.csv").write_text("label,a,b\n" + "".join(f"{l},{x},{y}\n" for l, x, y in zip(label, a, b)))
    run_cistern("data", "convert", "--input", str(path / "in.csv"), "--out", str(path / "data"), "--label",
                "label", "--keys", "raw", "--key-bits", "32")
    return path / "data" / "file_list.txt"


def small_model(source, epochs=2):
    m = cs.model.Model(optimizer=cs.Adam(lr=0.01), name="clicks", batchsize=100, batchsize_eval=100, num_epochs=epochs,
                       seed=3, input_key_type="I32")
    m.data(source, {"features": 2}, eval_source=source)
    x = m.reshape(m.embedding("features", 4), 8)
    m.loss(m.fc(m.relu(m.fc(x, 16)), 1))
    return m


def digests_of(run):
    return {t["name"]: t["digest"] for t in cs.commits(run.state)[-1]["tables"]}


class Jobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.source = click_log(cls.folder)
        cls.model = small_model(cls.source)
        cls.run_ = cs.train(cls.model, out=cls.folder / "run")

    def test_a_run_knows_its_results(self):
        run = self.run_
        self.assertEqual((run.iterations, run.samples), (40, 4000))
        self.assertGreater(run.auc, 0.6)
        self.assertEqual(run.events[-1]["event"], "final")
        self.assertIn("AUC 0.", repr(run))
        with self.assertRaises(AttributeError):
            run.nonsense

    def test_a_memory_limit_changes_no_bit(self):
        run = cs.train(self.model, out=self.folder / "limited", memory_limit_mb=1e-6)
        self.assertEqual(digests_of(run), digests_of(self.run_))
        with self.assertRaisesRegex(cs.UsageError, "memory_limit_mb"):
            cs.train(self.model, out=self.folder / "negative", memory_limit_mb=-1)

    def test_metrics_are_a_frame(self):
        try:
            import pandas  # noqa: F401
        except ImportError:
            self.skipTest("pandas is missing")
        frame = self.run_.metrics
        self.assertEqual(frame[frame.event == "final"].auc.tolist(), [self.run_.auc])

    def test_file_builder_dict_and_fleet_train_the_same_bits(self):
        self.model.save(self.folder / "clicks.json")
        program = subprocess.run(
            [programs.find("cistern"), "train", str(self.folder / "clicks.json"), "--out", str(self.folder / "program")],
            stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.assertEqual(program.returncode, 0)
        expected = {t["name"]: t["digest"] for t in cs.commits(self.folder / "program" / "state")[-1]["tables"]}
        self.assertEqual(digests_of(self.run_), expected)
        by_dict = cs.train(self.model.to_dict(), out=self.folder / "dict", embedded_servers=2)
        self.assertEqual(digests_of(by_dict), expected)
        with cs.local(servers=3) as fleet:
            cs.train(self.folder / "clicks.json", fleet=fleet)
            self.assertEqual({k: f"{v:016x}" for k, v in fleet.digests().items()}, expected)
            self.assertEqual(len(fleet.table("embedding1")), 60)

    def test_settings_replace_values(self):
        run = cs.train(self.model, out=self.folder / "set", set={"solver.num_epochs": 1, "solver.seed": 9})
        self.assertEqual(run.epochs, 1)
        self.assertNotEqual(digests_of(run), digests_of(self.run_))

    def test_progress_gets_each_line(self):
        lines = []
        cs.train(self.model, out=self.folder / "progress", progress=lines.append)
        self.assertTrue(any(line.startswith("event=final") for line in lines), lines)

    def test_evaluate_and_predict_agree_with_the_run(self):
        score = cs.evaluate(self.run_)
        self.assertAlmostEqual(score["auc"], self.run_.auc, places=12)
        label, prediction = cs.predict(self.run_, data=self.source)
        self.assertEqual((label.shape, prediction.dtype), ((2000,), np.float32))
        self.assertEqual(set(label), {0.0, 1.0})
        p = np.clip(prediction.astype(np.float64), 1e-12, 1 - 1e-12)
        loss = -np.mean(np.where(label == 1, np.log(p), np.log(1 - p)))
        self.assertAlmostEqual(loss, score["logloss"], places=5)

    def test_a_fleet_is_exported_with_the_model_beside_its_state(self):
        with cs.local(self.folder / "run") as fleet:
            cs.export(fleet, self.folder / "of_fleet", form="cistern")
            number = cs.commits(fleet)[-1]["commit"]
        self.assertEqual(cs.serve.open(self.folder / "of_fleet", threads=1).commit, number)
        with cs.local(self.folder / "no_model") as fleet, self.assertRaisesRegex(cs.UsageError, "needs config"):
            cs.export(fleet, self.folder / "nothing")

    def test_an_export_predicts_the_same_bits(self):
        cs.export(self.run_, self.folder / "serving", rows="float32")
        served = cs.serve.open(self.folder / "serving", threads=1)
        data = cs.data.norm(self.source, slots=2, batch=300)
        answers = [served.predict(b) for b in data]
        np.testing.assert_array_equal(np.concatenate([np.asarray(a) for a in answers]),
                                      cs.predict(self.run_, data=self.source)[1])
        self.assertEqual(answers[0].commit, served.commit)
        self.assertIn("features with 2 slots", repr(served))
        batch = next(iter(data))
        for copied in (pickle.loads(pickle.dumps(served)), copy.deepcopy(served)):  # for workers of joblib, Spark, Ray
            np.testing.assert_array_equal(np.asarray(copied.predict(batch)), np.asarray(served.predict(batch)))
        batch.inputs[0] = (batch.keys, batch.offsets[:-1].copy())
        with self.assertRaises(cs.UsageError):
            served.predict(batch)
        for wrong in (None, 5, [{"a": 1}, 5]):
            with self.assertRaisesRegex(TypeError, "batch: expected .*rows.*; got "):
                served.predict(wrong)
        row = {"a": 1, "b": 41}
        self.assertEqual(served.predict(row).probabilities.tolist(), cs.predict(self.run_, data=row)[1].tolist())

    def test_weights_of_keys_are_predicted(self):
        folder = self.folder / "weighted"
        folder.mkdir()
        rng = np.random.default_rng(5)
        rows = [(f"u{rng.integers(5)}", [(f"t{rng.integers(9)}", float(rng.choice([0.5, -1, 2, 0.25]))) for _ in range(rng.integers(4))])
                for _ in range(400)]
        clicks = [int(sum(w for _, w in tags) > 0.3) for _, tags in rows]
        (folder / "clicks.csv").write_text("click,user,tags\n" + "".join(
            f"{c},{u},{'|'.join(f'{t}:{w}' for t, w in tags)}\n" for c, (u, tags) in zip(clicks, rows)))
        run = cs.train(folder / "clicks.csv", out=folder / "run", table={"key_weights": ["tags"], "label": "click"})
        cs.export(run, folder / "served", rows="float32")
        served = cs.serve.open(folder / "served", threads=1)
        self.assertEqual(served.shape["key_weights"], ["slots"])
        data = cs.data.norm(folder / "run/data/train/file_list.txt", slots=2, wide_keys=True, key_weights=True, batch=64)
        found = np.concatenate([np.asarray(served.predict(b)) for b in data])
        np.testing.assert_array_equal(found, cs.predict(run, data=folder / "run/data/train/file_list.txt")[1])
        batch = next(iter(data))
        for weights, error in ((None, "each key of this input has a weight"), ([batch.key_weights[0][1:].copy()], "weights for"),
                               ([None, None], "2 of them for 1 inputs"), ([batch.key_weights[0] * np.nan], "not a finite number")):
            batch.key_weights = weights
            with self.assertRaisesRegex(cs.UsageError, error):
                served.predict(batch)

    def test_commits_can_be_compared_and_verified(self):
        commits = cs.commits(self.run_.state)
        self.assertTrue(commits and all(c["whole"] for c in commits))
        self.assertEqual(cs.verify(self.run_.state)["faults"], [])
        same = cs.diff(self.run_.state, self.run_.state)
        self.assertTrue(same["same"])
        numbers = [c["commit"] for c in commits[-2:]]
        found = cs.diff(f"{self.run_.state}@{numbers[0]}", f"{self.run_.state}@{numbers[1]}", rows=3)
        self.assertFalse(found["same"])
        self.assertGreater(found["tables"][0]["changed"], 0)
        self.assertNotIn("error", found)
        with self.assertRaisesRegex(cs.Error, "no_such"):
            cs.diff(self.run_.state, self.folder / "no_such")
        self.assertEqual({t["name"] for t in same["tables"]}, {"embedding1", "dense"})

    def test_increments_hold_what_changed(self):
        import numpy as np

        numbers = [c["commit"] for c in cs.commits(self.run_.state)[-2:]]
        before, after = (f"{self.run_.state}@{number}" for number in numbers)
        folder = self.folder / "changes"
        saved = cs.save_changes(after, numbers[0], folder, format="binary", gzip=True)
        found = cs.diff(before, after, rows=1000)["tables"][0]
        self.assertEqual((saved["from"]["commit"], saved["to"]["commit"]), tuple(numbers))
        keys, weights, removed = cs.read_changes(folder)["embedding1"]
        self.assertEqual(len(removed), 0)
        self.assertLessEqual(set(found["changed_keys"] + found["added_keys"]), set(keys.tolist()))
        self.assertEqual(weights.shape, (len(keys), weights.shape[1]))
        with cs.local(str(self.run_.out)) as fleet:  # its newest commit
            table = cs.Table(fleet, "embedding1")
            np.testing.assert_array_equal(table.pull(keys), weights)
        joined = self.folder / "joined"
        self.assertEqual(cs.apply_changes(before, [folder], joined)["applied"], 1)
        self.assertTrue(cs.diff(joined, after)["same"])
        with self.assertRaisesRegex(cs.Error, "already exists"):
            cs.apply_changes(before, folder, joined)
        with self.assertRaisesRegex(cs.UsageError, "format='csv'"):
            cs.save_changes(after, numbers[0], self.folder / "csv", format="csv")
        with self.assertRaisesRegex(cs.Error, "holds no increment"):
            cs.read_changes(self.folder / "run")

    def test_plan_knows_the_tables(self):
        planned = cs.plan(self.model, rows={"embedding1": 1e3}, servers=2)["tables"][0]
        self.assertEqual((planned["name"], planned["rows"], planned["rows_from"]), ("embedding1", 1000, "given"))
        self.assertEqual(cs.plan(self.run_.out)["tables"][0]["rows"], 60)  # the distinct keys of the data
        with self.assertRaisesRegex(cs.UsageError, r"no table 'embeding1'; did you mean 'embedding1'\? \(rows=\)"):
            cs.plan(self.model, rows={"embeding1": 5})
        with self.assertRaisesRegex(TypeError, "rows.*expected an integer; got str"):
            cs.plan(self.model, rows={"embedding1": "many"})

    def test_jobs_without_training_start_no_program(self):
        with mock.patch.object(subprocess, "Popen", side_effect=AssertionError("a program was started")):
            cs.plan(self.model)
            self.assertTrue(cs.commits(self.run_.state)[-1]["whole"])
            cs.verify(self.run_.state)
            self.assertTrue(cs.diff(self.run_.state, self.run_.state)["same"])
            files = {}
            for form in ("serving", "hugectr", "onnx", "dnn_plugin"):
                cs.export(self.run_, self.folder / "forms" / form, form=form)
                files[form] = {path.name for path in (self.folder / "forms").glob(form + "*")}
        self.assertIn("hugectr_dense_0.model", files["hugectr"])
        self.assertEqual(files["onnx"], {"onnx", "onnx.json"})

    def test_options_of_exports_are_checked(self):
        out = self.folder / "refused"
        for kind, message, options in [
            (cs.UsageError, "form='serving' has no option 'keap'; did you mean 'keep'", {"keap": 3}),
            (cs.UsageError, "form='hugectr' has no option 'precision'", {"form": "hugectr", "rows": "int8"}),
            (cs.UsageError, "precision='int9': expected one of float32, float16", {"rows": "int9"}),
            (cs.UsageError, "form='pickle': expected one of serving, hugectr", {"form": "pickle"}),
            (TypeError, "keep: expected an integer of 0 or more; got str", {"keep": "three"}),
            (TypeError, "check_data: expected a path, or a sequence of paths; got int", {"check": 3}),
            (cs.UsageError, r"\(max_auc_loss=, check_data=\)", {"max_auc_loss": 0.1}),
            (cs.UsageError, "accessor ctr", {"form": "cache"}),
        ]:
            with self.subTest(message), self.assertRaisesRegex(kind, message):
                cs.export(self.run_, out, **options)
        self.assertFalse(out.exists())

    def test_jobs_say_how_far_they_are_and_end_when_that_raises(self):
        lines = []
        cs.verify(self.run_.state, progress=lines.append)
        self.assertRegex(lines[-1], r"event=verifying done=(\d+) total=\1 unit=files and tables")
        with self.assertRaisesRegex(RuntimeError, "enough"):
            cs.diff(self.run_.state, self.run_.state, progress=mock.Mock(side_effect=RuntimeError("enough")))

    def test_status_reports_each_server_although_one_is_down(self):
        with cs.servers.start(2) as servers:
            status = cs.status(servers.addresses)
            self.assertEqual([server["state"] for server in status["servers"]], ["ready", "ready"])
            first = servers.addresses.split(",")[0]
            with self.assertRaisesRegex(cs.UnreachableError, "1 of 2 servers") as caught:
                cs.status(first + ",127.0.0.1:1")
            self.assertEqual([server["state"] for server in caught.exception.report["servers"]], ["ready", "down"])

    def test_a_damaged_commit_is_reported(self):
        state = self.folder / "damaged"
        shutil.copytree(self.run_.state, state)
        file = max((state / "data").iterdir())
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
        with self.assertRaisesRegex(cs.CheckpointError, file.name) as caught:
            cs.verify(state)
        self.assertIn("restore the named files", caught.exception.fix)
        self.assertIn(file.name, caught.exception.report["faults"][0])

    def test_errors_of_programs_keep_their_class_fix_and_code(self):
        with self.assertRaisesRegex(cs.UsageError, "did you mean 'batchsize'") as caught:
            cs.train(self.model, out=self.folder / "x", set={"solver.batchsiz": 2})
        self.assertEqual(caught.exception.exit_code, 2)
        with self.assertRaises(cs.UsageError) as caught:
            cs.train(self.model, out=self.folder / "run")
        self.assertIn("overwrite it", caught.exception.fix)
        self.assertIn("overwrite=", str(caught.exception))
        with self.assertRaisesRegex(cs.UsageError, "batchsiz"), cs.local() as fleet:
            cs.train(self.model, fleet=fleet, set={"solver.batchsiz": 2})

    def test_ctrl_c_ends_a_training_on_a_fleet_of_this_process(self):
        program = f"""
import sys, time
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
import cistern_ps as cs, jobs_test
fleet = cs.local()
try:
    cs.train(jobs_test.small_model({str(self.source)!r}, epochs=100000), fleet=fleet, progress=lambda t: print(t, flush=True),
             set={{"solver.display": 20, "cistern.pass_memory_mb": 1}})
except KeyboardInterrupt:
    print("rows", len(fleet.table("embedding1")), flush=True)
    sys.exit(7)
"""
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        while "iter=" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.stdout.read().splitlines()[-1], "rows 60")
        self.assertEqual(process.wait(), 7)

    def test_ctrl_c_saves_a_training_that_resume_ends(self):
        out = self.folder / "interrupted"
        program = f"""
import sys
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
import cistern_ps as cs, jobs_test
def line(text):
    print(text, flush=True)
try:
    cs.train(jobs_test.small_model({str(self.source)!r}, epochs=2000), out={str(out)!r},
             set={{"cistern.pass_memory_mb": 1, "solver.display": 20}}, progress=line)
except KeyboardInterrupt:
    sys.exit(7)
"""
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        while "iter=" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        self.assertEqual(process.wait(), 7)
        self.assertTrue(cs.commits(out / "state"))
        run = cs.train(small_model(self.source, epochs=2000), out=out, resume=True,
                       set={"cistern.pass_memory_mb": 1, "solver.max_iter": 40, "solver.num_epochs": 0,
                            "solver.display": 20})
        self.assertIsNotNone(run.resumed_from)


class Tables(unittest.TestCase):
    """Text becomes models and data in this process."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.table = cls.write("a.csv", range(600))

    @classmethod
    def write(cls, name, rows):
        path = cls.folder / name
        path.write_text("click,user,price\n" + "".join(f"{i % 4 == 0:d},u{i * 7 % 19},{i * 37 % 101}.5\n" for i in rows))
        return path

    def test_a_table_is_trained_and_continued_to_the_bits_of_the_program(self):
        with mock.patch.object(subprocess, "Popen", side_effect=AssertionError("a process was started")):
            lines = []
            run = cs.train([self.table, self.write("b.csv", range(600, 900))], out=self.folder / "py", threads=1,
                           set={"solver.num_epochs": 1}, table={"label": "click", "model": "lr"}, progress=lines.append)
            self.assertEqual(pathlib.Path(run.config), self.folder / "py" / "model.json")
            self.assertRegex("\n".join(lines), "note: label 'click', 1 slots, . dense features, 900 rows\n(.*\n)*event=converting_train ")
            again = cs.train(run, more=self.write("day2.csv", range(1, 400)), threads=1, set={"solver.num_epochs": 1},
                             table={"negative_rate": 1})
        self.assertGreater(again.samples, 300)
        one = ["--threads", "1", "--set", "solver.num_epochs=1"]
        program = [str(self.folder / name) for name in ("a.csv", "b.csv", "cli", "day2.csv")]
        run_cistern("train", *program[:2], "--out", program[2], "--label", "click", "--model", "lr", *one)
        run_cistern("train", program[2], "--resume", "--more", program[3], *one)
        self.assertEqual(digests_of(again), {t["name"]: t["digest"] for t in cs.commits(self.folder / "cli/state")[-1]["tables"]})

    def test_init_and_convert_make_what_train_reads(self):
        with mock.patch.object(subprocess, "Popen", side_effect=AssertionError("a process was started")):
            out = self.folder / "made"
            facts = cs.init(self.table, out, label="click", dense="price", sparse=["user"])
            self.assertEqual((facts["rows"], facts["columns"][1]["role"], facts["model"]), (600, "slot", str(out / "model.json")))
            parts = [cs.data.convert(self.table, out / "data" / part, recipe=out, part=part) for part in ("train", "test")]
        self.assertEqual(sum(part["samples"] for part in parts), 600)
        self.assertEqual(cs.train(out / "model.json", out=self.folder / "from-made", set={"solver.num_epochs": 1}).samples,
                         parts[0]["samples"])

    def test_rows_in_memory_are_predicted_as_those_of_a_file(self):
        run = cs.train(self.table, out=self.folder / "rows", threads=1, set={"solver.num_epochs": 1}, table={"label": "click"})
        run_cistern("predict", str(run.out), "--input", str(self.table), "--keep", "user", "--output", str(self.folder / "p.csv"))
        lines = [line.split(",") for line in (self.folder / "p.csv").read_text().splitlines()[1:]]
        expected = np.float32([float(prediction) for _, prediction in lines])
        label, probability = cs.predict(run, data=self.table, output=self.folder / "q.csv", keep="user")
        self.assertEqual((self.folder / "q.csv").read_text(), (self.folder / "p.csv").read_text())
        np.testing.assert_array_equal(probability, expected)
        self.assertEqual(label.tolist(), [float(i % 4 == 0) for i in range(600)])
        cs.export(run.out, self.folder / "rows-serving", rows="float32")
        np.testing.assert_array_equal(cs.predict(self.folder / "rows-serving", data=self.table)[1], expected)
        served = cs.serve.open(self.folder / "rows-serving", threads=1)
        with self.assertRaisesRegex(cs.UsageError, "more samples than max_samples of cs.serve.open"):
            cs.serve.open(self.folder / "rows-serving", threads=1, max_samples=599).predict(self.table)
        rows = [dict(zip(("click", "user", "price"), line.split(","))) for line in self.table.read_text().splitlines()[1:]]
        columns = {name: [row[name] for row in rows] for name in ("user", "price")}
        columns["price"] = np.array(columns["price"], dtype=float)
        data = {"rows": rows, "columns": columns, "generator": lambda: iter(rows),
                "upper case": [{name.upper(): value for name, value in row.items()} for row in rows]}
        with contextlib.suppress(ImportError):
            import pandas as pd

            frame = pd.read_csv(self.table)
            mixed = frame.astype(object)
            mixed.loc[5, "price"] = str(mixed.loc[5, "price"])
            data.update(pandas=frame, category=frame.astype({"user": "category"}), mixed=mixed, indexed=frame.set_index(frame.index + 5),
                        named_index=frame.set_index("user"), record=frame.to_records(index=False))
            self.assertEqual(cs.predict(run, data=frame.iloc[0])[1].tolist(), [expected[0]])
        with contextlib.suppress(ImportError):
            import pyarrow.csv

            table = pyarrow.csv.read_csv(self.table)
            data.update(arrow=table, batch=table.combine_chunks().to_batches()[0], reader=table.to_reader)
        for name, one in data.items():
            with self.subTest(name):
                give = one if callable(one) else lambda one=one: one  # some can be read once
                label, probability = cs.predict(run, data=give())
                np.testing.assert_array_equal(probability, expected)
                self.assertEqual(label is None, name == "columns")
                answer = served.predict(give())
                np.testing.assert_array_equal(answer, expected)
                self.assertEqual((answer.commit, answer.unseen_keys), (served.commit, 0))
        self.assertEqual(cs.predict(run, data={"user": rows[0]["user"], "price": 0.5})[1].tolist(), [expected[0]])
        self.assertEqual(cs.predict(run, data={"user": [rows[0]["user"]], "price": 0.5})[1].shape, (1,))  # a field of several values
        less = [{"click": row["click"], "price": row["price"]} for row in rows]
        for call in (lambda **options: cs.predict(run, data=less, **options)[1], lambda **options: served.predict(less, **options)):
            with self.assertRaisesRegex(cs.UsageError, r"no column 'user'.*\(add_column=user\)"):
                call()
            np.testing.assert_array_equal(call(add_column="user"), cs.predict(run, data=[{**row, "user": None} for row in rows])[1])
        self.assertEqual(cs.evaluate(run, data=less, add_column=["user"])["samples"], 600)
        self.assertEqual([len(part) for part in cs.predict(run, data=self.write("none.csv", []))], [0, 0])
        self.assertEqual(len(served.predict(self.write("none.csv", []))), 0)
        self.assertEqual(cs.evaluate(run, data=rows), {**cs.evaluate(run, data=self.table), "seconds": mock.ANY})
        for wrong, error, message in (
                (columns, cs.UsageError, "has no labels, so there is nothing to evaluate"),
                ([], cs.UsageError, "data: an empty list"),
                (5, TypeError, "data: expected paths, a data frame, or rows as dicts; got int"),
                ([{"user": "a"}, 5], TypeError, "got a row of int"),
                ({"user": ["a", "b"], "price": [1]}, ValueError, "columns of different lengths"),
                (np.zeros((2, 2)), TypeError, "name its columns: pandas.DataFrame"),
                ([{"click": 1, "price": 1}], cs.UsageError, "^data: .*there is no column 'user'.*: rename it")):
            with self.subTest(message), self.assertRaisesRegex(error, message):
                cs.evaluate(run, data=wrong)
        with self.assertRaisesRegex(cs.UsageError, r"is an input file and would be replaced: name another file \(output=\)"):
            cs.predict(run, data=self.table, output=self.table)

    def test_a_data_frame_is_trained_as_its_file_is(self):
        try:
            import pandas as pd
        except ImportError:
            self.skipTest("needs pandas")
        options = {"threads": 1, "set": {"solver.num_epochs": 1}, "table": {"label": "click"}}
        of_file = cs.train(self.table, out=self.folder / "of-file", **options)
        of_frame = cs.train(pd.read_csv(self.table), out=self.folder / "of-frame", **options)
        self.assertEqual(digests_of(of_frame), digests_of(of_file))
        more = {"threads": 1, "set": {"solver.num_epochs": 1}}
        day = self.write("frame-day2.csv", range(1, 400))
        self.assertEqual(digests_of(cs.train(of_frame, more=pd.read_csv(day), **more)), digests_of(cs.train(of_file, more=day, **more)))
        self.assertEqual(cs.init(pd.read_csv(self.table), self.folder / "of-init", label="click")["rows"], 600)

    def test_errors_name_keywords(self):
        for call, message, fix in (
                (lambda: cs.init(self.table, self.folder / "no", label="clck"), "there is no column 'clck'", ""),
                (lambda: cs.init(self.table, self.folder / "no", model="deepfmm"), r"'deepfmm' \(model=\)", "deepfm"),
                (lambda: cs.init(self.table, self.folder / "no", labels="click"), "init has no option 'labels'; did you mean", ""),
                (lambda: cs.init(self.table, self.folder / "no", delimiter="xx"), r"one character.*\(delimiter=\)", ""),
                (lambda: cs.init(self.folder / "missing.csv", self.folder / "no"), "missing.csv: No such file", ""),
                (lambda: cs.train(self.table, out=self.folder / "no", resume=True), r"not a run to resume \(resume=, more=\)", ""),
                (lambda: cs.train(self.table, out=self.folder / "no", table={"keys": "raw"}), "train has no option 'keys'", ""),
                (lambda: cs.data.convert(self.table, self.folder / "no", label="clck"), r"no column 'clck'.*", ""),
                (lambda: cs.data.convert(self.table, self.folder / "no", format="cvs"), "format='cvs': expected one of csv, tsv", ""),
                (lambda: cs.data.convert(self.table, self.folder / "no", label="click", key_bits=33), r"\(key_bits=\)", ""),
                (lambda: cs.data.convert(self.folder / "missing.csv", self.folder / "no"), "missing.csv", "")):
            with self.subTest(message), self.assertRaisesRegex(cs.UsageError, message) as caught:
                call()
            self.assertIn(fix, caught.exception.fix)
        self.assertFalse((self.folder / "no").exists())
        with self.assertRaisesRegex(cs.DataError, "line 2.*'0.5' is not an integer|keys=hash"):
            cs.data.convert(self.table, self.folder / "no", label="click", keys="raw")
        with self.assertRaisesRegex(TypeError, "min_count: expected an integer"):
            cs.data.convert(self.table, self.folder / "no", min_count="many")
        with self.assertRaisesRegex(cs.UsageError, "fleet="), cs.local() as fleet:
            cs.train(self.table, fleet=fleet)


if __name__ == "__main__":
    unittest.main()
