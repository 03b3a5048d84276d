"""Pictures of predictions, by matplotlib. Each draws into `ax`, or into a new figure, and returns the axes.

`Run.plot` draws the learning curve of a training.
"""

from __future__ import annotations

from typing import Any

from . import metrics


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def calibration(label: Any, probability: Any, bins: int = 10, ax: Any = None) -> Any:
    """What was predicted against what happened, in `bins` equal parts of the samples. A good model is on the diagonal."""
    predicted, happened, _ = metrics.calibration(label, probability, bins)
    ax = _axes(ax)
    most = 1.05 * max(predicted.max(), happened.max(), 1e-9)
    ax.plot([0, most], [0, most], color="0.7", linewidth=1)
    ax.plot(predicted, happened, "o-")
    ax.set(xlabel="mean prediction", ylabel="share of positives", xlim=(0, most), ylim=(0, most), title="Calibration")
    return ax


def histogram(label: Any, probability: Any, bins: int = 40, ax: Any = None) -> Any:
    """How often each probability was predicted, for positive and for negative samples."""
    import numpy as np

    label, p = np.asarray(label).reshape(-1) > 0.5, np.asarray(probability, np.float64).reshape(-1)
    ax = _axes(ax)
    edges = np.linspace(0, max(float(p.max(initial=0)), 1e-9), bins + 1)
    for chosen, name in ((label, "positive"), (~label, "negative")):
        ax.hist(p[chosen], edges, density=True, alpha=0.6, label=name)
    ax.set(xlabel="prediction", ylabel="density", title="Predictions")
    ax.legend(frameon=False)
    return ax
