#!/usr/bin/env python3
"""Turns the clicks of a news portal into samples for a CTR model, one CSV per day.

    examples/globo/samples.py CLICKS_DIR OUT_DIR [--negatives 4] [--seed 1] [--history 0]

CLICKS_DIR contains clicks_day00.csv, clicks_day01.csv ..., plain or as .xz, with the columns of
Globo.com's "News Portal User Interactions", preceded by the column `hour` (hours since the first).

Every click becomes one sample with label 1 and up to `--negatives` samples with label 0: the same visitor
and moment, with an article that was clicked in the previous hour but not in this session. (The first
hour has no previous hour and only provides articles.) The columns are

    label,user,article,previous,hour,environment,device,os,country,region,referrer

`previous` is the article of the preceding click in the session, or 0 for the first click. `hour` is the
hour of the day. The random draw depends only on the seed and the number of the day. With --history 7 there is a column
`read`, too: up to 7 articles that the visitor clicked last, oldest first, as in 12|9|40.
"""
import argparse
import collections
import csv
import lzma
import pathlib
import random
import re
import sys

CONTEXT = ["click_environment", "click_deviceGroup", "click_os", "click_country", "click_region",
           "click_referrer_type"]
COLUMNS = ["label", "user", "article", "previous", "hour", "environment", "device", "os", "country",
           "region", "referrer"]


def open_text(path):
    return lzma.open(path, "rt") if path.suffix == ".xz" else open(path)


def sessions(path):
    """Yields the clicks of a day's file session by session, as (hour, [row, ...])."""
    with open_text(path) as file:
        clicks, key = [], None
        for row in csv.DictReader(file):
            at = (int(row["hour"]), row["session_id"])
            if at != key and clicks:
                yield key[0], clicks
                clicks = []
            key = at
            clicks.append(row)
        if clicks:
            yield key[0], clicks


class Hours:
    """The articles that were clicked in the hour before the current one."""

    def __init__(self):
        self.hour, self.now, self.before = None, {}, []

    def move_to(self, hour):
        if hour == self.hour:
            return
        if self.hour is not None and hour < self.hour:
            sys.exit(f"samples.py: hour {hour} follows hour {self.hour}: the files are not in order")
        if self.now:
            self.before = list(self.now)  # in the order of their first click
        self.hour, self.now = hour, {}


def write_day(path, out, hours, negatives, draw, read):
    samples = 0
    for hour, clicks in sessions(path):
        hours.move_to(hour)
        own = {click["click_article_id"] for click in clicks}
        previous = "0"
        for click in clicks:
            article = click["click_article_id"]
            hours.now[article] = None
            moment = ",".join([str(hour % 24)] + [click[name] for name in CONTEXT])
            user = click["user_id"]
            if read is not None:
                moment += "," + "|".join(read[user])
            if hours.before:
                out.write(f"1,{user},{article},{previous},{moment}\n")
                samples += 1
            for _ in range(negatives if hours.before else 0):
                other = draw.choice(hours.before)
                if other in own:
                    continue
                out.write(f"0,{user},{other},{previous},{moment}\n")
                samples += 1
            previous = article
            if read is not None:
                read[user].append(article)
    return samples


class Read(dict):
    """The last `most` articles of each visitor."""

    def __init__(self, most):
        super().__init__()
        self.most = most

    def __missing__(self, user):
        self[user] = collections.deque(maxlen=self.most)
        return self[user]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clicks_dir", type=pathlib.Path)
    parser.add_argument("out_dir", type=pathlib.Path)
    parser.add_argument("--negatives", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--history", type=int, default=0)
    arguments = parser.parse_args()
    days = sorted(path for path in arguments.clicks_dir.iterdir()
                  if re.fullmatch(r"clicks_day\d+\.csv(\.xz)?", path.name))
    if not days:
        sys.exit(f"samples.py: {arguments.clicks_dir} contains no clicks_dayNN.csv, plain or as .xz")
    arguments.out_dir.mkdir(parents=True, exist_ok=True)
    hours, read = Hours(), Read(arguments.history) if arguments.history else None
    columns = COLUMNS + (["read"] if arguments.history else [])
    for path in days:
        day = re.search(r"\d+", path.name).group()
        draw = random.Random(f"{arguments.seed} {day}")
        fresh = arguments.out_dir / f"day{day}.csv.tmp"
        with open(fresh, "w") as out:
            out.write(",".join(columns) + "\n")
            samples = write_day(path, out, hours, arguments.negatives, draw, read)
        fresh.rename(arguments.out_dir / f"day{day}.csv")
        print(f"day {day}: {samples:,} samples", flush=True)


if __name__ == "__main__":
    main()
