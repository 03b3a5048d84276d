"""solver.eval_metrics: every report of the metrics is compared with metrics computed here from the
predictions."""

import json
import math
import unittest

from hugectr_files import write_floats
from programs import ProgramTest, Samples, run

NAMES = ["AUC", "AverageLoss", "LogLoss", "NE", "COPC", "PCOC", "BucketError", "ActualCTR",
         "PredictedCTR", "MAE", "RMSE", "SMAPE", "HitRate", "NDCG", "GAUC"]


def area(pairs):
    above = sum((p > q) + 0.5 * (p == q) for y, p in pairs if y for z, q in pairs if not z)
    positives = sum(y > 0.5 for y, _ in pairs)
    return above / (positives * (len(pairs) - positives))


def ndcg(pairs):
    """Ties share the mean of their discounts."""
    discounts = [1 / math.log2(rank + 2) for rank in range(len(pairs))]
    ranked, gain, rank = sorted(pairs, key=lambda pair: -pair[1]), 0.0, 0
    while rank < len(ranked):
        tied = [y for y, p in ranked[rank:] if p == ranked[rank][1]]
        gain += sum(tied) / len(tied) * sum(discounts[rank:rank + len(tied)])
        rank += len(tied)
    return gain / sum(discounts[:int(sum(y for y, _ in pairs))])


def figures(pairs, groups):
    count = len(pairs)
    loss = -sum(math.log(p if y else 1 - p) for y, p in pairs) / count
    clicked, predicted = (sum(x) / count for x in zip(*pairs))
    found = {"auc": area(pairs), "logloss": loss, "average_loss": loss,
             "ne": loss / -(clicked * math.log(clicked) + (1 - clicked) * math.log(1 - clicked)),
             "copc": clicked / predicted, "pcoc": predicted / clicked, "actual_ctr": clicked,
             "predicted_ctr": predicted, "mae": sum(abs(p - y) for y, p in pairs) / count,
             "rmse": math.sqrt(sum((p - y)**2 for y, p in pairs) / count),
             "smape": sum(2 * abs(p - y) / (p + y) for y, p in pairs) / count, "ndcg": ndcg(pairs)}
    heads = [y for y, p in pairs if p > 0.8]
    if heads:
        found["hit_rate"] = sum(heads) / len(heads)
    of_group = {}
    for group, pair in zip(groups, pairs):
        of_group.setdefault(group, []).append(pair)
    ungrouped = len(of_group.pop(None, []))
    both = [part for part in of_group.values() if len({y for y, _ in part}) == 2]
    counted = sum(map(len, both))
    found.update(gauc=sum(area(part) * len(part) for part in both) / counted,
                 gauc_groups=len(of_group), gauc_groups_left_out=len(of_group) - len(both),
                 gauc_samples_left_out=count - counted)
    assert ungrouped <= count - counted
    return found


class Metrics(ProgramTest):

    def setUp(self):
        super().setUp()
        # The group slot has at most one key.
        self.samples = Samples(self.SAMPLES // 4, seed=2)
        for _, _, keys in self.samples.rows:
            keys[1] = keys[1][:1]
        self.samples.write(self.test_file)
        self.ask(NAMES)

    def ask(self, names, slot=1, change=lambda content: None):
        def fit(content):
            content["solver"]["eval_metrics"] = names
            content["cistern"] = {"gauc_slot": {"input": "data1", "slot": slot}}
            change(content)
        self.write_model(fit)

    def check(self, shown, expected):
        for name, value in expected.items():
            self.assertAlmostEqual(shown[name], value, delta=1e-6, msg=name)

    def test_all_reports_match_the_predictions(self):
        out, output = self.folder / "run", self.folder / "predictions.tsv"
        trained = self.run_ok("cistern", "train", self.config, "--out", out, "--json").json()
        predicted = self.run_ok("cistern", "predict", self.config, "--model", out, "--data",
                                self.test_list, "--output", output, "--json").json()
        pairs = [tuple(map(float, line.split("\t"))) for line in output.read_text().splitlines()]
        groups = [keys[1][0] if keys[1] else None for _, _, keys in self.samples.rows]
        expected = figures(pairs, groups)
        self.check(predicted, expected)
        self.check(trained, expected)
        evaluated = self.run_ok("cistern", "eval", self.config, "--model", out, "--json").json()
        self.check(evaluated, expected)
        lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        self.check(lines[-1], expected)
        for line in lines:
            self.assertEqual("copc" in line, line["event"] in ("eval", "final"), line)

        # A resumed run, with nothing left to train, reads the same metrics from the manifest.
        again = self.run_ok("cistern", "train", self.config, "--out", out, "--resume",
                            "--json").json()
        self.check(again, expected)
        text = self.run_ok("cistern", "eval", self.config, "--model", out).out
        self.assertRegex(text, r"(?m)^copc +%.6f$" % expected["copc"])
        self.assertRegex(text, r"(?m)^gauc_groups +%d$" % expected["gauc_groups"])

    def test_constant_labels_have_no_auc_but_a_note(self):
        self.samples.rows = [(0.0, dense, keys) for _, dense, keys in self.samples.rows]
        self.samples.write(self.test_file)
        out = self.folder / "run"
        trained = self.run_ok("cistern", "train", self.config, "--out", out)
        self.assertRegex(trained.out, r"(?m)^evaluation auc +none")
        last = json.loads((out / "metrics.jsonl").read_text().splitlines()[-1])
        self.assertIsNone(last["auc"])
        self.assertIsNone(last["ne"])
        shown = self.run_ok("cistern", "eval", self.config, "--model", out, "--json").json()
        for name in ("auc", "ne", "pcoc", "gauc"):
            self.assertIsNone(shown[name])
            self.assertIn("undefined", shown[name + "_note"])
        self.assertEqual(shown["copc"], 0)
        text = self.run_ok("cistern", "eval", self.config, "--model", out).out
        self.assertIn("AUC is undefined: all 500 labels are negative", text)

    def test_several_labels_have_joint_and_separate_metrics(self):
        weights = [0.5, 2.0]

        def fit(content):
            content["solver"]["eval_metrics"] = ["AverageLoss", "COPC"]
            data = content["layers"][0]
            data["label"]["label_dim"] = 2
            data["source"] = str(self.folder / "data" / "train" / "file_list.txt")
            data["eval_source"] = str(self.folder / "data" / "test" / "file_list.txt")
            content["layers"][-2]["fc_param"]["num_output"] = 2
            content["layers"][-1].update(type="MultiCrossEntropyLoss", target_weight=weights)
        self.write_model(fit)
        out, output = self.folder / "run", self.folder / "predictions.tsv"
        self.run_ok("cistern", "data", "generate", "--model", self.config, "--out",
                    self.folder / "data", "--samples", 1000, "--test-samples", 300)
        trained = self.run_ok("cistern", "train", self.config, "--out", out, "--json").json()
        self.run_ok("cistern", "predict", self.config, "--model", out, "--data",
                    self.folder / "data" / "test" / "file_list.txt", "--output", output)
        rows = [list(map(float, line.split("\t"))) for line in output.read_text().splitlines()]
        of_label = [[(row[2 * k], row[2 * k + 1]) for row in rows] for k in range(2)]
        each = [figures(pairs, [0] * len(rows)) for pairs in of_label]
        for k in range(2):
            self.check(trained, {f"{name}[{k}]": each[k][name]
                                 for name in ("auc", "logloss", "copc")})
        together = figures(of_label[0] + of_label[1], [0] * 2 * len(rows))
        self.check(trained, {name: together[name] for name in ("auc", "logloss", "copc")})
        self.assertAlmostEqual(trained["average_loss"], sum(
            weight * one["logloss"] for weight, one in zip(weights, each)) / 2, delta=1e-6)

    def test_average_loss_uses_logits_whose_probability_rounds_to_one(self):
        positives = sum(label > 0.5 for label, _, _ in self.samples.rows)
        negatives = len(self.samples.rows) - positives
        cases = [("BinaryCrossEntropyLoss", [40.0]), ("CrossEntropyLoss", [-25.0, 15.0])]
        for loss, biases in cases:
            weights = self.folder / f"{loss}.dense"
            write_floats(weights, [0.0] * (18 * 16 + 16 + 16 * len(biases)) + biases)

            def fit(content):
                content["solver"].update(dense_model_file=str(weights), num_epochs=1)
                content["optimizer"]["adam_hparam"]["learning_rate"] = 1e-12
                content["layers"][-2]["fc_param"]["num_output"] = len(biases)
                content["layers"][-1]["type"] = loss
            self.ask(["AverageLoss", "LogLoss"], change=fit)
            trained = self.run_ok("cistern", "train", self.config, "--out", self.folder / loss,
                                  "--json").json()
            self.assertAlmostEqual(trained["average_loss"], 40 * negatives / 500, delta=1e-9)
            clipped = -negatives * math.log(1e-7) - positives * math.log1p(-1e-7)
            self.assertAlmostEqual(trained["logloss"], clipped / 500, delta=1e-9)

    def test_group_slot_with_several_keys_is_refused(self):
        Samples(self.SAMPLES // 4, seed=2).write(self.test_file)
        self.expect(run("cistern", "train", self.config, "--out", self.folder / "run"), 2,
                    "gauc_slot", "slot 1 of 'data1'")

    def test_unknown_names_are_refused(self):
        self.ask(["AUC", "Gauc"])
        self.expect(run("cistern", "train", self.config, "--out", self.folder / "run"), 2,
                    "solver.eval_metrics[1]", "did you mean 'GAUC'?")


if __name__ == "__main__":
    unittest.main(verbosity=2)
