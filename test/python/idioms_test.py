"""Idioms of PyTorch act on rows as on the parameters of nn.EmbeddingBag, or are refused by name."""

import copy
import io
import pickle
import tempfile
import unittest
import warnings

import numpy as np

from row_model import KEYS, OFFSETS, RATE, ModelCase, Net, loss_of, new_scaler  # first: it skips the test where torch is missing

import torch

import cistern_ps as cs


class Idioms(ModelCase):
    # Gradients

    def test_a_plain_step(self):
        def plain(model, optimizer, step):
            loss_of(model).backward()
            step()

        self.assertGreater(self.compare(plain), 0.01)

    def test_torchs_clipping_by_norm_counts_rows(self):
        def clip(model, optimizer, step):
            loss_of(model).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            step()

        self.assertGreater(self.compare(clip), 0.01)

    def test_clipping_of_accumulated_gradients_adds_those_of_one_row_first(self):
        def accumulate(model, optimizer, step):
            for scale in (1, -0.5, 2, 0.25):
                (loss_of(model) * scale).backward()
            for p in model.parameters():
                p.grad /= 4
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
            step()

        self.assertGreater(self.compare(accumulate), 0.001)

    def test_several_forward_passes_of_one_backward_pass(self):
        def several(model, optimizer, step):
            (loss_of(model) + model(KEYS.flip(0)).sum()).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            step()

        self.compare(several)

    def test_gradients_that_are_reversed_by_hand(self):
        def reverse(model, optimizer, step):
            loss_of(model).backward()
            for p in model.parameters():
                p.grad.neg_()
            step()

        self.compare(reverse)

    def test_gradients_of_autograd_grad_that_are_set_by_hand(self):
        def by_hand(model, optimizer, step):
            parameters = list(model.parameters())
            for p, grad in zip(parameters, torch.autograd.grad(loss_of(model), parameters)):
                p.grad = grad
            step()

        self.assertGreater(self.compare(by_hand), 0.01)

    def test_gradient_checkpointing(self):
        from torch.utils.checkpoint import checkpoint

        def checkpointed(model, optimizer, step):
            bags = checkpoint(model.emb, KEYS, OFFSETS, use_reentrant=False)
            model.fc(bags.reshape(-1, 8)).square().sum().backward()
            step()

        self.assertGreater(self.compare(checkpointed), 0.01)

    def test_elementwise_changes_are_refused(self):
        def clip(model, optimizer, step):
            loss_of(model).backward()
            torch.nn.utils.clip_grad_value_(model.parameters(), 0.05)
            step()

        self.refused("element by element", clip)
        self.begin()

        def noise(model, optimizer, step):
            loss_of(model).backward()
            for p in model.parameters():
                p.grad.add_(torch.randn_like(p.grad))
            step()

        self.refused("element by element", noise)

    def test_dense_gradients_that_are_not_finite_do_not_spoil_rows_by_clipping(self):
        def clip(model, optimizer, step):
            loss_of(model).backward()
            model.fc.weight.grad[0, 0] = float("nan")
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            step()

        self.refused("multiplied by NaN", clip)

    def test_a_gradient_of_a_row_that_is_not_finite_leaves_dense_weights_as_they_were(self):
        self.refused("key . is not finite", lambda model, optimizer, step: ((model() * float("inf")).sum().backward(), step()))

    # zero_grad

    def test_zero_grad_drops_a_bad_batch(self):
        for clear in (lambda m, o: o.zero_grad(), lambda m, o: m.zero_grad(), lambda m, o: o.zero_grad(set_to_none=False)):
            def skip(model, optimizer, step):
                (loss_of(model) * 100).backward()
                clear(model, optimizer)
                loss_of(model).backward()
                step()

            self.begin()
            self.compare(skip)

    def test_zero_grad_before_the_step_is_refused(self):
        rows = cs.torch.RowOptimizer.of(self.model)
        optimizer = torch.optim.SGD(self.model.parameters(), lr=RATE)
        loss_of(self.model).backward()
        optimizer.step()
        optimizer.zero_grad()
        with self.assertRaisesRegex(cs.UsageError, "zero_grad cleared gradients of rows"):
            rows.step()
        loss_of(self.model).backward()
        rows.step()

    # Frozen parameters

    def test_frozen_rows_stay_and_are_trained_again_later(self):
        def frozen(model, optimizer, step):
            model.emb.requires_grad_(False)
            loss_of(model).backward()
            step()
            model.emb.requires_grad_(True)

        self.assertEqual(self.compare(frozen), 0)
        self.assertEqual(self.table.rows.size, 0)  # none was kept
        loss_of(self.model).backward()
        before = self.weights()
        cs.torch.RowOptimizer.of(self.model).step()
        self.assertGreater(np.abs(self.weights() - before).max(), 0)

    def test_a_frozen_model_has_no_gradient(self):
        self.model.requires_grad_(False)
        self.assertFalse(self.model().requires_grad)

    def test_a_group_with_a_rate_of_zero_freezes_rows(self):
        optimizer = torch.optim.SGD([{"params": self.model.emb.parameters(), "lr": 0.0},
                                     {"params": self.model.fc.parameters()}], lr=RATE)
        s = self.session(optimizer)
        before, dense = self.weights(), self.model.fc.weight.detach().clone()
        loss_of(self.model).backward()
        s.step()
        np.testing.assert_array_equal(self.weights(), before)
        self.assertFalse(torch.equal(self.model.fc.weight, dense))

    def test_schedulers_move_the_rate_of_rows(self):
        kinds = {"step": lambda o: torch.optim.lr_scheduler.StepLR(o, 1, 0.5),
                 "warm-up": lambda o: torch.optim.lr_scheduler.LinearLR(o, start_factor=0.1, total_iters=3),
                 "plateau": lambda o: torch.optim.lr_scheduler.ReduceLROnPlateau(o, patience=0, factor=0.1),
                 "one cycle": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, max_lr=2 * RATE, total_steps=5, cycle_momentum=False),
                 "cosine": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 5)}
        for name, make in kinds.items():
            with self.subTest(name):
                self.begin()
                optimizer = torch.optim.SGD(self.model.parameters(), lr=RATE)
                first = make(optimizer) if name == "warm-up" else None  # before the session, and after it
                s = self.session(optimizer)
                model, reference = self.reference()
                schedulers = [first or make(optimizer), make(reference)]
                for _ in range(3):
                    for part, step in ((s.model, s.step), (model, lambda: (reference.step(), reference.zero_grad()))):
                        loss_of(part).backward()
                        step()
                    for scheduler in schedulers:
                        scheduler.step(*([1.0] if name == "plateau" else []))
                np.testing.assert_allclose(self.weights(), model.emb.weight.detach().numpy(), rtol=1e-5, atol=1e-6)

    def test_a_rate_that_is_set_by_hand_moves_the_rate_of_rows(self):
        def decay(model, optimizer, step):
            loss_of(model).backward()
            step()
            for group in optimizer.param_groups:
                group["lr"] *= 0.5

        self.compare(decay)

    def test_a_closure_computes_the_gradients(self):
        losses = []

        def closure(model, optimizer, step):
            def evaluate():
                optimizer.zero_grad()
                loss = loss_of(model)
                loss.backward()
                return loss

            with torch.no_grad():
                losses.append(step(evaluate) if model is self.model else optimizer.step(evaluate))

        self.assertGreater(self.compare(closure), 0.01)
        np.testing.assert_allclose(float(losses[0]), float(losses[1]), rtol=1e-6)

    def test_a_hook_on_gradients_is_refused(self):
        def hook(model, optimizer, step):
            for p in model.parameters():
                p.register_hook(lambda g: 2 * g)
            loss_of(model).backward()
            step()

        self.refused("a hook on the gradient", hook)

    def test_options_of_a_group_that_rows_do_not_follow_are_refused(self):
        groups = [{"params": self.model.emb.parameters(), "lr": RATE * 2}, {"params": self.model.fc.parameters()}]
        with self.assertRaisesRegex(cs.UsageError, "lr=0.5 for the embedding of table 't'"):
            self.session(torch.optim.SGD(groups, lr=RATE))
        with self.assertRaisesRegex(cs.UsageError, "maximize"):
            self.session(torch.optim.SGD(self.model.parameters(), lr=RATE, maximize=True))

    def test_training_after_eval_is_refused(self):
        def after_eval(model, optimizer, step):
            model.eval()
            try:
                loss_of(model).backward()
                step()
            finally:
                model.train()

        self.refused(r"read after model.eval\(\)", after_eval)

    def test_evaluation_between_steps_is_no_training(self):
        s = self.session()
        loss_of(self.model).backward()
        self.model.eval()
        self.model()  # without no_grad
        s.step()
        self.model.train()
        loss_of(self.model).backward()
        s.step()
        self.assertEqual(s.steps, 2)

    # Optimizers

    def test_an_optimizer_that_does_not_have_the_stand_in_gets_it(self):
        optimizer = torch.optim.SGD(self.model.fc.parameters(), lr=RATE)
        s, scaler = self.session(optimizer), new_scaler(256.0)
        model, other = self.reference()
        scaler.scale(loss_of(self.model)).backward()
        scaler.unscale_(optimizer)
        s.step()
        loss_of(model).backward()
        other.step()
        np.testing.assert_allclose(self.weights(), model.emb.weight.detach().numpy(), rtol=1e-5, atol=1e-6)
        self.assertEqual(len(optimizer.param_groups), 1)

    def test_every_optimizer_steps_beside_rows(self):
        for kind in (torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad, torch.optim.RMSprop, torch.optim.NAdam,
                     torch.optim.Adamax, torch.optim.Adadelta, torch.optim.Rprop, torch.optim.ASGD, torch.optim.RAdam):
            with self.subTest(kind.__name__), cs.local() as fleet:
                table = fleet.table("t", dim=4, rule=cs.SGD(lr=RATE), init=cs.Uniform(1))
                model = Net(cs.torch.EmbeddingBag(table, slots=2), torch.nn.Linear(8, 1))
                optimizer = kind(model.parameters(), lr=0.01)
                s = cs.torch.Session(model, optimizer, fleet, commit_every=None)
                s.restore()
                for _ in range(2):
                    loss_of(model).backward()
                    s.step()
                again = kind(model.parameters(), lr=0.01)
                again.load_state_dict(optimizer.state_dict())

    # Modules

    def test_a_stand_in_is_no_state(self):
        state = self.model.state_dict()
        self.assertEqual(sorted(k for k in state if "_extra_state" not in k), ["fc.bias", "fc.weight"])
        self.model.load_state_dict(state)
        self.assertEqual([n for n, _ in self.model.named_parameters()], ["emb.stand_in", "fc.weight", "fc.bias"])

    def test_a_stand_in_keeps_its_type_and_follows_the_device(self):
        self.model.half().double().to("cpu").to(torch.bfloat16)
        self.assertEqual(self.model.emb.stand_in.dtype, torch.float32)
        self.model.float()
        self.compare(lambda model, optimizer, step: (loss_of(model).backward(), step()))

    def test_copies_share_rows_and_have_their_own_gradients(self):
        other = copy.deepcopy(self.model)
        self.assertIs(other.emb.table, self.table)
        self.assertIsNot(other.emb.stand_in, self.model.emb.stand_in)
        other.requires_grad_(False)
        self.compare(lambda model, optimizer, step: (loss_of(model).backward(), other().sum(), step()))
        torch.testing.assert_close(other.emb(KEYS, OFFSETS), self.model.emb(KEYS, OFFSETS).detach())

    def test_averaged_models_average_dense_weights_over_shared_rows(self):
        s = self.session()
        averaged = torch.optim.swa_utils.AveragedModel(self.model)
        weights = []
        for _ in range(3):
            loss_of(self.model).backward()
            s.step()
            averaged.update_parameters(self.model)
            weights.append(self.model.fc.weight.detach().clone())
        torch.testing.assert_close(averaged.module.fc.weight.detach(), torch.stack(weights).mean(0))
        averaged.eval(), self.model.eval()
        torch.testing.assert_close(averaged.module.emb(KEYS, OFFSETS), self.model.emb(KEYS, OFFSETS))

    def test_averaged_models_are_in_commits(self):
        with tempfile.TemporaryDirectory() as folder:
            for expected in (3, 6):
                with cs.local(folder) as fleet:
                    table = fleet.table("t", dim=4, rule=cs.SGD(lr=RATE), init=cs.Uniform(1))
                    model = Net(cs.torch.EmbeddingBag(table, slots=2), torch.nn.Linear(8, 1))
                    averaged = torch.optim.swa_utils.AveragedModel(model)
                    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
                    with cs.torch.Session(model, optimizer, fleet, objects={"averaged": averaged}, commit_every=2) as s:
                        for _ in range(3):
                            loss_of(model).backward()
                            s.step()
                            averaged.update_parameters(model)
                    self.assertEqual(int(averaged.n_averaged), expected)

    def test_pickling_is_refused_with_a_fix(self):
        for what, call in [
            ("torch.save", lambda: torch.save(self.model, io.BytesIO())),
            ("a model", lambda: pickle.dumps(self.model)),
            ("a table", lambda: pickle.dumps(self.table)),
            ("a fleet", lambda: pickle.dumps(self.fleet)),
            ("rows", lambda: pickle.dumps(cs.rows.LocalRows(self.table))),
            ("a row optimizer", lambda: pickle.dumps(cs.torch.RowOptimizer.of(self.model))),
        ]:
            with self.subTest(what), self.assertRaisesRegex(cs.UsageError, "cannot be pickled.*\nfix: .*state_dict"):
                call()

    def test_weights_that_are_saved_between_commits_fit_no_rows(self):
        s = self.session()
        loss_of(self.model).backward()
        s.step()
        between = copy.deepcopy(self.model.state_dict())
        with self.assertRaisesRegex(cs.UsageError, "no commit has.*\nfix: commit before state_dict"):
            self.model.load_state_dict(between)

    def test_weights_of_a_commit_are_refused_once_rows_have_moved(self):
        with tempfile.TemporaryDirectory() as folder, cs.local(folder) as fleet:
            model = Net(cs.torch.EmbeddingBag(fleet.table("t", dim=4), slots=2), torch.nn.Linear(8, 1))
            with cs.torch.Session(model, torch.optim.SGD(model.parameters(), lr=RATE), fleet) as s:
                s.commit()
                loss_of(model).backward()
                s.step()
                s.commit()
                best = copy.deepcopy(model.state_dict())
                model.load_state_dict(best)
                loss_of(model).backward()
                s.step()
                with self.assertRaisesRegex(cs.UsageError, "at commit 2, and its rows have been trained since"):
                    model.load_state_dict(best)

    def test_tracing_is_refused(self):
        with self.assertRaisesRegex(cs.UsageError, "as constants"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.jit.trace(self.model.eval(), (KEYS, OFFSETS))
        if hasattr(torch, "compiler") and hasattr(torch.compiler, "is_exporting"):
            with self.assertRaisesRegex(Exception, "as constants"):
                torch.export.export(self.model.eval(), (KEYS, OFFSETS))

    def test_data_parallel_is_refused(self):
        with self.assertRaisesRegex(cs.UsageError, "DataParallel"):
            self.model.emb._replicate_for_data_parallel()

    @unittest.skipUnless(hasattr(torch, "compile"), "torch.compile is missing")
    def test_a_compiled_model_trains_rows(self):
        self.model.fc = torch.compile(self.model.fc, backend="eager")
        compiled = torch.compile(self.model, backend="eager")
        rows = cs.torch.RowOptimizer.of(compiled)
        before = self.weights()
        loss_of(compiled).backward()
        rows.step()
        self.assertGreater(np.abs(self.weights() - before).max(), 0.01)

    @unittest.skipUnless(torch.distributed.is_available(), "torch.distributed is missing")
    def test_one_process_of_distributed_data_parallel(self):
        with tempfile.TemporaryDirectory() as folder:
            torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
            try:
                wrapped = torch.nn.parallel.DistributedDataParallel(self.model)
                optimizer = torch.optim.SGD(wrapped.parameters(), lr=RATE)
                s = cs.torch.Session(wrapped, optimizer, self.fleet, commit_every=None)
                s.restore()
                model, other = self.reference()
                for _ in range(3):
                    for m, o, step in ((wrapped, optimizer, s.step), (model, other, other.step)):
                        o.zero_grad()
                        loss_of(m).backward()
                        torch.nn.utils.clip_grad_norm_(m.parameters(), 0.5)
                        step()
                np.testing.assert_allclose(self.weights(), model.emb.weight.detach().numpy(), rtol=1e-5, atol=1e-6)
            finally:
                torch.distributed.destroy_process_group()


if __name__ == "__main__":
    unittest.main()
