"""`cistern export dnn-plugin`: another program reads Paddle's tensor files."""

import array
import json
import unittest

import hugectr_files
from hugectr_models import WIDTH, two_embeddings
from paddle_tensors import file_tensor
from programs import ProgramTest, Samples, run


def with_prelu(content):
    """two_embeddings, with a PReLU before its last layer but the loss."""
    two_embeddings(content)
    last = content["layers"][-2]
    prelu = {"name": "prelu", "type": "PReLU", "bottom": last["bottom"], "top": "prelu"}
    content["layers"].insert(-2, prelu)
    last["bottom"] = "prelu"


class ExportDnnPlugin(ProgramTest):
    """A model with every layer that has dense parameters."""

    SAMPLES = 600

    def setUp(self):
        super().setUp()
        self.write_model(with_prelu)
        self.out = self.folder / "plugin"
        self.prefix = self.folder / "files" / "a"
        self.run_ok("cistern", "train", self.config, "--out", self.folder / "run", "--threads", 1,
                    "--set", f"solver.snapshot_prefix={self.prefix}")

    def export(self, *flags, code=0, messages=()):
        return self.expect(run("cistern", "export", "dnn-plugin", self.config, "--model",
                               self.folder / "run", "--out", self.out, "--json", *flags), code,
                           *messages)

    def test_tensors_are_the_weights_of_hugectrs_file(self):
        done = self.export().json()
        lines = (self.out / "parameters.txt").read_text(encoding="utf-8").splitlines()
        names = [line.split()[0] for line in lines]
        self.assertEqual(len(set(names)), done["files"])
        dense = f"{self.prefix}_dense_12.model"
        ((mean, variance),) = hugectr_files.statistics(dense)
        self.assertEqual(sorted(path.name for path in self.out.iterdir()),
                         sorted([*names, "parameters.txt", "dnn_plugin.json"]))
        tensors = {name: file_tensor(self.out / name) for name in names}
        statistics = [name for name in names if name.endswith((".w_1", ".w_2"))
                      and tensors[name][0] == [WIDTH]]
        self.assertEqual([tensors[name][1] for name in statistics],
                         [list(array.array("f", part)) for part in (mean, variance)])
        weights = [x for name in names if name not in statistics for x in tensors[name][1]]
        self.assertEqual(weights, list(hugectr_files.floats(dense)))
        for line in lines:
            name, dims = line.split()
            self.assertEqual([int(dim) for dim in dims.split(",")], tensors[name][0])
        shapes = [dims for dims, _ in tensors.values()]
        self.assertIn([Samples.DENSE, 2], shapes)  # Multiply
        self.assertEqual(tensors["prelu.w_0"][0], [WIDTH])
        manifest = json.loads((self.out / "dnn_plugin.json").read_text())
        self.assertEqual([p["name"] for p in manifest["parameters"]], names)
        self.assertEqual([p["shape"] for p in manifest["parameters"]], shapes)
        self.assertEqual([p["bytes"] for p in manifest["parameters"]],
                         [(self.out / name).stat().st_size for name in names])

    def test_only_an_earlier_export_is_replaced(self):
        self.export()
        before = {path.name: path.read_bytes() for path in self.out.iterdir()}
        (self.out / "old").write_text("x")
        self.export()
        self.assertEqual({path.name: path.read_bytes() for path in self.out.iterdir()}, before)
        (self.out / "dnn_plugin.json").unlink()
        self.export(code=2, messages=("not an earlier export",))
        self.assertIn("parameters.txt", [path.name for path in self.out.iterdir()])

    def test_names_that_are_no_file_names_are_refused(self):
        def rename(model):
            with_prelu(model)
            layer = next(one for one in model["layers"] if one["type"] == "InnerProduct")
            layer["name"] = "a/b"
        self.write_model(rename)
        self.export(code=2, messages=("a/b", "names of files"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
