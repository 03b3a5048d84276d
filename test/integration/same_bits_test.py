"""One seed gives the same predictions, bit for bit, wherever the rows are stored."""

import unittest

from programs import ProgramTest, Servers


class SameBits(ProgramTest):

    def predict(self, name, *flags):
        output = self.folder / f"{name}.tsv"
        self.run_ok("cistern", "predict", self.config, "--data", self.test_file, "--output", output,
                    *flags)
        return output.read_bytes()

    def train(self, name, *flags):
        self.run_ok("cistern", "train", self.config, "--out", self.folder / name, *flags)
        return self.folder / name

    def test_embedded_and_on_1_2_and_3_servers(self):
        run = self.train("embedded")
        expected = self.predict("embedded", "--model", run)
        self.assertEqual(len(expected.splitlines()), self.SAMPLES // 4)
        for count in (1, 2, 3):
            with self.subTest(servers=count), Servers(count, self.folder) as servers:
                run = self.train(f"fleet-{count}", "--servers", servers.addresses)
                live = self.predict(f"live-{count}", "--servers", servers.addresses)
                self.assertEqual(live, expected)
                saved = self.predict(f"saved-{count}", "--model", run)
                self.assertEqual(saved, expected)

    def test_by_a_worker_process(self):
        with Servers(2, self.folder) as servers:
            expected = self.predict("embedded", "--model", self.train("embedded"))
            self.run_ok("cistern-worker", self.config, "--servers", servers.addresses,
                        "--out", self.folder / "worker", "--rank", 0, "--world_size", 1)
            self.assertEqual(self.predict("worker", "--servers", servers.addresses), expected)

    def test_with_several_embedded_servers(self):
        expected = self.predict("one", "--model", self.train("one"))
        run = self.train("three", "--embedded-servers", 3)
        self.assertEqual(self.predict("three", "--model", run, "--embedded_servers=2"), expected)

    def test_empty_fleet_loads_the_model_from_the_command(self):
        run = self.train("run")
        expected = self.predict("embedded", "--model", run)
        with Servers(2, self.folder) as servers:
            self.assertEqual(
                self.predict("fleet", "--model", run, "--servers", servers.addresses), expected)


if __name__ == "__main__":
    unittest.main(verbosity=2)
