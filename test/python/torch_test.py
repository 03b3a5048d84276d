"""Embeddings and sessions for PyTorch: gradients against nn.EmbeddingBag, and the bits after a resume."""

import sys
import tempfile
import unittest

import numpy as np

try:
    import torch
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import cistern_ps as cs


def jagged(rng, outputs, keys=50):
    """Keys and offsets with repeated keys and empty outputs."""
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 4, outputs))])
    return torch.from_numpy(rng.integers(0, keys, offsets[-1])), torch.from_numpy(offsets)


class Reference(torch.nn.Module):
    """The same rows in nn.EmbeddingBag, in float64."""

    def __init__(self, table, mode, slots, keys=50):
        super().__init__()
        rows = torch.from_numpy(table.pull(np.arange(keys))).double()
        self.bag = torch.nn.EmbeddingBag.from_pretrained(rows, freeze=False, mode=mode, include_last_offset=True)
        self.slots = slots

    def forward(self, keys, offsets, weights=None):
        return self.bag(keys, offsets, weights).view(-1, self.slots, self.bag.embedding_dim)


class EmbeddingBag(unittest.TestCase):
    def setUp(self):
        self.fleet = cs.local(servers=2)
        self.addCleanup(self.fleet.close)
        self.table = self.fleet.table("t", dim=6, rule=cs.SGD(lr=0.5), init=cs.Uniform(1))

    def test_sums_and_gradients_are_those_of_torch(self):
        rng = np.random.default_rng(3)
        for mode in ("sum", "mean"):
            with self.subTest(mode):
                self.table.rows.clear()
                ours = cs.torch.EmbeddingBag(self.table, slots=3, mode=mode)
                theirs = Reference(self.table, mode, 3)
                rows = cs.torch.RowOptimizer.of(ours)
                sgd = torch.optim.SGD(theirs.parameters(), lr=0.5)
                for _ in range(3):
                    keys, offsets = jagged(rng, 12)
                    scale = torch.from_numpy(rng.standard_normal((4, 3, 6)))
                    a, b = ours(keys, offsets), theirs(keys, offsets)
                    torch.testing.assert_close(a.double(), b, atol=1e-5, rtol=1e-5)
                    (a * scale.float()).sum().backward()
                    (b * scale).sum().backward()
                    rows.step()
                    sgd.step()
                    sgd.zero_grad()
                got = self.table.rows.read(np.arange(50), False)
                torch.testing.assert_close(torch.from_numpy(got).double(), theirs.bag.weight.detach(), atol=1e-4, rtol=1e-4)

    def test_weighted_sums_and_means_are_those_of_torch(self):
        rng = np.random.default_rng(4)
        for mode in ("sum", "mean"):
            with self.subTest(mode):
                self.table.rows.clear()
                ours = cs.torch.EmbeddingBag(self.table, slots=3, mode=mode)
                theirs = Reference(self.table, "sum", 3)  # torch has no weighted mean: it is a sum of shares
                keys, offsets = jagged(rng, 12)
                weights = torch.from_numpy(rng.choice([0.5, -0.25, 2, 0], len(keys)).astype(np.float32))
                shares = weights.double()
                if mode == "mean":
                    total = torch.zeros(12, dtype=torch.float64).index_add_(0, torch.repeat_interleave(torch.arange(12), offsets.diff()), shares)
                    total = total.repeat_interleave(offsets.diff())
                    shares = torch.where(total == 0, 0.0, shares / total)
                a, b = ours(keys, offsets, weights), theirs(keys, offsets, shares)
                torch.testing.assert_close(a.double(), b, atol=1e-5, rtol=1e-5)
                scale = torch.from_numpy(rng.standard_normal((4, 3, 6)))
                (a * scale.float()).sum().backward()
                (b * scale).sum().backward()
                cs.torch.RowOptimizer.of(ours).step()
                torch.optim.SGD(theirs.parameters(), lr=0.5).step()
                got = self.table.rows.read(np.arange(50), False)
                torch.testing.assert_close(torch.from_numpy(got).double(), theirs.bag.weight.detach(), atol=1e-4, rtol=1e-4)
                ours.eval()
                np.testing.assert_allclose(ours(keys, offsets, weights.numpy()).numpy(), theirs(keys, offsets, shares).detach().numpy(), atol=1e-4)

    def test_two_forward_passes_before_a_step_add_up(self):
        bag = cs.torch.EmbeddingBag(self.table, slots=1)
        rows = cs.torch.RowOptimizer.of(bag)
        before = self.table.pull(np.array([7]))
        one, two = torch.tensor([7]), torch.tensor([0, 1])
        (bag(one, two).sum() + 2 * bag(one, two).sum()).backward()
        rows.step()
        np.testing.assert_allclose(self.table.rows.read(np.array([7]), False), before - 0.5 * 3, rtol=1e-6)

    def test_adam_moves_rows_as_torch_does(self):
        table = self.fleet  # another fleet: tables of one are made together
        with cs.local() as fleet:
            table = fleet.table("a", dim=6, rule=cs.Adam(lr=0.01, epsilon=1e-8), init=cs.Uniform(1))
            ours, theirs = cs.torch.EmbeddingBag(table, slots=1), Reference(table, "sum", 1)
            rows = cs.torch.RowOptimizer.of(ours)
            adam = torch.optim.Adam(theirs.parameters(), lr=0.01)
            keys, offsets = torch.arange(50), torch.arange(51)
            for step in range(20):
                scale = torch.full((50, 1, 6), 1.0 + step)
                (ours(keys, offsets) * scale).square().sum().backward()
                (theirs(keys, offsets) * scale).square().sum().backward()
                rows.step(), adam.step(), adam.zero_grad()
            got = torch.from_numpy(table.rows.read(np.arange(50), False)).double()
            torch.testing.assert_close(got, theirs.bag.weight.detach(), atol=1e-5, rtol=1e-5)

    def test_its_one_parameter_has_two_elements(self):
        bag = cs.torch.EmbeddingBag(self.table, slots=2)
        self.assertEqual([(n, p.numel()) for n, p in bag.named_parameters()], [("stand_in", 2)])
        self.assertEqual(list(bag.buffers()), [])

    def test_eval_keeps_no_row_and_reads_absent_keys_as_asked(self):
        keys, offsets = torch.tensor([1, 2]), torch.tensor([0, 1, 2])
        bag = cs.torch.EmbeddingBag(self.table, slots=1).eval()
        self.assertEqual(bag(keys, offsets).abs().sum().item(), 0)
        self.assertEqual(self.table.rows.size, 0)
        first = cs.torch.EmbeddingBag(self.table, slots=1, absent="first").eval()
        np.testing.assert_array_equal(first(keys, offsets)[:, 0].numpy(), self.table.pull(keys.numpy()))
        with torch.no_grad():
            first.train()(keys, offsets)
        self.assertEqual(self.table.rows.size, 0)

    def test_l2_adds_the_rows_themselves_to_their_gradients(self):
        bag = cs.torch.EmbeddingBag(self.table, slots=1, l2=0.1)
        before = self.table.pull(np.array([4]))
        (bag(torch.tensor([4, 4]), torch.tensor([0, 1, 2])) * 0).sum().backward()
        cs.torch.RowOptimizer.of(bag).step()
        np.testing.assert_allclose(self.table.rows.read(np.array([4]), False), before * (1 - 0.05), rtol=1e-5)

    def test_clipping_counts_rows_and_dense_weights_together(self):
        """As torch does with both as parameters; the same keys in two forward passes are one gradient."""
        with cs.local() as fleet:
            table = fleet.table("t", dim=4, rule=cs.SGD(lr=1.0), init=cs.Uniform(1.0), seed=3)
            keys, offsets = torch.tensor([5, 7, 5, 9]), torch.tensor([0, 1, 2, 3, 4])
            own = torch.nn.ModuleList([cs.torch.EmbeddingBag(table, slots=1), torch.nn.Linear(4, 1)])
            first = table.pull(np.array([5, 7, 9]))
            other = torch.nn.ParameterList([torch.from_numpy(first.copy()), own[1].weight.detach().clone(),
                                            own[1].bias.detach().clone()])
            for _ in range(2):
                (own[1](own[0](keys, offsets).flatten(1)) * 10).square().sum().backward()
                rows = other[0][torch.tensor([0, 1, 0, 2])]
                ((rows @ other[1].T + other[2]) * 10).square().sum().backward()
            norm = cs.torch.clip_grad_norm_(own, 2.0)
            expected = torch.nn.utils.clip_grad_norm_(other, 2.0)
            self.assertAlmostEqual(norm / float(expected), 1, places=5)
            np.testing.assert_allclose(own[1].weight.grad.numpy(), other[1].grad.numpy(), rtol=1e-4)
            cs.torch.RowOptimizer.of(own).step()
            moved = first - table.rows.read(np.array([5, 7, 9]), True)
            np.testing.assert_allclose(moved, other[0].grad.numpy(), rtol=1e-3, atol=1e-5)
            self.assertAlmostEqual(cs.torch.clip_grad_norm_(own, 100.0), float(own[1].weight.grad.square().sum()
                                   + own[1].bias.grad.square().sum()) ** 0.5, places=4)
            with self.assertRaises(cs.UsageError):
                cs.torch.clip_grad_norm_(own, 0)

    def test_a_gradient_that_is_not_finite_names_its_key(self):
        bag = cs.torch.EmbeddingBag(self.table, slots=1)
        (bag(torch.tensor([9]), torch.tensor([0, 1])) * float("nan")).sum().backward()
        with self.assertRaisesRegex(cs.Error, "key 9 is not finite"):
            cs.torch.RowOptimizer.of(bag).step()

    def test_wrong_offsets_are_refused(self):
        bag = cs.torch.EmbeddingBag(self.table, slots=2)
        with self.assertRaisesRegex(cs.UsageError, "2 slots"):
            bag(torch.tensor([1]), torch.tensor([0, 1]))
        with self.assertRaisesRegex(ValueError, "the last to be the number of keys"):
            bag(torch.tensor([1]), torch.tensor([0, 1, 2]))
        with self.assertRaisesRegex(TypeError, "keys: .*float32"):
            bag(torch.tensor([1.0]), torch.tensor([0, 1, 1]))


class Embedding(unittest.TestCase):
    def test_sequences_are_padded_and_keep_their_last_keys(self):
        with cs.local() as fleet:
            table = fleet.table("t", dim=3, init=cs.Uniform(1), rule=cs.SGD(lr=1))
            keys, offsets = torch.tensor([5, 6, 7, 8, 9]), torch.tensor([0, 3, 3, 5])
            module = cs.torch.Embedding(table)
            rows = torch.from_numpy(table.pull(keys.numpy()))
            torch.testing.assert_close(module(keys), rows)
            padded, mask = module(keys, offsets)
            self.assertEqual(mask.tolist(), [[True] * 3, [False] * 3, [True, True, False]])
            torch.testing.assert_close(padded[0], rows[:3])
            torch.testing.assert_close(padded[2, :2], rows[3:])
            self.assertEqual(padded[1].abs().sum(), 0)
            cut, mask = module(keys, offsets, length=2)
            self.assertEqual((cut.shape, mask.tolist()), ((3, 2, 3), [[True, True], [False, False], [True, True]]))
            torch.testing.assert_close(cut[0], rows[1:3])
            cut.sum().backward()  # the key that was cut off has no gradient
            cs.torch.RowOptimizer.of(module).step()
            moved = torch.from_numpy(table.rows.read(keys.numpy(), False))
            torch.testing.assert_close(moved, rows - torch.tensor([0.0, 1, 1, 1, 1])[:, None])


def data(steps=30, batch=16):
    """A loader whose place is a number."""

    class Loader:
        at = 0

        def state_dict(self):
            return {"at": self.at}

        def load_state_dict(self, state):
            self.at = state["at"]

        def __iter__(self):
            while self.at < steps:
                rng = np.random.default_rng(self.at)
                self.at += 1
                keys = torch.from_numpy(rng.integers(0, 200, batch * 3))
                yield keys, torch.arange(batch * 3 + 1), torch.from_numpy(rng.integers(0, 2, batch)).float()

    return Loader()


class Net(torch.nn.Module):
    def __init__(self, table):
        super().__init__()
        self.emb = cs.torch.EmbeddingBag(table, slots=3)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(12, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(),
                                       torch.nn.Dropout(0.3), torch.nn.Linear(8, 1))

    def forward(self, keys, offsets):
        return self.mlp(self.emb(keys, offsets).flatten(1)).squeeze(1)


def session(folder, optimizer=torch.optim.Adam, width=8, **more):
    fleet = cs.local(folder, servers=2)
    table = fleet.table("t", dim=4, rule=cs.Adam(lr=0.01), init=cs.Uniform(0.1))
    torch.manual_seed(5)
    model = Net(table)
    if width != 8:
        model.mlp[0] = torch.nn.Linear(12, width)
    opt = optimizer(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(opt, 4, 0.9)
    s = cs.torch.Session(model, opt, fleet, loader=data(), objects={"scheduler": scheduler}, **more)
    return s, scheduler


def train(s, scheduler, until=10**9):
    with s:
        for keys, offsets, label in s.batches():
            loss = torch.nn.functional.binary_cross_entropy_with_logits(s.model(keys, offsets), label)
            loss.backward()
            s.step()
            scheduler.step()
            if s.steps >= until:
                raise KeyboardInterrupt
    return s.fleet.digests()


class Session(unittest.TestCase):
    def test_a_restored_training_ends_with_the_same_bits(self):
        for optimizer in (torch.optim.Adam, torch.optim.Adagrad, torch.optim.RMSprop,
                          lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=0.9)):
            with self.subTest(optimizer), tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
                s, scheduler = session(a, optimizer, commit_every=None)
                whole = train(s, scheduler)
                s.fleet.close()
                for until in (7, 8, 22, 10**9):
                    s, scheduler = session(b, optimizer, commit_every=5)
                    try:
                        parts = train(s, scheduler, until)
                    except KeyboardInterrupt:
                        pass
                    rates = [g["lr"] for g in s.optimizer.param_groups]
                    s.fleet.close()
                self.assertEqual(parts, whole)
                self.assertAlmostEqual(rates[0], 0.01 * 0.9**7, places=12)

    def test_a_failed_commit_can_be_repeated(self):
        digests = []
        for fail in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                s, scheduler = session(folder, commit_every=4)
                commit, left = s.fleet.commit, [3]

                def failing(worker):
                    left[0] -= 1
                    if fail and left[0] == 0:
                        raise cs.Error("the disk is full")
                    return commit(worker)

                s.fleet.commit = failing
                if not fail:
                    train(s, scheduler)
                else:
                    with self.assertRaisesRegex(cs.Error, "full"):
                        train(s, scheduler)
                    self.assertEqual((s.steps, s.fleet.last_commit().number), (12, 2))
                    s.commit()
                    self.assertEqual(s.fleet.last_commit().number, 3)
                    for keys, offsets, label in s.batches():
                        torch.nn.functional.binary_cross_entropy_with_logits(s.model(keys, offsets), label).backward()
                        s.step()
                        scheduler.step()
                    s.commit()
                digests.append(s.fleet.digests())
                s.fleet.close()
        self.assertEqual(*digests)

    def test_restore_drops_what_came_after_the_last_commit(self):
        with tempfile.TemporaryDirectory() as folder:
            s, scheduler = session(folder, commit_every=None)
            s.restore()
            done = []
            for keys, offsets, label in s.batches():
                loss = torch.nn.functional.binary_cross_entropy_with_logits(s.model(keys, offsets), label)
                loss.backward()
                s.step()
                done.append(loss.item())
                if len(done) == 5:
                    s.commit()
                if len(done) == 9:
                    break
            self.assertEqual(s.restore().number, 1)
            again = []
            for keys, offsets, label in s.batches():
                loss = torch.nn.functional.binary_cross_entropy_with_logits(s.model(keys, offsets), label)
                loss.backward()
                s.step()
                again.append(loss.item())
                if len(again) == 4:
                    break
            self.assertEqual(again, done[5:])
            s.fleet.close()

    def test_rows_that_are_pulled_ahead_change_no_bit(self):
        with cs.local() as fleet:
            table = fleet.table("t", dim=4, init=cs.Uniform(0.1))
            keys = np.array([3, 9, 3])
            table.rows.prefetch(keys)
            self.assertEqual(table.rows.size, 2)
            table.rows.look_up(np.array([9, 4]))
            table.rows.prefetch(keys)
            self.assertEqual(table.rows.size, 3)
            np.testing.assert_array_equal(table.rows.read(keys, False), table.pull(keys))

    def test_a_commit_of_another_model_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            s, scheduler = session(folder)
            train(s, scheduler)
            s.fleet.close()
            with self.assertRaisesRegex(cs.UsageError, "exists with"):
                session(folder, width=9)

    def test_saved_weights_know_their_commit(self):
        with tempfile.TemporaryDirectory() as folder:
            s, scheduler = session(folder)
            train(s, scheduler)
            weights = s.model.state_dict()
            s.model.load_state_dict(weights)
            s.fleet.table("t").push(np.array([1]), np.ones((1, 4), np.float32))
            s.fleet.commit()
            with self.assertRaisesRegex(cs.UsageError, "these weights belong to table 't' at commit"):
                s.model.load_state_dict(weights)
            s.fleet.close()

    def test_a_full_memory_of_rows_commits_and_goes_on_with_the_same_bits(self):
        digests = []
        for rows_mb in (1024, 0):
            with tempfile.TemporaryDirectory() as folder:
                s, scheduler = session(folder, rows_mb=rows_mb, commit_every=None)
                digests.append(train(s, scheduler))
                self.assertEqual(s.fleet.last_commit().number > 20, rows_mb == 0)
                s.fleet.close()
        self.assertEqual(*digests)


if __name__ == "__main__":
    unittest.main()
