"""One small model in PyTorch, JAX, TensorFlow and NumPy, on the same rows of a fleet, with the same AUC.

    python examples/python/any_framework.py [numpy torch jax tensorflow ...]

Without names it trains in every framework that is installed. The data are synthetic: whether a visitor clicks depends
on pairs of 4 fields. Rows are looked up once a batch; the framework computes loss and gradients of arrays.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any, Callable

import numpy as np

import cistern_ps as cs

FIELDS, DIM, BATCH, STEPS, WIDTH = 4, 8, 512, 400, 32
# (rows [distinct, DIM], places [BATCH * FIELDS], label [BATCH], dense weights) -> gradients of rows and dense weights
Gradients = Callable[..., Any]


def batch(seed: int) -> Any:
    """(keys [BATCH * FIELDS], label [BATCH]) of a synthetic click log."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 50, (BATCH, FIELDS))
    odds = np.where((values[:, 0] + values[:, 1]) % 2 == 0, 1.5, -1.5) + np.where(values[:, 2] % 3 == 0, 1, -0.5)
    label = (rng.random(BATCH) < 1 / (1 + np.exp(-odds))).astype(np.float32)
    return (values + 1000 * np.arange(FIELDS)).reshape(-1), label


def first_weights() -> Any:
    rng = np.random.default_rng(1)
    scale = np.sqrt(2 / (FIELDS * DIM))
    return [rng.normal(0, scale, (FIELDS * DIM, WIDTH)).astype(np.float32), np.zeros(WIDTH, np.float32),
            rng.normal(0, 0.2, WIDTH).astype(np.float32)]


def predict(rows: Any, places: Any, w: Any) -> Any:
    """Logits, in NumPy."""
    hidden = rows[places].reshape(-1, FIELDS * DIM) @ w[0] + w[1]
    return np.maximum(hidden, 0) @ w[2]


def in_numpy() -> Gradients:
    def gradients(rows: Any, places: Any, label: Any, w: Any) -> Any:
        x = rows[places].reshape(-1, FIELDS * DIM)
        hidden = np.maximum(x @ w[0] + w[1], 0)
        error = (1 / (1 + np.exp(-(hidden @ w[2]))) - label) / len(label)
        below = np.outer(error, w[2]) * (hidden > 0)
        row_grads = np.zeros_like(rows)
        np.add.at(row_grads, places, (below @ w[0].T).reshape(-1, DIM))
        return row_grads, [x.T @ below, below.sum(0), hidden.T @ error]

    return gradients


def in_torch() -> Gradients:
    import torch

    def gradients(rows: Any, places: Any, label: Any, w: Any) -> Any:
        leaves = [torch.from_numpy(a).requires_grad_() for a in [rows, *w]]
        x = leaves[0][torch.from_numpy(places).long()].view(-1, FIELDS * DIM)
        logit = torch.relu(x @ leaves[1] + leaves[2]) @ leaves[3]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logit, torch.from_numpy(label))
        grads = [g.numpy() for g in torch.autograd.grad(loss, leaves)]
        return grads[0], grads[1:]

    return gradients


def in_jax() -> Gradients:
    import jax  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import jax.numpy as jnp  # type: ignore[import-not-found, import-untyped, unused-ignore]

    def loss(rows: Any, w: Any, places: Any, label: Any) -> Any:
        logit = jax.nn.relu(rows[places].reshape(-1, FIELDS * DIM) @ w[0] + w[1]) @ w[2]
        return jnp.mean(jnp.logaddexp(0, logit) - label * logit)

    compiled = jax.jit(jax.grad(loss, argnums=(0, 1)))

    def gradients(rows: Any, places: Any, label: Any, w: Any) -> Any:
        # Of one shape, so that JAX compiles once: a batch has at most BATCH * FIELDS distinct rows.
        padded = np.zeros((BATCH * FIELDS, DIM), np.float32)
        padded[: len(rows)] = rows
        row_grads, dense = compiled(padded, w, places, label)
        return np.asarray(row_grads)[: len(rows)], [np.asarray(g) for g in dense]

    return gradients


def in_tensorflow() -> Gradients:
    import tensorflow as tf  # type: ignore[import-not-found, import-untyped, unused-ignore]

    def gradients(rows: Any, places: Any, label: Any, w: Any) -> Any:
        leaves = [tf.convert_to_tensor(a) for a in [rows, *w]]
        with tf.GradientTape() as tape:
            tape.watch(leaves)
            x = tf.reshape(tf.gather(leaves[0], places), (-1, FIELDS * DIM))
            logit = tf.linalg.matvec(tf.nn.relu(x @ leaves[1] + leaves[2]), leaves[3])
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(label, logit))
        grads = [tf.convert_to_tensor(g).numpy() for g in tape.gradient(loss, leaves)]
        return grads[0], grads[1:]

    return gradients


FRAMEWORKS = {"numpy": in_numpy, "torch": in_torch, "jax": in_jax, "tensorflow": in_tensorflow}


def train(gradients: Gradients) -> float:
    """The AUC on samples that were not trained."""
    with cs.local(servers=2) as fleet:
        table = fleet.table("rows", dim=DIM, rule=cs.Adam(lr=0.01), init=cs.Uniform(0.1))
        rows, w = cs.rows.LocalRows(table), first_weights()
        for step in range(STEPS):
            keys, label = batch(step)
            found = rows.look_up(keys)
            row_grads, dense = gradients(found.weights, found.places, label, w)
            rows.add_gradients(found, row_grads)
            rows.step()
            w = [a - np.float32(0.3) * g for a, g in zip(w, dense)]
        rows.commit({"steps": STEPS})
        tests = [batch(10**6 + i) for i in range(10)]
        logits = [predict(rows.read(keys), np.arange(len(keys)), w) for keys, _ in tests]
        return cs.metrics.auc(np.concatenate([label for _, label in tests]), np.concatenate(logits))


def main() -> None:
    names = sys.argv[1:] or [n for n in FRAMEWORKS if importlib.util.find_spec(n) is not None]
    for name in names:
        print(f"{name}: AUC {train(FRAMEWORKS[name]()):.4f}", flush=True)


if __name__ == "__main__":
    main()
