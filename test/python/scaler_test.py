"""Gradient scalers of PyTorch, with a session, without one, and in its commits."""

import tempfile
import unittest

import numpy as np

from row_model import KEYS, OFFSETS, RATE, ModelCase, loss_of, new_scaler  # first: it skips the test where torch is missing

import torch

import cistern_ps as cs


class Scalers(ModelCase):
    def test_a_scaler_that_the_session_does_not_know(self):
        scalers = {}

        def scaled(model, optimizer, step):
            scaler = scalers.setdefault(id(model), new_scaler(1024.0))
            scaler.scale(loss_of(model)).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            step()
            scaler.update()

        self.assertGreater(self.compare(scaled), 0.01)

    def test_a_scaler_of_the_session_unscales_and_skips_what_overflows(self):
        """The loss overflows in the first two steps, so the reference skips them."""
        for unscale_for_clipping in (False, True):
            self.begin()
            s = self.session(scaler=new_scaler(2.0**20))
            model, optimizer = self.reference()
            scaler, moved = new_scaler(2.0**20), []
            big = torch.tensor(2.0**108)
            for i in range(4):
                before = self.weights()
                factor = big if i < 2 else torch.tensor(1.0)
                s.scaler.scale(loss_of(s.model) * factor).backward()
                scaler.scale(loss_of(model) * factor).backward()
                if unscale_for_clipping:
                    s.scaler.unscale_(s.optimizer)
                    scaler.unscale_(optimizer)
                s.step()
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
                moved.append(not np.array_equal(before, self.weights()))
            self.assertEqual(moved, [False, False, True, True])
            self.assertEqual(s.steps, 2)
            self.assertEqual(s.scaler.state_dict()["scale"], scaler.state_dict()["scale"])
            np.testing.assert_allclose(self.weights(), model.emb.weight.detach().numpy(), rtol=1e-5, atol=1e-6)

    def test_a_scaler_without_a_session(self):
        rows = cs.torch.RowOptimizer.of(self.model)
        optimizer = torch.optim.SGD(self.model.parameters(), lr=RATE)
        model, other = self.reference()
        scaler = new_scaler(512.0)
        scaler.scale(loss_of(self.model)).backward()
        scaler.step(optimizer)
        rows.step()
        scaler.update()
        loss_of(model).backward()
        other.step()
        np.testing.assert_allclose(self.weights(), model.emb.weight.detach().numpy(), rtol=1e-5, atol=1e-6)
        with self.assertRaisesRegex(cs.UsageError, "GradScaler"):
            scaler.step(rows)
        self.fleet.close()

    def test_a_scaler_does_not_take_a_session_for_an_optimizer(self):
        s = self.session()
        scaler = new_scaler(2.0)
        scaler.scale(loss_of(self.model)).backward()
        for call in (scaler.step, scaler.unscale_):
            with self.assertRaisesRegex(cs.UsageError, r"Session\(..., scaler=scaler\)"):
                call(s)

    @unittest.skipUnless(hasattr(torch.amp, "GradScaler"), "torch.amp.GradScaler is missing")
    def test_a_scaler_that_is_not_enabled_changes_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            for enabled in (False, True):
                with cs.local(folder) as fleet:
                    model = cs.torch.EmbeddingBag(fleet.table("t", dim=4, rule=cs.SGD(lr=RATE)), slots=2)
                    scaler = torch.amp.GradScaler("cpu", enabled=enabled)
                    with cs.torch.Session(model, None, fleet, scaler=scaler) as s:
                        scaler.scale(model(KEYS, OFFSETS).sum()).backward()
                        s.step()
            self.assertEqual(s.steps, 2)

    def test_a_second_step_of_the_optimizer_is_refused(self):
        for options in ({}, {"foreach": True}):
            self.begin()
            optimizer = torch.optim.Adam(self.model.parameters(), **options)
            s = self.session(optimizer)
            for call in (optimizer.step, optimizer.step):
                loss_of(self.model).backward()
                call()
                with self.assertRaisesRegex(cs.UsageError, "would step it again.*\nfix: leave out optimizer.step"):
                    s.step()
                s.restore()
            loss_of(self.model).backward()
            s.step()

    def test_the_scale_is_in_the_commit(self):
        with tempfile.TemporaryDirectory() as folder:
            for scale in (64.0, 4.0):
                with cs.local(folder) as fleet:
                    table = fleet.table("t", dim=4, rule=cs.SGD(lr=RATE))
                    model, scaler = cs.torch.EmbeddingBag(table, slots=2), new_scaler(scale)
                    with cs.torch.Session(model, None, fleet, scaler=scaler) as s:
                        scaler.scale(model(KEYS, OFFSETS).sum()).backward()
                        s.step()
                        self.assertEqual(scaler.state_dict()["scale"], 64)


if __name__ == "__main__":
    unittest.main()
