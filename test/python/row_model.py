"""Models whose rows are in a fleet, for tests that compare them with torch; without torch these are skipped."""

import copy
import sys
import unittest

import numpy as np

try:
    import torch
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import cistern_ps as cs

RATE = 0.25
KEYS, OFFSETS = torch.tensor([1, 2, 3, 1, 5]), torch.tensor([0, 2, 3, 4, 5])


class Net(torch.nn.Module):
    """Two slots, summed, and one weight for each of their floats; `emb` and `fc` are Cistern's or torch's."""

    def __init__(self, emb, fc):
        super().__init__()
        self.emb, self.fc = emb, fc

    def forward(self, keys=KEYS, offsets=OFFSETS):
        return self.fc(self.emb(keys, offsets).reshape(-1, 8)).squeeze(1)


def loss_of(model):
    return model().square().sum()


class ModelCase(unittest.TestCase):
    """A model whose rows are in a fleet, and the same model with parameters of torch."""

    def setUp(self):
        self.begin()

    def begin(self):
        """A model on a new fleet."""
        torch.manual_seed(3)
        self.fleet = cs.local(servers=2)
        self.addCleanup(self.fleet.close)
        self.table = self.fleet.table("t", dim=4, rule=cs.SGD(lr=RATE), init=cs.Uniform(1))
        self.model = Net(cs.torch.EmbeddingBag(self.table, slots=2), torch.nn.Linear(8, 1))

    def session(self, optimizer="sgd", **more):
        if optimizer == "sgd":
            optimizer = torch.optim.SGD(self.model.parameters(), lr=RATE)
        s = cs.torch.Session(self.model, optimizer, self.fleet, commit_every=None, **more)
        s.restore()
        return s

    def weights(self):
        return self.table.rows.read(np.arange(6), False)

    def reference(self):
        """The same model with a parameter for the rows, and its optimizer."""
        rows = torch.from_numpy(self.table.pull(np.arange(6)))
        bag = torch.nn.EmbeddingBag.from_pretrained(rows, freeze=False, mode="sum", include_last_offset=True)
        model = Net(bag, copy.deepcopy(self.model.fc))
        return model, torch.optim.SGD(model.parameters(), lr=RATE)

    def compare(self, idiom, scaler=None):
        """idiom(model, optimizer, step) does the same to both models, three times."""
        s = self.session(scaler=None if scaler is None else scaler())
        model, optimizer = self.reference()
        before = self.weights()
        for _ in range(3):
            idiom(s.model, s.optimizer, s.step)
            idiom(model, optimizer, lambda: (optimizer.step(), optimizer.zero_grad()))
        np.testing.assert_allclose(self.weights(), model.emb.weight.detach().numpy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(s.model.fc.weight.detach(), model.fc.weight.detach(), rtol=1e-5, atol=1e-6)
        return float(np.abs(self.weights() - before).max())

    def refused(self, words, idiom):
        s = self.session()
        before, dense = self.weights(), self.model.fc.weight.detach().clone()
        with self.assertRaisesRegex(cs.Error, words) as caught:
            idiom(s.model, s.optimizer, s.step)
        self.assertTrue(caught.exception.fix)
        np.testing.assert_array_equal(self.weights(), before)
        torch.testing.assert_close(self.model.fc.weight.detach(), dense)


class Scaler:
    """What torch's GradScaler does, for versions that have none for the CPU."""

    def __init__(self, scale):
        self.scale_, self.unscaled, self.overflow = scale, False, False

    def scale(self, loss):
        return loss * self.scale_

    def unscale_(self, optimizer):
        if self.unscaled:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        grads = [p.grad for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        self.overflow = not all(bool(torch.isfinite(g).all()) for g in grads)
        for grad in grads:
            grad.mul_(1 / self.scale_)
        self.unscaled = True

    def step(self, optimizer):
        if not self.unscaled:
            self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self):
        self.scale_ *= 0.5 if self.overflow else 1
        self.unscaled = False

    def is_enabled(self):
        return True

    def state_dict(self):
        return {"scale": self.scale_}

    def load_state_dict(self, state):
        self.scale_ = state["scale"]


def new_scaler(scale):
    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler("cpu", init_scale=scale)
    return Scaler(scale)
