"""cistern export onnx: onnxruntime predicts what cistern predict does. NumPy makes its inputs.

    CISTERN_BIN=build/release/bin test/integration/onnx_export_test.py

Uses the installed onnxruntime, or the one that scripts/test.sh installs with pip into
build/onnxruntime. Exit code 77 (skipped) if there is neither.
"""

import json
import pathlib
import re
import sys
import unittest

import hugectr_models
from hugectr_models import data, embedding, fc, layer, loss, sparse
from programs import ROOT, ProgramTest, Servers, run

sys.path.append(str(ROOT / "build" / "onnxruntime"))
try:
    import numpy as np
    import onnxruntime
    from pooled_samples import PooledSamples
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

MOST = 1e-5  # difference of a probability
BATCHES = (1, 7, 100)


def corners():
    """What the other models lack, and names that collide with those that the exporter gives."""
    content = hugectr_models.model(hugectr_models.adam("Local", 0.02), [
        data(3, [sparse("data1", 4, 12), sparse("data2", 4, 12)]),
        embedding("logit", "data1", 6, "mean"), embedding("other", "data2", 6),
        layer("Add", "sum3", ["logit", "other", "logit"]),
        layer("DotProduct", "product3", ["logit", "other", "sum3"]),
        layer("Reshape", "picked", "sum3", selected=[3, 0, 3]),
        layer("Reshape", "rows", "product3", leading_dim=6),
        layer("Reshape", "pairs", "rows", leading_dim=12),
        layer("Slice", ["left", "unread", "all"], "pairs", ranges=[[2, 9], [0, 3], [0, 12]]),
        fc("fc0", "left", 2), layer("ReLU", "fc0.bias", "fc0"),
        layer("Concat", "halves", ["fc0.bias", "all"]),
        layer("Reshape", "probability", "halves", leading_dim=28),
        layer("Concat", "alone", ["probability"]),
        layer("ReduceSum", "slots", "sum3", axis=1), layer("Reshape", "flat", "slots"),
        fc("dead", "flat", 5), layer("BatchNorm", "dead_bn", "dead"),
        layer("BatchNorm", "bn", "dense", bn_param={"factor": 0.2, "eps": 0.01}),
        layer("ReLU", "bn_relu", "bn"), layer("Dropout", "dropped", "bn_relu", rate=0.9),
        layer("Multiply", "wide", "dropped", weight_dims=[3, 4]),
        layer("FmOrder2", "fm", "wide", out_dim=2),
        layer("Concat", "last", ["picked", "alone", "flat", "fm", "dense"]),
        layer("ELU", "elu", "last", elu_param={"alpha": 0.7}),
        layer("Dropout", "dropped2", "elu", rate=0), layer("Cast", "cast", "dropped2"),
        layer("MultiCross", "cross", "cast", mc_param={"num_layers": 1}),
        {**fc("both", "cross", 3), "name": "fc0"}, fc("third", "cross", 3),
        layer("ProductLogit", "out", ["both", "third"]), loss("out")])
    content["layers"][0]["label"]["label_dim"] = 3
    return content


def attention():
    """Layers of HugeCTR 3.x, on tensors of two and three dimensions."""
    return hugectr_models.model(hugectr_models.adam("Local", 0.02), [
        data(3, [sparse("data1", 4, 12)]), embedding("emb", "data1", 6),
        layer("Softmax", "share", "emb", factor=1.5),
        layer("ElementwiseMultiply", "weighted", ["emb", "share"]),
        layer("PReLU", "bent_slots", "weighted"),
        layer("ReduceMean", "mean", "bent_slots", axis=1), layer("Reshape", "pooled", "mean"),
        fc("fc1", "dense", 6), layer("Sigmoid", "gate", "fc1"),
        layer("PReLU", "bent", "gate", slope=0.6),
        layer("Sub", "target", ["pooled", "bent"]),
        layer("Scale", "wide", "target", scale_param={"axis": 0, "factor": 3}),
        layer("Scale", "tall", "target", scale_param={"axis": 1, "factor": 4}),
        layer("Reshape", "slots", "emb", leading_dim=6), layer("Sub", "apart", ["slots", "tall"]),
        layer("Reshape", "apart_flat", "apart", leading_dim=24),
        layer("Softmax", "near", "apart_flat"),
        layer("Concat", "all", ["wide", "near", "apart_flat"]), fc("out", "all", 1), loss("out")])


def products():
    """Products of matrices, and rows of slots."""
    return hugectr_models.model(hugectr_models.adam("Local", 0.02), [
        data(3, [sparse("data1", 4, 12), sparse("data2", 4, 12)]), embedding("good", "data1", 4),
        embedding("kind", "data2", 2, "mean"),
        layer("FusedReshapeConcat", ["history", "item"], ["good", "kind"]),
        {**layer("FusedReshapeConcat", ["unread", "twice"], ["good", "good"]), "name": "again"},
        layer("FusedReshapeConcatGeneral", "rows", ["kind", "good"]),
        layer("Scale", "items", "item", scale_param={"axis": 1, "factor": 3}),
        layer("Sub", "apart", ["items", "history"]),
        layer("ElementwiseMultiply", "near", ["items", "history"]),
        layer("Concat", "pairs", ["items", "history", "apart", "near"]), fc("fc1", "pairs", 1),
        layer("Reshape", "scores", "fc1", leading_dim=3), layer("Softmax", "softmax", "scores"),
        layer("Reshape", "shares", "softmax", leading_dim=3, time_step=1),
        layer("Reshape", "sequence", "history", leading_dim=6, time_step=3),
        layer("MatrixMultiply", "interest", ["shares", "sequence"]),
        layer("Reshape", "interests", "interest", leading_dim=6),
        layer("Reshape", "flat", "rows", leading_dim=24),
        layer("Concat", "all", ["interests", "item", "twice", "flat", "dense"]),
        fc("fc2", "all", 8),
        layer("PReLU_Dice", "dice", "fc2", prelu_dice_param={"alpha": 0.2, "eps": 1e-8}),
        fc("out", "dice", 1), loss("out")])


def selections():
    """What selects from tensors of three dimensions, and attention without a mask."""
    return hugectr_models.model(hugectr_models.adam("Local", 0.02), [
        data(3, [sparse("data1", 4, 12), sparse("data2", 4, 12)]), embedding("good", "data1", 6),
        embedding("kind", "data2", 6, "mean"),
        layer("Concat", "both", ["good", "kind"], axis=1),
        layer("Select", "some", "both", dim=1, index=[6, 7, 0, 6]),
        layer("Select", "narrow", "some", dim=2, index=[4, 0, 5, 1]),
        layer("MultiHeadAttention", "mixed", ["some", "both", "both"], num_attention_heads=3),
        {**layer("Slice", ["left", "right"], "mixed", ranges=[[0, 4], [3, 6]]), "name": "halves"},
        layer("Add", "sum", ["left", "narrow"]), fc("wide", "right", 5, "FusedInnerProduct"),
        layer("LayerNorm", "norm", "sum", ln_param={"eps": 0.01, "beta_init": "Uniform"}),
        layer("Reshape", "rows", "norm", leading_dim=8),
        layer("Gather", "picked", "rows", indices=[1, 0, 1]),
        layer("Reshape", "picked_row", "picked", leading_dim=24),
        layer("Reshape", "wide_row", "wide", leading_dim=20),
        layer("MLP", ["low", "lower"], "some", mlp_param={"num_outputs": [5, 2], "use_bias": False}),
        layer("Reshape", "low_row", "lower", leading_dim=8),
        layer("MultiCross", "crossed", "low_row", mc_param={"num_layers": 2, "projection_dim": 3}),
        layer("GRU", "sequence", "kind", gru_param={"num_output": 3, "bias_init": "Uniform"}),
        layer("Reshape", "sequence_row", "sequence", leading_dim=12),
        layer("GRU", "steps", "dense", gru_param={"num_output": 2, "SeqLength": 3, "vector_size": 1}),
        layer("MLP", "mlp", "dense", mlp_param={"num_outputs": [4, 2], "biases": [False, True]}),
        layer("Concat", "all", ["picked_row", "wide_row", "crossed", "mlp", "sequence_row", "steps", "dense"]),
        layer("LayerNorm", "flat_norm", "all"), fc("out", "flat_norm", 1), loss("out")])


def wide_attention():
    """Attention of four queries over six keys, with a mask for both."""
    return hugectr_models.model(hugectr_models.adam("Local", 0.02), [
        data(2, [sparse("data1", 4, 12), sparse("data2", 6, 18)]), embedding("good", "data1", 6),
        embedding("kind", "data2", 6, "mean"),
        {**layer("Slice", ["queries", "keys"], "dense", ranges=[[0, 1], [1, 2]]), "name": "lengths"},
        layer("SequenceMask", "mask", ["queries", "keys"], max_sequence_len_from=4, max_sequence_len_to=6),
        layer("MultiHeadAttention", "mixed", ["good", "kind", "kind", "mask"], num_attention_heads=3),
        layer("Reshape", "row", "mixed", leading_dim=24),
        layer("SequenceMask", "square", ["queries", "queries"], max_sequence_len_from=4, max_sequence_len_to=4),
        fc("uvqk", "good", 24), layer("HSTU", "masked", ["uvqk", "square"], num_attention_heads=3),
        fc("again", "masked", 8), layer("HSTU", "both_ways", "again", causal=False),
        layer("Reshape", "hstu_row", "both_ways", leading_dim=8),
        layer("Concat", "all", ["row", "hstu_row"]), fc("out", "all", 1), loss("out")])


def shows_and_clicks():
    """Rows of the accessor ctr, and dense features of no columns, which a Concat ignores."""
    content = hugectr_models.two_classes()
    content["layers"][0]["dense"]["dense_dim"] = 0
    content["cistern"] = {"embeddings": {"sparse_embedding1": {
        "accessor": "ctr", "embedx_threshold": 2, "optimizer": {"type": "AdaGradShared"}}}}
    return content


MODELS = {**hugectr_models.ALL, "attention": attention, "corners": corners, "products": products,
          "selections": selections, "shows_and_clicks": shows_and_clicks, "wide_attention": wide_attention}
# Inputs of which the network reads only columns that a Slice drops.
WITHOUT_EFFECT = {"two_embeddings": {"dense", "sparse_embedding2"}}


class OnnxExport(ProgramTest):

    def prepare(self, name, half=False):
        """Writes model and data, trains, and returns the predictions: [samples, labels]."""
        content = MODELS[name]()
        self.samples = PooledSamples(content, self.folder)
        content["solver"].update(batchsize=50, max_iter=40, display=1000, eval_interval=100000,
                                 seed=3)
        if not half:
            content["solver"].pop("mixed_precision", None)
        train = self.samples.write("train", 400, seed=1)
        test = self.samples.write("test", 108, seed=2)
        content["layers"][0].update(source=str(train), eval_source=str(test))
        self.config.write_text(json.dumps(content, indent=1), encoding="utf-8")
        self.tables = [one["name"] for one in content["layers"] if "Embedding" in one["type"]]
        self.model = self.folder / "run"
        self.run_ok("cistern", "train", self.config, "--out", self.model, "--threads", 1)
        output = self.folder / "predictions.tsv"
        self.run_ok("cistern", "predict", self.config, "--model", self.model, "--data", test,
                    "--output", output)
        return np.loadtxt(output, dtype=np.float64, ndmin=2)[:, 1::2]

    def export(self, *flags):
        """Exports and opens the network. Returns the result and the description."""
        self.onnx = self.folder / "exported" / "net.onnx"
        shown = self.run_ok("cistern", "export", "onnx", self.config, "--model", self.model,
                            "--out", self.onnx, "--json", *flags)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(self.onnx), options,
                                                    providers=["CPUExecutionProvider"])
        text = pathlib.Path(f"{self.onnx}.json").read_text(encoding="utf-8")
        return shown, json.loads(text)

    def rows(self, description):
        """{table: {key: weights}}"""
        embeddings = description["embeddings"]
        if any(one["accessor"] == "ctr" for one in embeddings):  # not in HugeCTR's files
            return {one["table"]: PooledSamples.rows_of_text(self.model, one["table"],
                                                             one["vec_size"])
                    for one in embeddings}
        prefix = self.folder / "hugectr"
        self.run_ok("cistern", "export", "hugectr", self.config, "--model", self.model, "--form",
                    "v3", "--out", prefix)
        return {table: PooledSamples.rows_of_folder(f"{prefix}{index}_sparse_0.model")
                for index, table in enumerate(self.tables)}

    def inputs(self, description):
        """The network's inputs for all test samples, made as the description says."""
        rows = self.rows(description)
        inputs = {one["input"]: self.samples.pool(rows[one["table"]], one)
                  for one in description["embeddings"]}
        if "dense" in description:
            inputs[description["dense"]["input"]] = self.samples.dense
        return inputs

    def predict(self, inputs, batch):
        return np.concatenate([
            self.session.run(["probability"], {name: cells[first:first + batch]
                                               for name, cells in inputs.items()})[0]
            for first in range(0, self.samples.count, batch)])

    def largest_difference(self, inputs, expected):
        worst = 0.0
        for batch in BATCHES:
            found = self.predict(inputs, batch)
            self.assertEqual(found.shape, expected.shape)
            worst = max(worst, float(np.abs(found - expected).max()))
        return worst

    def check(self, name):
        expected = self.prepare(name)
        self.assertGreater(expected.std(axis=0).min(), 1e-3, "predictions are all the same")
        _, description = self.export()
        inputs = self.inputs(description)
        worst = self.largest_difference(inputs, expected)
        print(f"{name}: {len(self.session.get_inputs())} inputs, largest difference {worst:.1e}")
        self.assertLess(worst, MOST)
        for changed in sorted(inputs.keys() - WITHOUT_EFFECT.get(name, set())):
            others = {**inputs, changed: inputs[changed] + 0.5}
            self.assertGreater(self.largest_difference(others, expected), 10 * MOST, changed)

    def test_half_precision_differs_by_rounding(self):
        expected = self.prepare("mixed_inputs", half=True)
        shown, description = self.export()
        self.assertEqual(description["trained_in"], "float16")
        self.assertIn("computes in float32", shown.err)
        worst = self.largest_difference(self.inputs(description), expected)
        self.assertLess(worst, 5e-3)
        self.assertGreater(worst, 1e-6)

    def test_every_layer_type_is_compared(self):
        document = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")  # grammar_test keeps it complete
        named = re.findall(r"^### ([A-Z]\w+)$", document[document.index("\n## Layers\n"):], re.M)
        types = {name for name in named if name != "Data" and "Embedding" not in name}
        self.assertGreater(len(types), 35)
        used = {one["type"] for make in MODELS.values() for one in make()["layers"]}
        self.assertEqual(types - used, set())

    def test_logit_and_metadata(self):
        expected = self.prepare("corners")
        shown, description = self.export("--logit")
        probability, logit = self.session.run(["probability", "logit"], self.inputs(description))
        sigmoid = 1 / (1 + np.exp(-logit.astype(np.float64)))
        self.assertLess(np.abs(sigmoid - expected).max(), MOST)
        self.assertLess(np.abs(probability - expected).max(), MOST)
        self.assertEqual({one.name: one.shape for one in self.session.get_inputs()},
                         {"dense": ["batch", 3], "logit_2": ["batch", 4, 6],
                          "other": ["batch", 4, 6]})
        properties = self.session.get_modelmeta().custom_metadata_map
        self.assertEqual(properties["cistern.pass"], str(description["pass"]))
        self.assertGreater(description["pass"], 0)
        self.assertEqual(description["bytes"], self.onnx.stat().st_size)
        self.assertEqual(shown.json()["xxh3"], description["xxh3"])
        self.assertEqual(sorted(one.name for one in self.onnx.parent.iterdir()),
                         ["net.onnx", "net.onnx.json"])

    def test_a_commit_is_named(self):
        self.write_model()
        out = self.folder / "run"
        self.run_ok("cistern", "train", self.config, "--out", out, "--durability", "commit")
        shown = self.run_ok("cistern", "export", "onnx", self.config, "--state", f"{out}@1",
                            "--out", self.folder / "a.onnx", "--json").json()
        self.assertEqual((shown["commit"], shown["pass"]), (1, 1))
        self.assertEqual((shown["layers"], shown["parameters"]), (6, 18 * 16 + 16 + 16 + 1))

    def test_servers_give_the_same_network(self):
        self.write_model()
        with Servers(2, self.folder) as fleet:
            self.run_ok("cistern", "train", self.config, "--servers", fleet.addresses, "--out",
                        self.folder / "run")
            saved = self.network("--model", self.folder / "run")
            held = self.network("--servers", fleet.addresses)
        self.assertGreater(saved.count(b"fc1.weight"), 0)
        weights = slice(0, held.index(b"cistern.commit"))  # the properties come after the graph
        self.assertEqual(held[weights], saved[weights])

    def network(self, *source):
        out = self.folder / "b.onnx"
        self.run_ok("cistern", "export", "onnx", self.config, "--out", out, *source)
        return out.read_bytes()

    def test_refusals(self):
        self.write_model()
        self.run_ok("cistern", "train", self.config, "--out", self.folder / "run")
        export = ("cistern", "export", "onnx", self.config, "--model", self.folder / "run")
        before = self.config.read_bytes()
        self.expect(run(*export, "--out", self.config), 2, "input file and would be replaced")
        self.assertEqual(self.config.read_bytes(), before)
        self.expect(run(*export), 2, "--out is required")
        other = ("--set", "layers.fc1.fc_param.num_output=17")
        self.expect(run(*export, "--out", self.folder / "a.onnx", *other), 2, "does not describe")
        self.assertFalse((self.folder / "a.onnx").exists())


for each in MODELS:
    setattr(OnnxExport, f"test_{each}", lambda self, name=each: self.check(name))


if __name__ == "__main__":
    unittest.main()
