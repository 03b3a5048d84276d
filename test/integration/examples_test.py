"""The scripts of examples/, on small data in their formats."""

import csv
import os
import random
import subprocess
import unittest

from programs import BIN, ROOT, ProgramTest, write_list

COLUMNS = ["hour", "user_id", "session_id", "session_start", "session_size", "click_article_id",
           "click_timestamp", "click_environment", "click_deviceGroup", "click_os", "click_country",
           "click_region", "click_referrer_type"]


def script(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          timeout=300, check=False,
                          env={**os.environ, "CISTERN_BIN": str(BIN), "OMP_NUM_THREADS": "1"})


class TrainAndScore(ProgramTest):
    SAMPLES = 800

    def test_every_seed_has_its_own_servers(self):
        for name, file in (("train", self.train_file), ("test", self.test_file)):
            (self.folder / "data" / name).mkdir(parents=True)
            write_list(self.folder / "data" / name / "file_list.txt", [file])
        words = (ROOT / "examples/train_and_score.sh", self.config, "--data", self.folder / "data",
                 "--out", self.folder / "out", "--seeds", "2")
        result = script(*words, "--bar", "0.3 2", "--", "--threads", "1")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        scores = (self.folder / "out/scores.tsv").read_text(encoding="utf-8").splitlines()
        self.assertEqual([line.split()[0] for line in scores], ["1", "2"])
        self.assertNotEqual(scores[0].split()[1:], scores[1].split()[1:])
        missed = script(*words, "--bar", "1.1 2", "--", "--threads", "1")
        self.assertEqual(missed.returncode, 1, missed.stdout + missed.stderr)
        self.assertIn("NOT met", missed.stdout)


class CppApi(ProgramTest):
    SAMPLES = 800

    def test_a_program_trains_saves_and_predicts(self):
        words = (self.config, self.folder / "run", self.test_file, self.folder / "from_cpp")
        done = script(BIN / "train_and_predict", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("trained ", done.stdout)
        self.run_ok("cistern", "predict", self.folder / "run", "--data", self.test_file, "--output", self.folder / "from_cli")
        self.assertEqual((self.folder / "from_cpp").read_bytes(), (self.folder / "from_cli").read_bytes())
        again = script(BIN / "train_and_predict", *words)  # the folder holds a run
        self.assertEqual(again.returncode, 1)
        self.assertIn("fix: ", again.stderr)

    def test_a_program_begins_with_a_table(self):
        table = self.folder / "table.csv"
        table.write_text("click,user\n" + "".join(f"{i % 3 == 0:d},u{i % 20}\n" for i in range(400)), encoding="utf-8")
        done = script(BIN / "train_and_predict", table, self.folder / "run", table, self.folder / "from_cpp")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("predicted 400 samples", done.stdout)
        self.run_ok("cistern", "predict", self.folder / "run", "--input", table, "--output", self.folder / "from_cli")
        self.assertEqual((self.folder / "from_cpp").read_bytes(), (self.folder / "from_cli").read_bytes())


class Globo(ProgramTest):
    """Three days of two hours with 40 sessions per hour, each of 2 clicks among 30 articles."""

    def setUp(self):
        super().setUp()
        draw = random.Random(3)
        self.clicks = self.folder / "clicks"
        self.clicks.mkdir()
        self.sessions = {}  # by (user, hour of the day), which identifies a session
        session = 0
        for day in range(3):
            with open(self.clicks / f"clicks_day{day:02}.csv", "w", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(COLUMNS)
                for hour in (24 * day, 24 * day + 7):
                    for _ in range(40):
                        session += 1
                        articles = draw.sample(range(100, 130), 2)
                        self.sessions[session] = articles
                        for article in articles:
                            writer.writerow([hour, session, session, 0, 2, article, 0, 4,
                                             draw.randint(1, 3), 2, 1, 20, 5])

    def test_negatives_come_from_the_previous_hour_and_not_from_the_session(self):
        result = script("python3", ROOT / "examples/globo/samples.py", self.clicks,
                        self.folder / "csv", "--negatives", "3")
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = []
        for day in range(3):
            with open(self.folder / f"csv/day{day:02}.csv", encoding="utf-8") as file:
                rows += list(csv.DictReader(file))
        clicks = [row for row in rows if row["label"] == "1"]
        self.assertEqual(len(clicks), 3 * 2 * 40 * 2 - 80)  # all except those of the first hour
        self.assertGreater(len(rows), 3 * len(clicks))
        for row in rows:
            own = self.sessions[int(row["user"])]
            self.assertEqual(int(row["article"]) in own, row["label"] == "1")
            self.assertIn(int(row["previous"]), [0, own[0]])
        again = script("python3", ROOT / "examples/globo/samples.py", self.clicks,
                       self.folder / "again", "--negatives", "3")
        self.assertEqual(again.returncode, 0, again.stderr)
        for day in range(3):
            name = f"day{day:02}.csv"
            self.assertEqual((self.folder / "csv" / name).read_bytes(),
                             (self.folder / "again" / name).read_bytes())

    def test_each_day_is_scored_before_training_on_it(self):
        result = script(ROOT / "examples/globo/run.sh", self.clicks, "--out", self.folder / "out",
                        "--days", "3", "--", "--threads", "1")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        lines = (self.folder / "out/days-deepfm.tsv").read_text(encoding="utf-8").splitlines()
        self.assertEqual([line.split("\t")[0] for line in lines],
                         ["day", "day01", "day02", "at_once:day02"])
        for line in lines[1:]:
            auc, logloss = map(float, line.split("\t")[1:])
            self.assertTrue(0 <= auc <= 1 and logloss > 0, line)

    def test_models_of_sequences_read_the_articles_before(self):
        for name in ("pooled", "din", "bst", "hstu"):
            self.run_ok("cistern", "plan", ROOT / f"examples/globo/{name}.json", "--rows", "fields=9", "--rows", "articles=9")
        result = script(ROOT / "examples/globo/run.sh", self.clicks, "--out", self.folder / "out",
                        "--days", "2", "--model", "din", "--", "--threads", "1")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        lines = (self.folder / "out/days-din.tsv").read_text(encoding="utf-8").splitlines()
        self.assertEqual([line.split("\t")[0] for line in lines], ["day", "day01", "at_once:day01"])


if __name__ == "__main__":
    unittest.main()
