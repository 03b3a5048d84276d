"""AUC and log loss of predictions."""

from __future__ import annotations

from typing import Any


def auc(label: Any, score: Any, sample_weight: Any = None) -> float:
    """The area under the ROC curve: the share of pairs of a positive and a negative that are in order, ties half.

        >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
        0.875

    sample_weight: of each sample; a pair counts as the product of its weights.

        >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8], [1, 3, 1, 1])
        0.8125
    """
    import numpy as np

    label, score = np.asarray(label) > 0.5, np.asarray(score, np.float64)
    if sample_weight is not None:
        weight = np.asarray(sample_weight, np.float64)
        _, place = np.unique(score, return_inverse=True)
        ones, zeros = np.bincount(place, weight * label), np.bincount(place, weight * ~label)
        if not ones.sum() or not zeros.sum():
            raise ValueError("AUC needs both classes")
        return float((ones * (np.cumsum(zeros) - zeros / 2)).sum() / (ones.sum() * zeros.sum()))
    _, place, counts = np.unique(score, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]  # ties share their mean rank
    positives, negatives = int(label.sum()), int((~label).sum())
    if not positives or not negatives:
        raise ValueError("AUC needs both classes")
    return float((ranks[label].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def logloss(label: Any, probability: Any, sample_weight: Any = None) -> float:
    """The mean, weighted by sample_weight, of -log(probability of what happened), with probabilities kept 1e-7 away from 0 and 1.

        >>> round(logloss([1, 0], [0.5, 0.5]), 6)
        0.693147
    """
    import numpy as np

    p = np.clip(np.asarray(probability, np.float64), 1e-7, 1 - 1e-7)
    label = np.asarray(label, np.float64)
    return float(-np.average(label * np.log(p) + (1 - label) * np.log(1 - p), weights=sample_weight))


def calibration(label: Any, probability: Any, bins: int = 10) -> Any:
    """(mean prediction, share of positives, samples) of each of `bins` equal parts of the samples, lowest predictions first.

        >>> predicted, happened, samples = calibration([0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], bins=2)
        >>> predicted.round(2).tolist(), happened.tolist(), samples.tolist()
        ([0.15, 0.8], [0.0, 1.0], [2, 2])
    """
    import numpy as np

    label, p = np.asarray(label, np.float64).reshape(-1), np.asarray(probability, np.float64).reshape(-1)
    if len(label) != len(p) or not 1 <= bins <= len(p):
        raise ValueError(f"{len(label)} labels, {len(p)} predictions, {bins} bins: expected equally many labels and predictions, and at least 1 bin")
    parts = np.array_split(np.argsort(p, kind="stable"), bins)
    return (np.array([p[i].mean() for i in parts]), np.array([label[i].mean() for i in parts]),
            np.array([len(i) for i in parts]))
