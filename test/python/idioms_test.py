"""Idioms of PyTorch act on rows as on the parameters of nn.EmbeddingBag, or are refused by name."""

import copy
import io
import pickle
import sys
import tempfile
import unittest
import warnings

import numpy as np

try:
    import torch
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import cistern_ps as cs

RATE = 0.25
KEYS, OFFSETS = torch.tensor([1, 2, 3, 1, 5]), torch.tensor([0, 2, 3, 4, 5])


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


class Net(torch.nn.Module):
    """Two slots, summed, and one weight for each of their floats; `emb` and `fc` are Cistern's or torch's."""

    def __init__(self, emb, fc):
        super().__init__()
        self.emb, self.fc = emb, fc

    def forward(self, keys=KEYS, offsets=OFFSETS):
        return self.fc(self.emb(keys, offsets).reshape(-1, 8)).squeeze(1)


def loss_of(model):
    return model().square().sum()


class Idioms(unittest.TestCase):
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

    # Gradient scalers

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
