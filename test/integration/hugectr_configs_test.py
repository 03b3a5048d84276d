"""Model files like those of HugeCTR 2.3: each one is dry-run, trained, resumed and evaluated."""

import json
import math
import unittest

import hugectr_models
from programs import ProgramTest, run


def area(pairs):
    """The share of (positive, negative) pairs in the right order; ties count half."""
    ones = [score for label, score in pairs if label > 0.5]
    zeros = [score for label, score in pairs if -0.5 <= label <= 0.5]
    right = sum((one > zero) + (one == zero) / 2 for one in ones for zero in zeros)
    return right / (len(ones) * len(zeros))


def pieces(layer):
    """The names of the layers that a layer of the file is: an MLP is several."""
    if layer["type"] != "MLP":
        return [layer["name"]]
    count = len(layer["mlp_param"]["num_outputs"])
    names = [*(f"{layer['top']}_{i}" for i in range(1, count)), layer["top"]]
    return [piece for name, activation in zip(names, layer["mlp_param"]["activations"])
            for piece in ([f"{name}_product", name] if activation == "Relu" else [name])]


class HugeCtrConfigs(ProgramTest):
    """CISTERN_KEEP_FILES=1 keeps models and data."""

    SAMPLES = 300

    def write(self, name):
        """Writes the model file as a user has it, with paths to data that does not exist."""
        self.content = hugectr_models.ALL[name]()
        self.config.write_text(json.dumps(self.content, indent=1), encoding="utf-8")

    def small(self, name):
        """Flags that make a production-size model train in seconds on data of this test: Raw if the
        model file says Raw, else Norm (the standard library cannot write Parquet)."""
        train, test = self.folder / f"{name}.train.data", self.folder / f"{name}.test.data"
        raw = self.content["layers"][0].get("format") == "Raw"
        write = hugectr_models.write_raw if raw else hugectr_models.write_norm
        write(train, self.content, self.SAMPLES, seed=1)
        write(test, self.content, self.SAMPLES // 3, seed=2)
        values = {"layers.0.source": train, "layers.0.eval_source": test,
                  "solver.batchsize": 32, "solver.eval_interval": 25, "solver.eval_batches": 3,
                  "solver.display": 25}
        if raw:
            values.update({"layers.0.num_samples": self.SAMPLES,
                           "layers.0.eval_num_samples": self.SAMPLES // 3})
        else:
            values.update({"layers.0.format": "Norm", "layers.0.check": "Sum"})
        return [word for path, value in values.items() for word in ("--set", f"{path}={value}")]

    def train(self, name, iterations, *more):
        return self.run_ok("cistern", "train", self.config, "--out", self.folder / f"run.{name}",
                           "--json", "--embedded-servers", 2, "--threads", 1,
                           "--set", f"solver.max_iter={iterations}", *self.small(name), *more)

    def check(self, name):
        self.write(name)
        first = self.train(name, 30).json()
        self.assertEqual(first["iterations"], 30)
        rest = self.train(name, 50, "--resume").json()
        self.assertEqual((rest["resumed_from"], rest["iterations"]), (30, 50))
        self.assertTrue(math.isfinite(rest["loss"]), rest)
        self.assertGreater(rest["rows"], 0)
        self.assertGreater(rest["auc"], 0.3)
        self.check_trained_model(name, rest["auc"])
        print(f"{name}: {1000 * first['seconds'] / 30:.1f} ms an iteration, auc {rest['auc']:.4f}")

    def check_trained_model(self, name, auc):
        """Uses the trained model in every way, each time with the flags of its training."""
        model, small = self.folder / f"run.{name}", self.small(name)
        data = self.folder / f"{name}.test.data"
        output, prefix = self.folder / f"{name}.tsv", self.folder / f"{name}.files"
        shown = self.run_ok("cistern", "eval", self.config, "--model", model, "--json", *small).json()
        self.assertEqual(shown["samples"], self.SAMPLES // 3)
        self.assertAlmostEqual(shown["auc"], auc, delta=0.1)  # `auc`: on the first three batches
        self.run_ok("cistern", "predict", self.config, "--model", model, "--data", data, "--output",
                    output, *small)
        lines = output.read_text(encoding="utf-8").splitlines()
        self.assertEqual(len(lines), self.SAMPLES // 3)
        serving = self.folder / f"{name}.serving"
        self.run_ok("cistern", "export", "serving", self.config, "--model", model, "--out", serving, *small)
        self.run_ok("cistern", "predict", serving, "--data", data, "--output", output, "--batch", 7)
        self.assertEqual(output.read_text(encoding="utf-8").splitlines(), lines)  # the same bits
        self.run_ok("cistern", "export", "hugectr", self.config, "--model", model, "--out", prefix,
                    *small)
        dense = self.folder / f"{name}.files_dense_0.model"
        self.assertGreater(dense.stat().st_size, 0)
        planned = self.run_ok("cistern", "plan", self.config, "--json").json()
        self.assertTrue(planned)

    def test_masked_labels_have_no_metrics(self):
        for name in ("several_labels", "two_classes"):
            with self.subTest(name):
                self.write(name)
                self.train(name, 20)
                small, output = self.small(name), self.folder / f"{name}.tsv"
                shown = self.run_ok("cistern", "predict", self.config, "--model",
                                    self.folder / f"run.{name}", "--output", output, "--json",
                                    "--data", self.folder / f"{name}.test.data", *small).json()
                words = output.read_text(encoding="utf-8").split()
                pairs = [(float(label), float(score))
                         for label, score in zip(words[::2], words[1::2])]
                masked = sum(label < -0.5 for label, _ in pairs)
                self.assertEqual(masked > 0, name == "several_labels")
                self.assertAlmostEqual(shown["auc"], area(pairs), places=6)

    def test_dry_run_shows_the_graph_without_any_data(self):
        for name, make in hugectr_models.ALL.items():
            with self.subTest(name):
                self.write(name)
                shown = self.run_ok("cistern", "train", self.config, "--dry-run", "--json").json()
                layers = [one["name"] for one in shown["layers"]]
                self.assertEqual(layers, [name for one in make()["layers"][1:] for name in pieces(one)])
                self.assertGreater(shown["dense_parameters"], 0)
                self.assertGreater(shown["step_bytes"], 0)
                self.assertGreaterEqual(shown["tables"][0]["server_bytes_per_row"], 8)

    def test_dry_run_prints_text(self):
        self.write("dlrm_fp16")
        shown = self.run_ok("cistern", "train", self.config, "--dry-run")
        self.assertRegex(shown.out, r"interaction1 +Interaction +fc3 sparse_embedding1 +\[b, 480\]")
        self.assertRegex(shown.out, r"fc4 +FusedInnerProduct +interaction1 +\[b, 1024\] +492544")
        self.assertIn("memory of a step", shown.out)
        self.assertIn("FusedInnerProduct is InnerProduct followed by ReLU", shown.err)
        self.assertRegex(shown.out, r"activations +float16, loss scale 1024")

    def test_oddities_of_real_files_are_accepted(self):
        self.write("two_embeddings")
        shown = self.run_ok("cistern", "train", self.config, "--dry-run", "--json").json()
        dead = [one["name"] for one in shown["layers"] if not one["live"]]
        self.assertEqual(dead, ["fc1", "relu1", "multiply1"])
        self.write("criteo")
        shown = self.run_ok("cistern", "train", self.config, "--dry-run", "--json").json()
        self.assertEqual(shown["tables"][0]["embedding_vec_size"], 64)

    def test_train_requires_out(self):
        self.write("criteo")
        self.expect(run("cistern", "train", self.config), 2, "--out is required", "--dry-run")

    def test_wrong_graphs_are_refused_with_layer_and_shapes(self):
        self.write("dlrm")
        layers = self.content["layers"]
        named = {one["name"]: index for index, one in enumerate(layers)}
        for change, message in {
                "layers.fc4.type=InnerProdct": "did you mean 'InnerProduct'?",
                "layers.fc3.fc_param.num_output=64":
                    "bottoms 'relu3' [b, 64] and 'sparse_embedding1' [b, 26, 128] must have the "
                    "same first and last dimension",
                "layers.fc1.bottom=relu2":
                    "bottom 'relu2' closes a cycle: relu2 <- fc2 <- relu1 <- fc1 <- relu2",
                "layers.fc1.bottom=dens": "bottom 'dens' is not defined; did you mean 'dense'?",
                "layers.fc1.num_output=3": f"layers[{named['fc1']}].num_output: unknown key",
        }.items():
            with self.subTest(change):
                self.expect(run("cistern", "train", self.config, "--dry-run", "--set", change), 2,
                            message)


def add_training_test(name):
    setattr(HugeCtrConfigs, f"test_{name}_trains_and_resumes", lambda self: self.check(name))


for each in hugectr_models.ALL:
    add_training_test(each)


if __name__ == "__main__":
    unittest.main()
