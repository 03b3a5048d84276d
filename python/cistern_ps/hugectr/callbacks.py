"""Callbacks of `Model.fit`: what a program does when a training starts, is evaluated, and ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, Sequence

if TYPE_CHECKING:
    from .training import Model


class TrainingCallback:
    """Methods that `Model.fit` calls. Those that return a bool end the training with True."""

    def on_training_start(self) -> None:
        """Before the first iteration."""

    def on_training_end(self, current_iter: int) -> None:
        """After the last iteration, whose number, from 0, is current_iter."""

    def on_eval_start(self, current_iter: int) -> bool:
        """After current_iter iterations, before they are evaluated."""
        return False

    def on_eval_end(self, current_iter: int, eval_results: Dict[str, float]) -> bool:
        """eval_results: the metrics of the solver, as in get_eval_metrics."""
        return False


def fit_with_callbacks(model: Model, callbacks: Sequence[TrainingCallback], epochs: int, iterations: int, display: int,
                       eval_interval: int, snapshot: int, prefix: str) -> None:
    """Model.fit by single steps. epochs: of the data, at most `iterations` in all; 0 epochs: the data is repeated."""
    for callback in callbacks:
        callback.on_training_start()
    done, stops = 0, False
    for _ in range(max(epochs, 1)):
        if epochs:
            model.get_data_reader_train().set_source()
        while not stops and (epochs or done < iterations) and model.train():
            done += 1
            if display and done % display == 0:
                print(f"iter={done} loss={model.get_current_loss():g}")
            if eval_interval and done % eval_interval == 0:
                stops = _evaluate(model, callbacks, done)
            if snapshot and done % snapshot == 0:
                model.save_params_to_files(prefix, done)
    for callback in callbacks:
        callback.on_training_end(max(done - 1, 0))


def _evaluate(model: Model, callbacks: Sequence[TrainingCallback], done: int) -> bool:
    """Whether a callback ends the training."""
    if any([callback.on_eval_start(done) for callback in callbacks]):
        return True
    results = dict(model.get_eval_metrics())
    print(f"iter={done} " + " ".join(f"{name}={value:g}" for name, value in results.items()))
    return any([callback.on_eval_end(done, results) for callback in callbacks])
