"""A training that is stopped by SIGTERM or Ctrl-C at any moment ends in order and continues with the same bits.

CISTERN_STOPS: how many stops (default 8); CISTERN_SEED: which ones.
"""

import os
import random
import shutil
import signal
import time
import unittest

from programs import Samples, Servers, finish, start, wait_for
from workers import WorkersTest

STOPS = int(os.environ.get("CISTERN_STOPS", "8"))
EPOCHS = 20


class Stops(WorkersTest):

    SAMPLES = 10000

    # (workers on a fleet, or 0: embedded; threads; signal)
    KINDS = [(workers, threads, how) for how in (signal.SIGTERM, signal.SIGINT)
             for threads in (1, 2) for workers in (0, 1, 2, 3, 4)]

    def setUp(self):
        super().setUp()
        self.write_model(self.change)

    @staticmethod
    def change(content):
        """Most of the time is in products of matrices, where a signal once damaged the heap."""
        content["solver"].update(num_epochs=EPOCHS, batchsize=500, display=1000, eval_interval=0)
        for layer in content["layers"]:
            if layer["name"] == "deep":
                layer["sparse_embedding_hparam"]["embedding_vec_size"] = 32
            if layer["name"] == "reshape1":
                layer["leading_dim"] = 32 * Samples.SLOTS
            if layer["name"] == "fc1":
                layer["fc_param"]["num_output"] = 256

    def begin(self, name, servers, workers, *flags):
        if workers > 0:
            return self.start_workers(name, servers, workers, *flags)
        process = start("cistern", "train", self.config, "--out", self.folder / name, "--threads", self.THREADS,
                        "--durability", "commit", "--json", *flags)
        self.addCleanup(self.end, process)
        return [process]

    def model(self, name):
        folder = self.folder / name / "model"
        return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("part-*"))
                if path.suffix != ".json"}

    def train_whole(self, workers):
        """The saved model of a run that nobody stops. (The number of threads changes no bit.)"""
        with Servers(2, self.folder, durability="commit", data_dir=self.folder / f"whole-{workers}-state") as servers:
            for process in self.begin(f"whole-{workers}", servers, workers):
                self.expect(finish(process), 0)
        return self.model(f"whole-{workers}")

    def stop_and_resume(self, name, kind, draw, expected):
        workers, self.THREADS, how = kind
        state = self.folder / f"{name}-state"
        with Servers(2, self.folder, durability="commit", data_dir=state) as servers:
            processes = self.begin(name, servers, workers)
            self.await_passes(name, draw.randrange(1, EPOCHS // 2), processes)
            time.sleep(draw.random() * 0.05)  # another moment of a pass each time
            for process in draw.choice((processes, processes[-1:])):
                process.send_signal(how)
            for process in processes:
                result = finish(process)
                self.expect(result, 130, "interrupted after iteration")
                self.assertNotRegex(result.err, "corrupt|free\\(\\)|AddressSanitizer|ThreadSanitizer")
            self.run_ok("cistern", "verify", state if workers > 0 else self.folder / name)
            for process in self.begin(name, servers, workers, "--resume"):
                self.expect(finish(process), 0)
        self.assertEqual(self.model(name), expected[workers])
        for path in (self.folder / name, state):
            shutil.rmtree(path, ignore_errors=True)

    def test_a_stopped_training_continues_with_the_same_bits(self):
        seed = os.environ.get("CISTERN_SEED", "1")
        draw = random.Random(seed)
        kinds = [kind for _ in range(-(-STOPS // len(self.KINDS)))
                 for kind in draw.sample(self.KINDS, len(self.KINDS))][:STOPS]
        expected = {workers: self.train_whole(workers) for workers in sorted({kind[0] for kind in kinds})}
        for turn, kind in enumerate(kinds):
            with self.subTest(turn=turn, workers=kind[0], threads=kind[1], signal=kind[2].name, seed=seed):
                self.stop_and_resume(f"stopped-{turn}", kind, draw, expected)


if __name__ == "__main__":
    unittest.main(verbosity=2)
