"""cistern data convert and inspect, and a model trained on converted data."""

import fcntl
import random
import unittest

from programs import ProgramTest, run


class Data(ProgramTest):

    def write_csv(self, rows=600):
        draw = random.Random(5)
        path = self.folder / "clicks.csv"
        lines = ["id,click,age,user,tags"]
        for row in range(rows):
            user = draw.randrange(20)
            tags = "|".join(f"t{draw.randrange(9)}" for _ in range(draw.randint(0, 2)))
            click = int(draw.random() < (0.8 if user % 2 else 0.2))
            lines.append(f"{row},{click},{draw.random():.4f},u{user},{tags}")
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    def convert(self, *flags):
        return run("cistern", "data", "convert", "--input", self.folder / "clicks.csv", "--out",
                   self.folder / "norm", "--label", "click", "--dense", "age", "--sparse",
                   "user,tags", "--multi=tags", "--ignore=id", "--key_bits=32", *flags)

    def test_converted_csv_trains_a_model(self):
        self.write_csv()
        made = self.expect(self.convert("--json"), 0).json()
        self.assertEqual((made["samples"], made["slot_num"], made["dense_dim"]), (600, 2, 1))
        self.assertEqual([slot["column"] for slot in made["slots"]], ["user", "tags"])
        self.assertEqual(made["slots"][0]["distinct"], 20)

        seen = self.run_ok("cistern", "data", "inspect", made["file_list"], "--json").json()
        self.assertEqual((seen["samples"], len(seen["slots"])), (600, 2))

        def fit(content):
            data = content["layers"][0]
            data["source"] = data["eval_source"] = made["file_list"]
            data["dense"]["dense_dim"] = 1
            data["sparse"][0].update(slot_num=2, max_feature_num_per_sample=3)
            content["layers"][2]["leading_dim"] = 8
        self.write_model(fit)
        trained = self.run_ok("cistern", "train", self.config, "--out", self.folder / "run",
                              "--set", "solver.num_epochs=10", "--json").json()
        # The user column alone predicts clicks with AUC 0.8.
        self.assertGreater(trained["auc"], 0.75)

    def test_next_run_removes_files_of_a_killed_run(self):
        self.write_csv()
        left = self.folder / "norm.partial-set"
        left.mkdir()
        (left / "part-0").write_text("half")
        with open(left / "lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.expect(self.convert(), 2, "another process is working in", "norm.partial-set")
            self.assertTrue((left / "part-0").exists())
        self.expect(self.convert(), 0)
        self.assertEqual([path.name for path in self.folder.glob("norm*")], ["norm"])
        self.assertFalse({"lock", "part-0"} & {path.name for path in
                                               (self.folder / "norm").iterdir()})

    def test_unknown_column_is_reported(self):
        self.write_csv()
        self.expect(self.convert("--label", "clicks"), 2, "clicks")
        self.assertFalse((self.folder / "norm").exists())

    def test_bad_row_is_reported(self):
        path = self.write_csv()
        with path.open("a", encoding="utf-8") as file:
            file.write("600,1,notanumber,u1,t1\n")
        self.expect(self.convert(), 4, "clicks.csv", "602", "age")
        self.assertFalse((self.folder / "norm").exists())

    def test_bad_choice_is_refused(self):
        self.write_csv()
        self.expect(self.convert("--keys", "hsah"), 2, "hsah", "hash")

    def test_inspect_reads_the_whole_file(self):
        seen = self.run_ok("cistern", "data", "inspect", self.train_file, "--print", 1)
        self.assertIn("2000", seen.out)
        content = self.train_file.read_bytes()
        self.train_file.write_bytes(content[:-5])
        self.expect(run("cistern", "data", "inspect", self.train_file), 4, "train.norm")


if __name__ == "__main__":
    unittest.main(verbosity=2)
