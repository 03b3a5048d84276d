"""Reference values of the metrics, computed with NumPy and scikit-learn on the samples of drawn_scores.h.

    python3 -m venv venv && venv/bin/pip install numpy scikit-learn
    venv/bin/python test/worker/model/metric/reference_metrics.py > test/worker/model/metric/reference_values.json

This program shares nothing with Cistern except the names of the metrics.
"""

import json
import math
import sys
import warnings

import numpy as np
from sklearn import metrics

CASES = [
    dict(seed=1, samples=1000),
    dict(seed=2, samples=1500, levels=20),
    dict(seed=3, samples=400, levels=1),
    dict(seed=4, samples=300, labels="ones"),
    dict(seed=5, samples=300, labels="zeros"),
    dict(seed=6, samples=20000, levels=7, groups=3),
    dict(seed=7, samples=30000, levels=200, groups=4000),
    dict(seed=8, samples=2, levels=4),
    dict(seed=14, samples=3000, weights=True),
    dict(seed=15, samples=20000, levels=50, groups=2000, weights=True),
    dict(seed=16, samples=300, labels="ones", weights=True),
]


def mixed(x):
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def draw(seed, samples, levels=1 << 20, groups=50, labels="drawn", weights=False):
    place = np.arange(samples, dtype=np.uint64) * np.uint64(3) + np.uint64(seed * 1000003)

    def unit(which):
        return (mixed(place + np.uint64(which)) >> np.uint64(40)).astype(np.float64) * 2.0**-24

    predicted = ((np.floor(unit(0) * levels) + 0.5) / levels).astype(np.float32)
    rate = predicted.astype(np.float64)
    clicked = (unit(1) < rate * (0.5 + 0.4 * rate)).astype(np.float64)
    if labels != "drawn":
        clicked[:] = 1.0 if labels == "ones" else 0.0
    weight = np.ones(samples, np.float32)
    if weights:
        drawn = unit((seed ^ 1 << 40) * 1000003 - seed * 1000003)
        weight = np.where(drawn < 0.1, 0, np.where(drawn > 0.98, 30, 3) * drawn).astype(np.float32)
    return clicked, predicted, np.floor(unit(2)**3 * groups).astype(np.int64), weight


def bucket_error(labels, predicted, weights):
    """The bucket error over 10^6 buckets; an empty bucket can also end a range."""
    count = 10**6
    place = np.minimum((predicted.astype(np.float64) * count).astype(np.int64), count - 1)
    shows = np.bincount(place, weights=weights, minlength=count)
    clicks = np.bincount(place, weights=labels * weights, minlength=count)
    start, seen, hit, mass = None, 0.0, 0.0, 0.0
    error = weight = 0.0
    for i in range(count):
        ctr = i / count
        if start is None or ctr - start > 0.01:
            start, seen, hit, mass = ctr, 0.0, 0.0, 0.0
        seen, hit, mass = seen + shows[i], hit + clicks[i], mass + ctr * shows[i]
        if mass <= 0:
            continue
        mean = mass / seen
        if math.sqrt((1 - mean) / (mean * seen)) < 0.05:
            error += abs(hit / seen / mean - 1) * seen
            weight += seen
            start = None
    return error / weight if weight else None


def ndcg(labels, predicted, weights):
    """One ranking of all samples. scikit-learn's weights are those of rankings, not of samples: with
    weights the discounts of all ranks are added up, and parts of ranks interpolated."""
    if not labels.any():
        return None
    if (weights == 1).all():
        return metrics.ndcg_score([labels], [predicted]) if len(labels) > 1 else 1.0
    sums = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, int(weights.sum()) + 4)))])
    before, gain = 0.0, 0.0
    for score in np.unique(predicted)[::-1]:
        tied = predicted == score
        after = before + weights[tied].sum()
        discounts = np.interp([before, after], np.arange(len(sums)), sums)
        gain += (weights * labels)[tied].sum() / weights[tied].sum() * (discounts[1] - discounts[0])
        before = after
    return gain / np.interp((weights * labels).sum(), np.arange(len(sums)), sums)


def group_auc(labels, predicted, groups, weights):
    order = np.argsort(groups, kind="stable")
    labels, predicted, groups, weights = labels[order], predicted[order], groups[order], weights[order]
    total = weight = left_out = samples_left_out = 0
    cuts = np.flatnonzero(np.diff(groups)) + 1
    parts = list(zip(np.split(labels, cuts), np.split(predicted, cuts), np.split(weights, cuts)))
    for y, p, w in parts:
        if y.min() == y.max():
            left_out, samples_left_out = left_out + 1, samples_left_out + len(y)
            continue
        total, weight = total + metrics.roc_auc_score(y, p, sample_weight=w) * w.sum(), weight + w.sum()
    return dict(gauc=total / weight if weight else None, gauc_groups=len(parts),
                gauc_groups_left_out=left_out, gauc_samples_left_out=samples_left_out)


def expected(case, slow=True):
    y, p32, groups, w = draw(**case)
    there = w > 0
    y, p32, groups, w = y[there], p32[there], groups[there], w[there].astype(np.float64)
    p = p32.astype(np.float64)
    one_class = bool(y.min() == y.max())
    clipped = np.clip(p, 1e-7, 1 - 1e-7)
    loss = metrics.log_loss(y, clipped, labels=[0, 1], sample_weight=w)
    rate, mean = np.average(y, weights=w), np.average(p, weights=w)
    entropy = None if one_class else metrics.log_loss(y, np.full(len(y), rate), sample_weight=w)
    found = dict(
        auc=None if one_class else metrics.roc_auc_score(y, p32, sample_weight=w),
        logloss=loss, average_loss=loss, ne=None if one_class else loss / entropy,
        copc=rate / mean, pcoc=mean / rate if rate else None,
        actual_ctr=rate, predicted_ctr=mean,
        mae=metrics.mean_absolute_error(y, p, sample_weight=w),
        rmse=math.sqrt(metrics.mean_squared_error(y, p, sample_weight=w)),
        smape=np.average(2 * np.abs(p - y) / (np.abs(p) + np.abs(y)), weights=w),
        hit_rate=np.average(y[p > 0.8], weights=w[p > 0.8]) if (p > 0.8).any() else None)
    if slow:
        found["bucket_error"] = bucket_error(y, p32, w)
        found.update(group_auc(y, p32, groups, w))
        found["ndcg"] = ndcg(y, p, w)
    return found


def main():
    warnings.simplefilter("error")
    cases = [dict(drawn=case, expected=expected(case)) for case in CASES]
    json.dump(cases, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
