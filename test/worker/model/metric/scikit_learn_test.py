"""Compares every metric with scikit-learn and NumPy, on up to 2 million scores.

    scikit_learn_test.py build/release/bin/metric_figures

CISTERN_SCORES=10000000 compares more.

Uses the installed scikit-learn, or the one that scripts/test.sh installs with pip into build/scikit_learn.
Exit code 77 (skipped) if there is neither.
"""

import json
import os
import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).parents[4] / "build" / "scikit_learn"))
try:
    import reference_metrics
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

SCORES = int(os.environ.get("CISTERN_SCORES", 2_000_000))
LARGE = [dict(seed=11, samples=SCORES), dict(seed=12, samples=SCORES, levels=1000),
         dict(seed=13, samples=SCORES // 10, groups=SCORES // 10),
         dict(seed=17, samples=SCORES, weights=True), dict(seed=18, samples=SCORES, levels=1000, weights=True)]


def main():
    failures = 0
    for case in reference_metrics.CASES + LARGE:
        shown = json.loads(subprocess.run([sys.argv[1], json.dumps(case)], check=True,
                                          capture_output=True, text=True).stdout)
        small = case["samples"] <= 100_000
        for name, value in reference_metrics.expected(case, slow=small).items():
            same = shown[name] is None if value is None else (
                shown[name] is not None and abs(shown[name] - value) <= 1e-7 * max(1, abs(value)))
            failures += not same
            if not same or name == "auc":
                print(f"{case}: {name} {shown[name]}, scikit-learn {value}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
