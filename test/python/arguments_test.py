"""Wrong arguments: a TypeError or UsageError that names the argument, and nothing is converted, cut or repeated."""

import unittest

import numpy as np

import cistern_ps as cs


def with_torch(test):
    try:
        import torch  # noqa: F401
    except ImportError as missing:
        return unittest.skip(str(missing))(test)
    return test


class Arguments(unittest.TestCase):
    def setUp(self):
        self.fleet = cs.local(servers=2)
        self.addCleanup(self.fleet.close)
        self.table = self.fleet.table("t", dim=4, rule=cs.Adam(), init=cs.Uniform(1))
        self.table.pull(np.arange(2))

    def refused(self, kind, message, call):
        with self.subTest(message), self.assertRaisesRegex(kind, message):
            call()

    def test_keys_are_taken_as_they_are_or_refused(self):
        keys = np.arange(4)
        for wrong in (None, "abc", b"12345678", keys > 1, keys.astype(">i8"), np.array([1, 2], object), np.int64(3), keys[::-1],
                      np.broadcast_to(np.int64(3), (4,)), np.zeros(2, [("a", "i8")]), np.array(["2020"], "M8[s]")):
            self.refused(TypeError, "^keys: expected int64 or uint64 of one dimension", lambda: self.table.pull(wrong))
        np.testing.assert_array_equal(self.table.pull(memoryview(keys)), self.table.pull(keys))

    def test_the_hint_fits_the_cause(self):
        keys = np.arange(4)
        for fix, wrong in [
            ("byte order is not this machine's; use .astype", keys.astype(">i8")),
            (r"numpy.array\(..., numpy.int64\)", [1, 2]),
            (r"numpy.array\(..., numpy.int64\)", range(3)),
            (r"numpy.array\(list\(...\), numpy.int64\)", {1, 2}),
            (r"numpy.array\(\[7\]\)", 7),
            ("hash the texts", ["u1", "u2"]),
            ("hash the texts", np.array(["u1", "u2"])),
            ("hash the texts", np.array(["u1", "u2"], object)),
            ("hash the texts", "u1"),
            (r"lost the last digits of ids above 2\*\*53", keys.astype(float)),
            (r"lost the last digits of ids above 2\*\*53", [1.0, 2.0]),
            ("a value is missing", np.array([1, None], object)),
            (r"\.astype\(numpy.int64\)", keys.astype(np.int32)),
            (r"\.view\(numpy.int64\)", np.array(["2020"], "M8[s]")),
            (r"\.reshape\(-1\)", keys.reshape(2, 2)),
            ("ascontiguousarray", keys[::2]),
            ("masked elements", np.ma.array([1, 2], mask=[0, 1])),
        ]:
            self.refused(TypeError, f"^keys: expected .*; got .*{fix}", lambda: self.table.pull(wrong))
        self.refused(TypeError, r"^rows: .*\.astype\(numpy.float32\)", lambda: self.table.push(keys, np.ones((4, 4))))

    def test_the_hint_for_a_column_fits_the_cause(self):
        try:
            import pandas as pd
        except ImportError as missing:
            self.skipTest(str(missing))
        for fix, wrong in [
            (r"got Series: use .to_numpy\(\)$", pd.Series([1, 2])),
            (r"got Index: use .to_numpy\(\)$", pd.Index([1, 2])),
            (r"got Series: use .to_numpy\(\); keys are integers; number or hash the texts", pd.Series(["a", "b"])),
            (r"got Series: use .to_numpy\(\); floats have lost", pd.Series([1.0, 2.0])),
            ("got Series: a value is missing: drop or fill it", pd.Series([1, None], dtype="Int64")),
            ("got Series: a value is missing: drop or fill it", pd.Series([1, None])),
            (r'got DataFrame: name one column: frame\["item"\]', pd.DataFrame({"item": [1]})),
        ]:
            self.refused(TypeError, fix, lambda: self.table.pull(wrong))

    @with_torch
    def test_the_hint_for_a_tensor_fits_the_cause(self):
        import torch

        keys = torch.arange(4)
        for fix, wrong in [
            (r"\.long\(\)", keys.int()),
            ("lost the last digits", keys.float().requires_grad_()),
            (r"\.reshape\(-1\)", keys.reshape(2, 2)),
            (r"\.contiguous\(\)", keys[::2]),
            (r"\.to_dense\(\)", keys.to_sparse()),
        ]:
            self.refused(TypeError, f"^keys: .*; got .*{fix}", lambda: self.table.pull(wrong))
        bag = cs.torch.EmbeddingBag(self.table, slots=1)
        self.refused(TypeError, r"^offsets: .*got list: use numpy.array", lambda: bag(keys, [0, 1, 2, 3, 4]))
        self.refused(TypeError, r"^rows: .*\.float\(\)", lambda: self.table.push(keys, torch.ones(4, 4).double()))

    def test_rows_are_taken_as_they_are_or_refused(self):
        keys, ones = np.arange(4), np.ones((4, 4), np.float32)
        for kind, message, rows in [
            (TypeError, "rows: .*float64", ones.astype(np.float64)),
            (TypeError, "rows: .*int32", ones.astype(np.int32)),
            (TypeError, "rows: .*list", ones.tolist()),
            (TypeError, "rows: .*NoneType", None),
            (TypeError, "rows: .*strides", np.ones((4, 8), np.float32)[:, ::2]),
            (ValueError, "rows: expected one row for each key", ones[:1]),
            (ValueError, r"rows: expected the shape \[n, 4\], or \[n, 12\] with state; got \[4, 5\]", np.ones((4, 5), np.float32)),
            (ValueError, r"rows: .*got \[4\]", ones[0]),
        ]:
            self.refused(kind, message, lambda: self.table.push(keys, rows))
        self.fleet.commit()
        self.assertEqual(len(self.table), 0)

    def test_keys_of_2_to_the_63_and_above_are_pushed_scanned_and_pulled(self):
        keys = np.array([2**63, 2**63 + 1, 2**64 - 1, 0], np.uint64)
        rows = np.arange(16, dtype=np.float32).reshape(4, 4)
        self.table.push(keys, rows)
        self.table.push(np.empty(0, np.int64), np.empty((0, 4), np.float32))
        self.fleet.commit()
        np.testing.assert_array_equal(self.table.pull(keys), rows)
        scanned = np.concatenate([k for k, _ in self.table.scan()]).view(np.uint64)
        np.testing.assert_array_equal(np.sort(scanned), np.sort(keys))

    def test_a_pass_without_all_its_pushes_cannot_be_committed(self):
        self.table.push(np.array([1]), np.ones((1, 4), np.float32))
        with self.assertRaisesRegex(cs.UsageError, "key 2 has NaN"):
            self.table.push(np.array([2]), np.full((1, 4), np.nan, np.float32))
        with self.assertRaises(cs.Error) as caught:
            self.fleet.commit()
        self.assertIn("abort", caught.exception.fix)
        self.fleet.abort()
        self.table.push(np.array([3]), np.ones((1, 4), np.float32))
        self.fleet.commit()
        self.assertEqual(np.concatenate([k for k, _ in self.table.scan()]).tolist(), [3])

    def test_numbers_names_and_rules_are_checked(self):
        def fresh(**more):
            with cs.local() as fleet:
                fleet.table("x", **{"dim": 4, **more}).pull(np.arange(1))

        for kind, message, call in [
            (TypeError, "dim: expected an integer; got str", lambda: fresh(dim="4")),
            (TypeError, "dim: expected an integer; got float", lambda: fresh(dim=4.0)),
            (cs.UsageError, "dim=0", lambda: fresh(dim=0)),
            (cs.UsageError, "seed=-1", lambda: fresh(seed=-1)),
            (TypeError, "rule: .*the class Adam", lambda: fresh(rule=cs.Adam)),
            (TypeError, "init: .*got str", lambda: fresh(init="zero")),
            (cs.UsageError, "lr=nan", lambda: cs.Adam(lr=float("nan"))),
            (TypeError, "lr: expected a number; got str", lambda: cs.Adam(lr="1")),
            (cs.UsageError, "range=-1", lambda: cs.Uniform(-1)),
            (TypeError, "servers: expected an integer", lambda: cs.local(servers="2")),
            (cs.UsageError, "servers=0", lambda: cs.local(servers=0)),
            (TypeError, "servers: .*got int", lambda: cs.connect(5)),
            (TypeError, "timeout: expected a number", lambda: cs.connect("127.0.0.1:1", timeout="1")),
            (cs.UsageError, "slots=0", lambda: cs.data.norm("x", slots=0)),
            (TypeError, "batch: expected an integer", lambda: cs.data.norm("x", slots=1, batch="4")),
            (cs.UsageError, "source: no files", lambda: cs.data.norm([], slots=1)),
            (cs.UsageError, "piece=0", lambda: list(self.table.scan(0))),
            (TypeError, "config: expected the path", lambda: cs.train(5, out="x")),
        ]:
            self.refused(kind, message, call)

    def test_arrays_that_never_change_are_no_place_for_a_result(self):
        class Fixed:  # as JAX's: DLPack does not say that it may not be written
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **_):
                return self.array.__dlpack__()

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        out = Fixed(np.zeros((2, 4), np.float32))
        self.refused(TypeError, "out: .*read-only", lambda: self.table.pull(np.arange(2), out=out))
        np.testing.assert_array_equal(out.array, np.zeros((2, 4)))

    @with_torch
    def test_memory_is_shared_with_torch(self):
        import torch

        out = torch.zeros(2, 4)
        place = out.data_ptr()
        self.assertIs(self.table.pull(torch.arange(2), out=out), out)
        self.assertEqual(out.data_ptr(), place)
        np.testing.assert_array_equal(out.numpy(), self.table.pull(np.arange(2)))
        batch = cs.data.Batch(1, np.zeros(1, np.float32), np.zeros((1, 0), np.float32),
                              [(np.arange(3), np.arange(4, dtype=np.int32))])
        tensors = batch.torch()
        self.assertEqual(tensors.keys.data_ptr(), batch.keys.ctypes.data)
        self.assertEqual(tensors.offsets.data_ptr(), batch.offsets.ctypes.data)
        result = torch.from_dlpack(self.table.pull(np.arange(2)))
        self.assertEqual(result.shape, (2, 4))

    @with_torch
    def test_offsets_of_modules_are_checked(self):
        import torch

        keys, bag, rows = torch.arange(4), cs.torch.EmbeddingBag(self.table, slots=1), cs.torch.Embedding(self.table)
        for message, call in [
            ("offsets: from 0 to 4294967296", lambda: bag(keys, torch.tensor([0, 2**32, 4]))),
            ("offsets: from -1 to 4", lambda: bag(keys, torch.tensor([0, -1, 4]))),
            ("the first to be 0 and the last to be the number of keys, 4", lambda: rows(keys, torch.tensor([0, 2]))),
            ("offsets: expected the first to be 0", lambda: rows(keys, torch.tensor([-2, 4]))),
            ("expected ascending positions", lambda: rows(keys, torch.tensor([0, 3, 1, 4]))),
            ("length=-1", lambda: rows(keys, torch.tensor([0, 4]), length=-1)),
            ("slots=0", lambda: cs.torch.EmbeddingBag(self.table, slots=0)),
            ("expected weights without a gradient", lambda: bag(keys, torch.tensor([0, 4]), torch.ones(4, requires_grad=True))),
        ]:
            self.refused(cs.UsageError, message, call)
        with self.assertRaisesRegex(TypeError, "table: .*got str"):
            cs.torch.EmbeddingBag("t", slots=1)
        for weights, message in ((torch.ones(3), "3 of them for 4 keys"), (torch.full([4], torch.nan), "a weight is not a finite number")):
            self.refused(ValueError, message, lambda weights=weights: bag(keys, torch.tensor([0, 4]), weights))
        with self.assertRaisesRegex(TypeError, "per_sample_weights: .*got list"):
            bag(keys, torch.tensor([0, 4]), [1.0] * 4)


if __name__ == "__main__":
    unittest.main()
