"""What a Session and its fleet commit, and how it checks its arguments."""

import tempfile
import unittest
import warnings

import numpy as np

from row_model import KEYS, OFFSETS, Net, loss_of  # first: it skips the test where torch is missing

import torch

import cistern_ps as cs


class Commits(unittest.TestCase):
    """What a documented path trains is in the commit."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def open(self):
        fleet = cs.local(self.folder, servers=2)
        self.addCleanup(fleet.close)
        table = fleet.table("t", dim=4, rule=cs.Adam(lr=0.1), init=cs.Uniform(1))
        return fleet, table, cs.torch.EmbeddingBag(table, slots=2)

    def test_steps_without_a_session_are_in_the_fleets_commit(self):
        fleet, table, model = self.open()
        rows = cs.torch.RowOptimizer.of(model)
        for _ in range(3):
            model(KEYS, OFFSETS).square().sum().backward()
            rows.step()
        trained = table.rows.read(np.arange(6), False)
        self.assertEqual(fleet.commit().rows, {"t": 4})
        self.assertEqual(fleet.commit().number, 2)  # nothing is pushed twice
        fleet.close()
        fleet, table, model = self.open()
        np.testing.assert_array_equal(table.pull(np.arange(6)), trained)
        rows = cs.torch.RowOptimizer.of(model, steps=3)
        model(KEYS, OFFSETS).square().sum().backward()
        rows.step()
        self.assertEqual(rows.commit({"place": 4}).worker, {"place": 4})

    def test_steps_of_local_rows_are_in_the_fleets_commit(self):
        fleet, table, _ = self.open()
        rows = cs.rows.LocalRows(table)
        found = rows.look_up(np.array([3, 9]))
        rows.add_gradients(found, np.ones_like(found.weights))
        rows.step()
        fleet.commit()
        np.testing.assert_array_equal(table.pull(np.array([3, 9])), rows.read(np.array([3, 9])))
        self.assertEqual(len(table), 2)

    def test_a_failed_commit_of_trained_rows_can_be_repeated(self):
        fleet, table, model = self.open()
        model(KEYS, OFFSETS).sum().backward()
        cs.torch.RowOptimizer.of(model).step()
        with self.assertRaises(TypeError):
            fleet.commit({"place": object()})  # no JSON
        self.assertEqual(fleet.commit().rows, {"t": 4})

    def test_rows_that_are_pushed_replace_those_that_were_trained(self):
        fleet, table, model = self.open()
        rows = cs.torch.RowOptimizer.of(model)
        model(KEYS, OFFSETS).sum().backward()
        rows.step()
        fleet.commit()
        table.push(np.array([1]), np.full((1, 4), 9, np.float32))
        fleet.commit()
        np.testing.assert_array_equal(table.rows.read(np.array([1]), False), np.full((1, 4), 9, np.float32))

    def test_the_fleets_commit_does_not_take_rows_from_a_session(self):
        fleet, table, model = self.open()
        with cs.torch.Session(model, None, fleet, commit_every=None) as s:
            model(KEYS, OFFSETS).sum().backward()
            s.step()
            with self.assertRaisesRegex(cs.UsageError, r"Session has 1 steps.*\nfix: .*s.commit\(\)"):
                fleet.commit()
            s.commit()
            fleet.commit()

    def test_a_push_after_a_session_keeps_its_dense_weights(self):
        for expected in (1, 2):
            fleet, table, bag = self.open()
            torch.manual_seed(expected)
            model = Net(bag, torch.nn.Linear(8, 1))
            with cs.torch.Session(model, torch.optim.Adam(model.parameters()), fleet) as s:
                if expected == 2:
                    torch.testing.assert_close(model.fc.weight.detach(), trained)
                loss_of(model).backward()
                s.step()
            self.assertEqual(s.steps, expected)
            trained = model.fc.weight.detach().clone()
            table.push(np.array([77]), np.ones((1, 4), np.float32))
            fleet.commit()
            fleet.close()

    def test_a_session_of_embeddings_alone_continues(self):
        for steps in (2, 4):
            fleet, table, model = self.open()
            with cs.torch.Session(model, None, fleet) as s:
                for _ in range(2):
                    model(KEYS, OFFSETS).square().sum().backward()
                    s.step()
            self.assertEqual((s.steps, fleet.last_commit().rows), (steps, {"t": 4}))
            fleet.close()


class Loader:
    """A loader with a place."""

    def __iter__(self):
        return iter([])

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


class Checks(unittest.TestCase):
    """Arguments of a Session are checked when it is made."""

    def test_each_argument(self):
        class NoState:
            pass

        class BadState(Loader):
            def state_dict(self):
                return {"hook": print}

        class NoIteration(Loader):
            __iter__ = None

        scheduler = torch.optim.lr_scheduler.StepLR(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1), 1)
        for kind, message, more in [
            (cs.UsageError, "loader: DataLoader has no state_dict.*\nfix: .*StatefulDataLoader",
             {"loader": torch.utils.data.DataLoader([1, 2, 3])}),
            (cs.UsageError, "loader: list has no state_dict", {"loader": [1, 2, 3]}),
            (cs.UsageError, "loader: NoIteration cannot be iterated", {"loader": NoIteration()}),
            (cs.UsageError, r"state of the loader\['hook'\] is a builtin_function", {"loader": BadState()}),
            (cs.UsageError, r"objects\['x'\]: NoState has no state_dict", {"objects": {"x": NoState()}}),
            (cs.UsageError, r"objects\['x'\]\['hook'\] is a builtin", {"objects": {"x": BadState()}}),
            (TypeError, "objects: expected a dict", {"objects": [scheduler]}),
            (TypeError, "objects: a name: expected a str", {"objects": {1: scheduler}}),
            (cs.UsageError, "commit_every='soon'", {"commit_every": "soon"}),
            (cs.UsageError, "commit_every='1.2.3s'", {"commit_every": "1.2.3s"}),
            (cs.UsageError, "commit_every=0", {"commit_every": 0}),
            (TypeError, "commit_every: expected an integer; got float", {"commit_every": 30.0}),
            (TypeError, "rows_mb: expected an integer; got str", {"rows_mb": "1024"}),
            (cs.UsageError, "rows_mb=-1", {"rows_mb": -1}),
            (cs.UsageError, "prefetch: the model has no table 'u'; it has t", {"prefetch": {"u": 0}}),
            (TypeError, "prefetch: expected a dict", {"prefetch": ["t"]}),
            (TypeError, "name: expected a str", {"name": 3}),
            (cs.UsageError, "scaler: float has no state_dict", {"scaler": 1024.0}),
            (TypeError, "scaler: expected a torch.amp.GradScaler; got StepLR", {"scaler": scheduler}),
            (TypeError, "optimizer: expected an optimizer.*got the class SGD", {"optimizer": torch.optim.SGD}),
            (TypeError, "optimizer: .*got generator", {"optimizer": iter_parameters}),
            (TypeError, "model: expected a torch.nn.Module; got str", {"model": "net"}),
            (TypeError, "fleet: expected a fleet.*got str", {"fleet": "runs/a"}),
            (cs.UsageError, "no optimizer for the model's dense weights, such as fc.weight.*\nfix: .*Adam", {"optimizer": None}),
            (cs.UsageError, "LBFGS evaluates the loss several times", {"optimizer": several_losses}),
            (cs.UsageError, r"trains a tensor of shape \[3\] that is no parameter of the model", {"optimizer": other_parameter}),
        ]:
            with self.subTest(message), cs.local() as fleet:
                table = fleet.table("t", dim=4)
                model = Net(cs.torch.EmbeddingBag(table, slots=2), torch.nn.Linear(8, 1))
                arguments = {"model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1), "fleet": fleet, **more}
                if arguments["optimizer"] in (iter_parameters, other_parameter, several_losses):
                    arguments["optimizer"] = arguments["optimizer"](model)
                with self.assertRaisesRegex(kind, message):
                    cs.torch.Session(**arguments)

    def test_a_session_that_has_not_begun_is_refused(self):
        with cs.local() as fleet:
            model = cs.torch.EmbeddingBag(fleet.table("t", dim=4), slots=2)
            s = cs.torch.Session(model, None, fleet)
            model(KEYS, OFFSETS).sum().backward()
            for call in (s.step, s.commit):
                with self.assertRaisesRegex(cs.UsageError, r"has not begun.*\nfix: .*with statement"):
                    call()

    def test_a_learning_rate_is_checked_when_it_is_set(self):
        with cs.local() as fleet:
            table = fleet.table("t", dim=4, rule=cs.SGD(lr=0.5))
            for kind, wrong in ((TypeError, "0.1"), (cs.UsageError, float("nan")), (cs.UsageError, -1.0), (TypeError, None)):
                with self.assertRaises(kind):
                    table.lr = wrong
            self.assertEqual(table.lr, 0.5)
            table.lr = np.float32(0.25)
            self.assertEqual(table.lr, 0.25)

    def test_a_number_of_numpy_is_a_number_of_steps(self):
        with tempfile.TemporaryDirectory() as folder, cs.local(folder) as fleet:
            model = cs.torch.EmbeddingBag(fleet.table("t", dim=4), slots=2)
            s = cs.torch.Session(model, None, fleet, commit_every=np.int64(2))
            s.restore()
            for _ in range(4):
                model(KEYS, OFFSETS).sum().backward()
                s.step()
            self.assertEqual(fleet.last_commit().number, 2)

    def test_a_lazy_layer_is_named(self):
        with cs.local() as fleet, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = Net(cs.torch.EmbeddingBag(fleet.table("t", dim=4), slots=2), torch.nn.LazyLinear(1))
            with self.assertRaisesRegex(cs.UsageError, "fc.weight has no shape yet"):
                cs.torch.Session(model, torch.optim.SGD(model.parameters(), lr=0.1), fleet)

    def test_an_object_that_the_commit_does_not_have_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            for objects in ({}, {"place": Loader()}):
                with cs.local(folder) as fleet:
                    model = cs.torch.EmbeddingBag(fleet.table("t", dim=4), slots=2)
                    s = cs.torch.Session(model, None, fleet, objects=objects)
                    if objects:
                        with self.assertRaisesRegex(cs.UsageError, "commit 1.* has no object 'place'; it has none"):
                            s.restore()
                    else:
                        with s:
                            pass


def iter_parameters(model):
    return (p for p in model.parameters())


def several_losses(model):
    return torch.optim.LBFGS(model.parameters())


def other_parameter(model):
    return torch.optim.SGD([*model.parameters(), torch.nn.Parameter(torch.zeros(3))], lr=0.1)


if __name__ == "__main__":
    unittest.main()
