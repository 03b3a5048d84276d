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

    def test_with_rows_in_files_for_every_rule(self):
        """Each update rule and accessor, on 1 to 4 servers, with all rows in files and with some."""
        hparams = {"Adam": "adam_hparam", "MomentumSGD": "momentum_sgd_hparam", "Nesterov": "nesterov_hparam", "Ftrl": "ftrl_hparam"}
        rules = [{"optimizer": {"type": rule}} for rule in ("SGD", "AdaGrad", "AdaGradRowwise", "AdamW")]
        rules += [{"accessor": "ctr", "embedx_threshold": 2, "optimizer": {"type": rule}} for rule in (
            "AdaGradShared", "AdaGradStd", "Adam")]
        rules += [{"top": {"type": rule, "update_type": update, hparams[rule]: {"learning_rate": 0.01}}}
                  for rule, update in (("Adam", "Global"), ("Adam", "LazyGlobal"), ("MomentumSGD", "Global"),
                                       ("Nesterov", "Local"), ("Ftrl", "Local"))]
        for number, rule in enumerate(rules):
            def change(content, rule=dict(rule)):
                content["optimizer"] = rule.pop("top", content["optimizer"])
                content["cistern"] = {"pass_memory_mb": 1, "embeddings": {"deep": rule} if rule else {}}
                content["solver"].update(max_iter=0, num_epochs=4, eval_interval=0)
            with self.subTest(**rule):
                self.write_model(change)
                in_memory = self.train(f"memory-{number}")
                servers = number % 4 + 1
                for limit in (1e-6, 0.016 / servers):  # MiB; pushes and 200 rows take more
                    run = self.train(f"files-{number}-{limit}", "--memory-limit-mb", limit, "--embedded-servers", servers)
                    self.run_ok("cistern", "ckpt", "diff", in_memory / "state", run / "state")

    def test_empty_fleet_loads_the_model_from_the_command(self):
        run = self.train("run")
        expected = self.predict("embedded", "--model", run)
        with Servers(2, self.folder) as servers:
            self.assertEqual(
                self.predict("fleet", "--model", run, "--servers", servers.addresses), expected)


if __name__ == "__main__":
    unittest.main(verbosity=2)
