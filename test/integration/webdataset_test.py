"""Exchanges tar shards with PyPI's webdataset: it reads what `cistern data pack` writes, and the other way round.

Uses the installed webdataset, or the one that scripts/test.sh installs with pip into build/webdataset. Exit code
77 (skipped) if there is neither.
"""

import csv
import json
import random
import sys
import unittest

from programs import ROOT, ProgramTest, run

sys.path.append(str(ROOT / "build" / "webdataset"))
try:
    import webdataset
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


class WebDataset(ProgramTest):

    def setUp(self):
        super().setUp()
        draw = random.Random(3)
        self.rows = [{"label": str(draw.randrange(2)), "age": f"{draw.random():.3f}", "city": draw.choice("abc\N{SNOWMAN}"),
                      "history": "|".join(draw.choice("xyz") for _ in range(draw.randrange(4)))}
                     for _ in range(500)]
        self.csv = self.folder / "rows.csv"
        with open(self.csv, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self.rows[0])
            writer.writeheader()
            writer.writerows(self.rows)

    def pack(self, *flags):
        return self.run_ok("cistern", "data", "pack", "--input", self.csv, "--multi", "history", "--out",
                           self.folder / "packed", "--samples-per-shard", "200", "--json", *flags).json()

    def samples(self, shards):
        """What webdataset reads, with the history joined again."""
        for sample in webdataset.WebDataset(str(shards), shardshuffle=False).decode():
            row = sample["json"]
            yield dict(row, history="|".join(row["history"]))

    def train_losses(self, name, shards):
        def change(content):
            content["solver"]["input_key_type"] = "I64"
            content["cistern"] = {"columns": {"label": "label", "dense": ["age"], "slots": ["city", "history"]}}
            data = content["layers"][0]
            data.update(source=str(shards), eval_source=str(shards), format="Tar")
            del data["check"]
            data["dense"]["dense_dim"] = 1
            data["sparse"][0].update(slot_num=2, max_feature_num_per_sample=0)
            content["layers"][2]["leading_dim"] = 8
        self.write_model(change)
        self.expect(run("cistern", "train", self.config, "--out", self.folder / name), 0)
        lines = (self.folder / name / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line).get("loss") for line in lines]

    def test_webdataset_reads_packed_shards(self):
        self.assertEqual(self.pack()["shards"], 3)
        self.assertEqual(list(self.samples(self.folder / "packed/data-{00000..00002}.tar")), self.rows)

    def test_length_groups_hold_their_samples(self):
        result = self.pack("--groups", "1:2,2:4", "--length-column", "history")
        lengths = [len(row["history"].split("|")) if row["history"] else 0 for row in self.rows]
        for group, inside in (("1_2", range(1, 2)), ("2_4", range(2, 4))):
            expected = [row for row, length in zip(self.rows, lengths) if length in inside]
            found = sorted((self.folder / "packed" / group).glob("*.tar"))
            self.assertEqual([row for shard in found for row in self.samples(shard)], expected)
        self.assertEqual(result["skipped"][0]["samples"], lengths.count(0))

    def test_webdatasets_shards_train_as_packed_ones(self):
        self.pack()
        pattern = self.folder / "written-%05d.tar"
        with webdataset.ShardWriter(str(pattern), maxcount=150, verbose=0) as out:
            for i, row in enumerate(self.rows):
                history = row["history"].split("|") if row["history"] else []
                out.write({"__key__": f"{i:06d}", "json": dict(row, history=history)})
        self.assertEqual(self.train_losses("written", self.folder / "written-{00000..00003}.tar"),
                         self.train_losses("packed", self.folder / "packed/file_list.txt"))


if __name__ == "__main__":
    unittest.main()
