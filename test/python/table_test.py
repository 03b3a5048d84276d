"""Fleets and tables from Python: values, types, refusals, commits."""

import concurrent.futures
import os
import pathlib
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

import cistern_ps as cs


def user_table(fleet, **more):
    return fleet.table("user", dim=4, rule=cs.Adam(lr=0.01), init=cs.Uniform(0.1), **more)


class Pull(unittest.TestCase):
    def setUp(self):
        self.fleet = cs.local(servers=3)
        self.table = user_table(self.fleet)
        self.addCleanup(self.fleet.close)

    def test_first_values_do_not_depend_on_servers_order_or_repetition(self):
        keys = np.array([7, 2**40, 7, 1], np.int64)
        rows = self.table.pull(keys)
        with cs.local(servers=1) as one:
            other = user_table(one).pull(keys[::-1].copy())
        np.testing.assert_array_equal(rows, other[::-1])
        np.testing.assert_array_equal(rows[0], rows[2])
        self.assertLessEqual(np.abs(rows).max(), 0.1)
        self.assertGreater(np.abs(rows).max(), 0)

    def test_absent_rows_can_read_zero(self):
        np.testing.assert_array_equal(self.table.pull(np.arange(3), absent="zero"), np.zeros((3, 4)))

    def test_int64_and_uint64_are_the_same_bits(self):
        keys = np.array([1, 2**63 + 5, 2**64 - 3], np.uint64)
        np.testing.assert_array_equal(self.table.pull(keys), self.table.pull(keys.view(np.int64)))

    def test_no_keys_give_no_rows(self):
        self.assertEqual(self.table.pull(np.empty(0, np.int64)).shape, (0, 4))

    def test_out_is_written_in_place(self):
        keys, out = np.arange(5), np.empty((5, 4), np.float32)
        self.assertIs(self.table.pull(keys, out=out), out)
        np.testing.assert_array_equal(out, self.table.pull(keys))

    def test_read_only_keys_are_read(self):
        keys = np.arange(3)
        keys.flags.writeable = False
        self.assertEqual(self.table.pull(keys).shape, (3, 4))

    def test_wrong_types_are_named_with_their_argument(self):
        read_only = np.zeros((2, 4), np.float32)
        read_only.flags.writeable = False
        keys = np.arange(2)
        for message, call in [
            ("keys: .*got list", lambda: self.table.pull([1, 2])),
            ("keys: .*got float64", lambda: self.table.pull(np.zeros(2))),
            ("keys: .*got int32", lambda: self.table.pull(np.zeros(2, np.int32))),
            ("keys: .*2 dimensions", lambda: self.table.pull(np.zeros((2, 2), np.int64))),
            ("keys: .*strides", lambda: self.table.pull(np.arange(4)[::2])),
            ("out: .*float64", lambda: self.table.pull(keys, out=np.zeros((2, 4)))),
            ("out: .*read-only", lambda: self.table.pull(keys, out=read_only)),
            ("out: .*strides", lambda: self.table.pull(keys, out=np.zeros((4, 2), np.float32).T)),
        ]:
            with self.subTest(message), self.assertRaisesRegex(TypeError, message):
                call()
        with self.assertRaisesRegex(ValueError, r"out: expected the shape \[2, 4\]; got \[2, 3\]"):
            self.table.pull(keys, out=np.zeros((2, 3), np.float32))

    def test_threads_may_begin_with_a_table_at_once(self):
        """The first of them creates it on the servers."""
        before = sys.getswitchinterval()
        self.addCleanup(sys.setswitchinterval, before)
        sys.setswitchinterval(1e-6)
        for _ in range(20):
            table, keys = cs.local().table("t", dim=4), np.arange(10)
            begin = threading.Barrier(8)

            def pull():
                begin.wait()
                return table.pull(keys).shape

            with concurrent.futures.ThreadPoolExecutor(8) as threads:
                shapes = [call.result() for call in [threads.submit(pull) for _ in range(8)]]
            self.assertEqual(shapes, [(10, 4)] * 8)

    def test_other_threads_run_during_a_pull(self):
        keys, count, stop = np.arange(200_000), [0], threading.Event()
        self.table.pull(keys)

        def work():
            while not stop.is_set():
                count[0] += 1

        thread = threading.Thread(target=work)
        thread.start()
        pulled = 0
        while pulled < 5:
            self.table.pull(keys)
            pulled += 1
        stop.set()
        thread.join()
        self.assertGreater(count[0], 1000)


class Rules(unittest.TestCase):
    def test_rowwise_adagrad_divides_by_the_root_of_the_mean_square(self):
        with cs.local() as fleet:
            table = fleet.table("t", dim=2, rule=cs.AdaGradRowwise(lr=0.1, epsilon=0.5), init=cs.Zero())
            rows = cs.rows.LocalRows(table)
            for _ in range(2):
                rows.add_gradients(rows.look_up(np.array([7])), [[3, 4]])
                rows.step()
            moved = np.array([3, 4]) * (0.1 / (np.sqrt(12.5) + 0.5) + 0.1 / (np.sqrt(25) + 0.5))
            np.testing.assert_allclose(rows.read(np.array([7])), [-moved], rtol=1e-6)


class Push(unittest.TestCase):
    def test_a_commit_makes_rows_visible_and_an_abort_drops_them(self):
        with cs.local(servers=2) as fleet:
            table, keys = user_table(fleet), np.arange(3)
            before = table.pull(keys)
            table.push(keys, np.ones((3, 4), np.float32))
            np.testing.assert_array_equal(table.pull(keys), before)
            fleet.abort()
            table.push(keys[:2], np.full((2, 4), 2, np.float32))
            fleet.commit()
            np.testing.assert_array_equal(table.pull(keys)[:2], np.full((2, 4), 2))
            np.testing.assert_array_equal(table.pull(keys)[2], before[2])
            self.assertEqual(len(table), 2)

    def test_whole_values_carry_the_state(self):
        with cs.local() as fleet:
            table, keys = user_table(fleet), np.array([5])
            values = np.arange(table.floats, dtype=np.float32)[None]
            table.push(keys, values)
            fleet.commit()
            np.testing.assert_array_equal(table.pull(keys, state=True), values)
            table.push(keys, np.full((1, 4), 9, np.float32))  # weights only: the state stays
            fleet.commit()
            np.testing.assert_array_equal(table.pull(keys, state=True)[0, 4:], values[0, 4:])

    def test_a_durable_commit_survives_and_any_number_of_servers_reads_it(self):
        with tempfile.TemporaryDirectory() as folder:
            keys, rows = np.arange(100), np.random.default_rng(1).random((100, 4), np.float32)
            with cs.local(folder, servers=2) as fleet:
                user_table(fleet).push(keys, rows)
                commit = fleet.commit({"place": 17})
                self.assertEqual((commit.number, commit.rows["user"]), (1, 100))
                self.assertEqual(commit.digests, fleet.digests())
            with cs.local(folder, servers=3) as fleet:
                table = fleet.table("user")
                self.assertEqual(table.dim, 4)
                np.testing.assert_array_equal(table.pull(keys), rows)
                again = fleet.claim()
                self.assertEqual((again.digest, again.worker), (commit.digest, {"place": 17}))


class Scan(unittest.TestCase):
    def test_scan_visits_each_row_once_and_may_end_early(self):
        with cs.local(servers=2) as fleet:
            table, keys = user_table(fleet), np.arange(1000)
            table.push(keys, np.repeat(keys[:, None], 4, 1).astype(np.float32))
            fleet.commit()
            seen = np.concatenate([k for k, _ in table.scan(piece=64)])
            np.testing.assert_array_equal(np.sort(seen), keys)
            for k, values in table.scan(piece=64):
                np.testing.assert_array_equal(values[:, 0], k)
                break

    def test_to_pandas_has_keys_weights_and_state(self):
        try:
            import pandas  # noqa: F401
        except ImportError:
            self.skipTest("pandas is missing")
        with cs.local() as fleet:
            table = user_table(fleet)
            table.push(np.array([3]), np.ones((1, 4), np.float32))
            fleet.commit()
            frame = table.to_pandas()
            self.assertEqual(frame.key.tolist(), [3])
            self.assertEqual(frame["w[0]"].tolist(), [1])
            self.assertEqual(frame.shape[1], 1 + table.floats)
            self.assertEqual(len(table.to_pandas(np.arange(5))), 5)


    def test_to_arrow_has_a_column_a_float(self):
        try:
            import pyarrow  # noqa: F401
        except ImportError as missing:
            self.skipTest(str(missing))
        with cs.local(servers=2) as fleet:
            table = user_table(fleet)
            table.push(np.arange(5), np.ones((5, 4), np.float32))
            fleet.commit()
            arrow = table.to_arrow()
            self.assertEqual(sorted(arrow["key"].to_pylist()), [0, 1, 2, 3, 4])
            self.assertEqual(arrow["w[3]"].to_pylist(), [1.0] * 5)
            self.assertEqual(table.to_arrow(np.array([9, 2]))["key"].to_pylist(), [9, 2])


class Tables(unittest.TestCase):
    def test_a_table_is_checked_against_what_exists(self):
        with cs.local() as fleet:
            user_table(fleet).pull(np.arange(1))
            fleet.table("user", dim=4, rule=cs.Adam(lr=0.5))  # the rate is the worker's
            for message, more in [("dim", {"dim": 5}), ("rule: kind", {"dim": 4, "rule": cs.SGD()}),
                                  ("rule: beta1", {"dim": 4, "rule": cs.Adam(beta1=0.5)}),
                                  ("initializer", {"dim": 4, "init": cs.Zero()})]:
                with self.subTest(message), self.assertRaisesRegex(cs.UsageError, f"exists with another {message}"):
                    fleet.table("user", **more)
            with self.assertRaisesRegex(cs.UsageError, "has no table 'item'.*\nfix: declare all tables"):
                fleet.table("item", dim=4)

    def test_two_fleets_live_side_by_side(self):
        with cs.local() as a, cs.local(servers=2) as b:
            user_table(a).push(np.arange(2), np.ones((2, 4), np.float32))
            a.commit()
            self.assertEqual((len(a.table("user")), user_table(b).pull(np.arange(2)).shape), (2, (2, 4)))
            self.assertEqual(len(b.table("user")), 0)


class Errors(unittest.TestCase):
    def test_errors_have_a_fix_and_the_exit_code_of_the_programs(self):
        with self.assertRaises(cs.UnreachableError) as caught:
            cs.connect("127.0.0.1:1", timeout=0.2)
        self.assertEqual(caught.exception.exit_code, 3)
        self.assertIn("cistern status --servers=127.0.0.1:1", str(caught.exception))
        self.assertIsInstance(caught.exception, ConnectionError)
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((str(again), again.exit_code), (str(caught.exception), 3))

    def test_a_closed_fleet_says_so(self):
        fleet = cs.local()
        table = user_table(fleet)
        table.pull(np.arange(1))
        fleet.close()
        with self.assertRaisesRegex(cs.Error, "closed"):
            table.pull(np.arange(1))

    def test_a_fleet_of_another_process_is_refused(self):
        with cs.local() as fleet:
            table = user_table(fleet)
            table.pull(np.arange(1))
            child = os.fork()
            if child == 0:
                try:
                    table.pull(np.arange(1))
                    code = 1
                except cs.Error as error:
                    code = 0 if "fork" in str(error) and "spawn" in error.fix else 2
                os._exit(code)
            self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_ctrl_c_ends_a_call_that_waits(self):
        program = "import sys, cistern_ps as cs\ntry:\n    cs.connect(sys.argv[1], timeout=3600)\n" \
                  "except KeyboardInterrupt:\n    print('interrupted', flush=True)\n    import os; os._exit(0)"
        with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts the connection and says nothing
            silent.settimeout(60)
            process = subprocess.Popen([sys.executable, "-c", program, f"127.0.0.1:{silent.getsockname()[1]}"],
                                       stdout=subprocess.PIPE, text=True)
            self.addCleanup(process.kill)
            connection, _ = silent.accept()  # so the call waits
            with connection:
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.communicate(timeout=60), ("interrupted\n", None))


class RemoteFleet(unittest.TestCase):
    def test_servers_of_other_processes_give_the_same_bits(self):
        from cistern_ps import programs

        with tempfile.TemporaryDirectory() as folder:
            servers, addresses = [], []
            for rank in range(2):
                server = subprocess.Popen(
                    [programs.find("cistern-server"), f"--rank={rank}", "--server_num=2", "--port=0", f"--data_dir={folder}"],
                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                self.addCleanup(server.stdout.close)
                self.addCleanup(server.wait)
                self.addCleanup(server.kill)
                addresses.append("127.0.0.1:" + server.stdout.readline().split("port=")[1].split()[0])
                servers.append(server)
            keys = np.arange(1000)
            with cs.connect(addresses) as remote, cs.local() as local:
                np.testing.assert_array_equal(user_table(remote).pull(keys), user_table(local).pull(keys))
                for fleet in (remote, local):
                    fleet.table("user").push(keys, np.ones((1000, 4), np.float32))
                    fleet.commit()
                self.assertEqual(remote.digests(), local.digests())
                with cs.connect(addresses) as other:
                    with self.assertRaisesRegex(cs.Error, r"(?s)^another writer is at work.*cs.connect\(..., take_over=True\)"):
                        other.claim()


class SixteenBits(unittest.TestCase):
    def test_rows_are_bfloat16_after_a_commit(self):
        keys = np.arange(1000)
        pushed = np.random.default_rng(1).uniform(-1, 1, (1000, 3)).astype(np.float32)
        with cs.local() as fleet:
            table = fleet.table("t", dim=3, rule=cs.Adam(), row_type="bfloat16")
            table.push(keys, pushed)
            fleet.commit()
            pulled = table.pull(keys)
            self.assertTrue(np.all(pulled.view(np.uint32) & 0xFFFF == 0))
            np.testing.assert_allclose(pulled, pushed, rtol=2**-8)
            self.assertFalse(np.array_equal(pulled, pushed))
            self.assertIs(fleet.table("t", dim=3, row_type="bfloat16"), table)
            with self.assertRaisesRegex(cs.UsageError, "row_type: bfloat16, not float32"):
                fleet.table("t", dim=3, row_type="float32")
            with self.assertRaisesRegex(cs.UsageError, "row_type='half'"):
                fleet.table("u", dim=3, row_type="half")


class Bounded(unittest.TestCase):
    def test_commits_remove_rows_above_max_rows_and_old_ones(self):
        keys = np.arange(100)
        for bounds, kept in ((cs.Bounds(max_rows=60), 60), (cs.Bounds(expire_passes=1), 50)):
            with cs.local() as fleet:
                table = fleet.table("t", dim=2, rule=cs.SGD(), init=cs.Zero(), bounds=bounds)
                self.assertTrue(table.is_bounded)
                table.push(keys, np.ones((100, 2), np.float32))
                fleet.commit()
                self.assertEqual(len(table), 100)  # those of the last commit stay
                for _ in range(2):
                    table.push(keys[:50], np.ones((50, 2), np.float32))
                    fleet.commit()
                self.assertEqual(np.count_nonzero(table.pull(keys, absent="zero")[:50]), 100)
                self.assertEqual(len(table), kept)

    def test_rows_of_today_stay(self):
        with cs.local() as fleet:
            bounds = cs.Bounds(expire_days=2)
            table = fleet.table("t", dim=1, rule=cs.SGD(), init=cs.Zero(), bounds=bounds)
            for keys in (np.arange(9), np.arange(1), np.arange(1)):
                table.push(keys, np.ones((len(keys), 1), np.float32))
                fleet.commit()
            self.assertEqual(len(table), 9)
            self.assertTrue(fleet.table("t", dim=1, rule=cs.SGD(), init=cs.Zero(), bounds=bounds).is_bounded)

    def test_rows_of_a_loop_that_commits_removed_start_anew(self):
        with cs.local() as fleet:
            table = fleet.table("t", dim=1, rule=cs.SGD(lr=1), init=cs.Zero(), bounds=cs.Bounds(expire_passes=1))
            rows = cs.rows.LocalRows(table)

            def step(keys):
                found = rows.look_up(np.array(keys))
                rows.add_gradients(found, -np.ones((len(keys), 1)))
                rows.step()
                fleet.commit()

            step([1, 2])
            step([1])  # 2 is due, and goes with this commit
            step([1, 2])
            np.testing.assert_array_equal(table.pull(np.array([1, 2]))[:, 0], [3, 1])

    def test_bounds_that_a_table_does_not_have_are_refused(self):
        with self.assertRaisesRegex(cs.UsageError, "bound nothing"):
            cs.Bounds()
        with self.assertRaisesRegex(cs.UsageError, "expire_days"):
            cs.Bounds(expire_days=-1)
        with self.assertRaisesRegex(cs.UsageError, "evict_by"):
            cs.Bounds(max_rows=1, evict_by="luck")
        with cs.local() as fleet:
            fleet.table("t", dim=1, bounds=cs.Bounds(max_rows=5)).pull(np.arange(1))
            fleet.table("t", dim=1, bounds=cs.Bounds(max_rows=5))
            with self.assertRaisesRegex(cs.UsageError, "bounds: max_rows is 5, not 6"):
                fleet.table("t", dim=1, bounds=cs.Bounds(max_rows=6))
            with self.assertRaisesRegex(cs.UsageError, "expire_days"):
                fleet.table("t", dim=1, bounds=cs.Bounds(max_rows=5, expire_days=7))


if __name__ == "__main__":
    unittest.main()
