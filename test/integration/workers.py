"""Shared code of the tests with several workers of one run."""

import json

from programs import ProgramTest, finish, free_port, start, wait_for


class WorkersTest(ProgramTest):

    SAMPLES = 1030  # in batches of 100: workers have different shares of the last one

    THREADS = 1  # of each worker

    def words(self, name, servers, rank, count, peers, *flags):
        return ["cistern-worker", self.config, "--servers", servers.addresses, "--out",
                self.folder / name, "--rank", rank, "--world-size", count, "--peers", peers,
                "--threads", self.THREADS, "--connect-timeout", 1, "--json", *flags]

    def start_workers(self, name, servers, count, *flags):
        self.peers = f"127.0.0.1:{free_port()}"
        workers = [start(*self.words(name, servers, rank, count, self.peers, *flags))
                   for rank in range(count)]
        for worker in workers:
            self.addCleanup(self.end, worker)
        return workers

    def end(self, worker):
        if worker.poll() is None:
            worker.kill()
        worker.communicate()

    def train(self, name, servers, count, *flags):
        """Trains with `count` workers and returns the summary of worker 0."""
        results = [finish(worker) for worker in self.start_workers(name, servers, count, *flags)]
        for result in results:
            self.expect(result, 0)
        return results[0].json()

    def lines(self, name):
        path = self.folder / name / "metrics.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]

    def passes(self, name):
        path = self.folder / name / "metrics.jsonl"
        return path.read_text().count('"event":"pass"') if path.exists() else 0

    def await_passes(self, name, count, workers):
        wait_for(lambda: self.passes(name) >= count or any(w.poll() is not None for w in workers),
                 "passes")

    def outcome(self, name, servers):
        """The rows and the digest of each table, and the exact bytes of a saved model's rows."""
        status = self.run_ok("cistern", "status", "--servers", servers.addresses, "--digest",
                             "--json").json()
        model = self.folder / name / "model"
        files = {str(path.relative_to(model)): path.read_bytes()
                 for path in sorted(model.rglob("part-*"))
                 if path.is_file() and path.suffix != ".json"}
        return {table["name"]: (table["rows"], table["digest"])
                for table in status["tables"]}, files

    @staticmethod
    def rows(files, table):
        """The numbers after each key of a sparse table (docs/formats.md)."""
        return {fields[0]: [float(number) for number in fields[1:]]
                for name, content in files.items() if name.startswith(table + "/")
                for fields in map(str.split, content.decode().splitlines())}

    def expect_close(self, found, expected):
        """Compares tables up to rounding that depends on the order in which gradients are added."""
        self.assertEqual(found.keys(), expected.keys())
        for key, numbers in expected.items():
            self.assertEqual(len(found[key]), len(numbers), key)
            for one, other in zip(found[key], numbers):
                self.assertLess(abs(one - other), 2e-4 * (0.01 + abs(other)), key)

    def expect_same_lines(self, found, expected, pass_lines=True):
        facts = ("event", "iter", "samples") + (("rows", "unseen_keys") if pass_lines else ())
        figures = ("loss", "auc", "logloss", "gauc", "average_loss")
        # A run with fewer streams than workers logs a warning.
        found, expected = ([line for line in lines if line["event"] != "warning"] for lines in (found, expected))
        if not pass_lines:
            found, expected = ([line for line in lines if line["event"] in ("train", "eval")]
                               for lines in (found, expected))
        self.assertEqual(len(found), len(expected))
        for line, other in zip(found, expected):
            self.assertEqual([line.get(f) for f in facts], [other.get(f) for f in facts])
            for figure in figures:
                if other.get(figure) is not None:
                    self.assertAlmostEqual(line[figure], other[figure], 5, f"{figure}: {line}")
