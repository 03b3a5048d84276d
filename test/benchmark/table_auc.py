#!/usr/bin/env python3
"""`cistern train TABLE.csv` against LightGBM's defaults with categorical columns, on the same split.

    table_auc.py DATA_DIR [--globo-csv DIR] [--bin build/release/bin] [--models deepfm,...] [--work DIR]

DATA_DIR has the folders frappe and criteo_kaggle_first80k (CSV, .xz); --globo-csv is the folder csv that
examples/globo/run.sh makes. A fourth table is generated: 200,000 impressions whose clicks depend on user, item
and price. Needs lightgbm, pandas and scikit-learn.

Both sides train on the same rows and are scored on the same test rows, which neither sees before. Cistern holds out
a tenth of its training rows to decide when to stop. Prints a table: AUC, log loss and seconds (which mean something
on a quiet machine only).
"""
import argparse
import json
import math
import pathlib
import random
import subprocess
import time

import lightgbm
import pandas
from sklearn.metrics import log_loss, roc_auc_score


def generated():
    draw = random.Random(1)
    taste = [draw.gauss(0, 1) for _ in range(20000)]
    appeal = [draw.gauss(0, 1) for _ in range(3000)]
    rows = []
    for _ in range(220000):
        user, item = draw.randrange(20000), int(3000 * draw.random() ** 2)
        price = round(draw.lognormvariate(2, 1), 2)
        logit = taste[user] + appeal[item] - 0.4 * math.log(price) - 0.5
        rows.append([int(draw.random() < 1 / (1 + math.exp(-logit))), draw.randint(18, 70), price,
                     f"u{user}", f"i{item}", draw.choice(["paris", "rome", "oslo", "lima", "cairo"])])
    return pandas.DataFrame(rows, columns=["label", "age", "price", "user", "item", "city"])


def tables(data, globo):
    """(name, training rows, test rows, categorical columns)"""
    frappe = data / "frappe"
    train, test = pandas.read_csv(frappe / "train_recon.csv.xz"), pandas.read_csv(frappe / "test.csv.xz")
    yield "frappe", train, test, list(train.columns[1:])
    criteo = pandas.read_csv(data / "criteo_kaggle_first80k/criteo_first80k.csv.xz").drop(columns="id")
    categories = [name for name in criteo.columns if name.startswith("C")]
    yield "criteo", criteo[:60000], criteo[60000:], categories
    if globo:
        day = pandas.read_csv(sorted(globo.glob("day*.csv"))[2]).sample(240000, random_state=1)
        yield "globo", day[:200000], day[200000:], list(day.columns[1:])
    made = generated()
    yield "generated", made[:200000], made[200000:], ["user", "item", "city"]


def lightgbm_scores(train, test, categories):
    train, test = train.copy(), test.copy()
    for name in categories:
        kind = pandas.CategoricalDtype(train[name].dropna().unique())
        train[name] = train[name].astype(kind)
        test[name] = test[name].where(test[name].isin(kind.categories)).astype(kind)  # new values are missing
    model = lightgbm.LGBMClassifier(verbose=-1)
    model.fit(train.drop(columns="label"), train["label"])
    return model.predict_proba(test.drop(columns="label"))[:, 1]


def cistern_scores(binary, folder, kind):
    run = folder / kind
    subprocess.run([binary, "train", folder / "train.csv", "--label", "label", "--model", kind, "--out", run,
                    "--overwrite"], check=True, capture_output=True)
    subprocess.run([binary, "predict", run, "--input", folder / "test.csv", "--output", run / "p.csv"],
                   check=True, capture_output=True)
    return pandas.read_csv(run / "p.csv")["prediction"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--globo-csv", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--models", default="deepfm")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("table_auc"))
    parser.add_argument("--tables", default="frappe,criteo,globo,generated")
    arguments = parser.parse_args()
    results = []
    for name, train, test, categories in tables(arguments.data, arguments.globo_csv):
        if name not in arguments.tables.split(","):
            continue
        folder = arguments.work / name
        folder.mkdir(parents=True, exist_ok=True)
        train.to_csv(folder / "train.csv", index=False)
        test.to_csv(folder / "test.csv", index=False)
        sides = [("LightGBM", lambda: lightgbm_scores(train, test, categories))]
        for kind in arguments.models.split(","):
            sides.append((f"cistern {kind}",
                          lambda kind=kind: cistern_scores(arguments.bin / "cistern", folder, kind)))
        for side, scores_of in sides:
            start = time.time()
            scores = scores_of()
            result = {"table": name, "side": side, "rows": len(train), "auc": round(roc_auc_score(test["label"], scores), 5),
                      "logloss": round(log_loss(test["label"], scores), 5), "seconds": round(time.time() - start, 1)}
            results.append(result)
            print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
