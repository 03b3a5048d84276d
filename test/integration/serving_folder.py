"""A test that exports its model into a serving folder."""

import json

from programs import ProgramTest, Samples
from serving_library import predictions_of


class ServingTest(ProgramTest):

    def setUp(self):
        super().setUp()
        self.serving = self.folder / "serving"
        self.samples = Samples(self.SAMPLES // 4, seed=2).rows  # those of the test file

    def train(self, name="run", *flags):
        self.run_ok("cistern", "train", self.config, "--out", self.folder / name, *flags)
        return self.folder / name

    def export(self, *flags):
        return self.run_ok("cistern", "export", "serving", self.config, "--out", self.serving,
                           "--json", *flags).json()

    def predict(self, model, *flags):
        output = self.folder / "predictions.tsv"
        self.run_ok("cistern", "predict", model, "--data", self.test_file, "--output", output,
                    *flags)
        return output

    def expected(self, *flags):
        return predictions_of(self.predict(self.config, *flags))

    def online(self, model, batch):
        """The predictions of the library for all samples, in requests of `batch`."""
        predictions = []
        for first in range(0, len(self.samples), batch):
            predictions += model.predict(self.samples[first:first + batch])[0]
        return [float(f"{p:.9g}") for p in predictions]

    def published_name(self):
        return json.loads((self.serving / "HEAD").read_text())["version"]

    def published(self):
        """The commit of the served version."""
        return int(self.published_name().split("-")[0])

    def newest(self, run):
        """The newest commit of a training."""
        listed = self.run_ok("cistern", "ckpt", "ls", run, "--json").json()
        return max(commit["commit"] for commit in listed["commits"])
