#!/usr/bin/env python3
"""Which rows should stay in memory? Simulates tables with a memory limit on a real click log.

    hit_rates.py [--passes N] [--drop COLUMN,...] FILE.csv...     FILE: also .gz, .xz; in the order of time

Each column's value is a key, and the rows of the files, in order, make N passes (default 60). Of a pass's distinct keys
some are new to the table, some were in the pass before, whose rows the worker still has, and the others must be found on the
server. For memory of 5, 10 and 20 % of the rows that the table has, it prints which share of the pass's keys the server
finds in memory:

    last     rows of the last passes stay (recency)
    count    server/table/hot_rows.h: the number of passes that had the row, each counting .95 times the next one
    best     the rows that are needed soonest stay (Belady 1966), which needs the future

Needs numpy and pandas.
"""

import argparse

import numpy as np
import pandas as pd

KEEP = 0.95


def keys_of(files, drop):
    """[rows, columns]: one number for each (column, value)."""
    table = pd.concat([pd.read_csv(file, dtype=str, keep_default_na=False) for file in files], ignore_index=True)
    table = table.drop(columns=[column for column in drop if column])
    numbers, first = [], 0
    for column in table:
        codes, values = pd.factorize(table[column])
        numbers.append(codes + first)
        first += len(values)
    return np.stack(numbers, axis=1), first


def simulate(passes, count, share, score_of):
    """The mean share of a pass's keys that are found in memory.

    score_of(keys, pass): the scores of rows after a pass; the best stay."""
    known, hot = np.zeros(count, bool), np.zeros(count, bool)
    previous = np.zeros(count, bool)
    hits = []
    for number, keys in enumerate(passes):
        wanted = keys[known[keys] & ~previous[keys]]
        hits.append(hot[wanted].sum() / len(keys))
        known[keys] = True
        previous[:] = False
        previous[keys] = True
        # What stays is chosen of the rows in memory and those of this pass.
        candidates = np.flatnonzero(hot | previous)
        room = int(share * known.sum())
        scores = score_of(candidates, number)
        kept = candidates[np.argsort(-scores, kind="stable")[:room]]
        hot[:] = False
        hot[kept] = True
    return np.mean(hits[len(hits) // 3:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passes", type=int, default=60)
    parser.add_argument("--drop", default="")
    parser.add_argument("files", nargs="+")
    words = parser.parse_args()
    rows, count = keys_of(words.files, words.drop.split(","))
    passes = [np.unique(part) for part in np.array_split(rows, words.passes)]

    # In which passes each key is.
    pairs = np.concatenate([keys * words.passes + number for number, keys in enumerate(passes)])
    pairs.sort()

    def last(keys, number):
        at = np.searchsorted(pairs, keys * words.passes + number, side="right") - 1
        return pairs[at] % words.passes

    def soonest(keys, number):
        # A row of the next pass is the worker's: what counts is the need after a pass without it.
        need = np.full(len(keys), np.inf)
        open_ = np.ones(len(keys), bool)
        before = np.full(len(keys), number)
        at = np.searchsorted(pairs, keys * words.passes + number, side="right")
        here = np.zeros(len(keys), bool)
        here[np.isin(keys, passes[number])] = True
        before = np.where(here, number, -2)
        while open_.any():
            index = np.flatnonzero(open_)
            valid = (at[index] < len(pairs)) & (pairs[np.minimum(at[index], len(pairs) - 1)] // words.passes == keys[index])
            open_[index[~valid]] = False
            index = index[valid]
            next_ = pairs[at[index]] % words.passes
            asked = next_ != before[index] + 1
            need[index[asked]] = next_[asked]
            open_[index[asked]] = False
            before[index] = next_
            at[index] += 1
        return -need

    scores = np.zeros(count)

    def counted(keys, number):
        return scores[keys] * KEEP ** number

    def with_counts(share):
        scores[:] = 0
        done = -1

        def score_of(keys, number):
            nonlocal done
            if done < number:
                scores[passes[number]] += KEEP ** -number
                done = number
            return counted(keys, number)

        return simulate(passes, count, share, score_of)

    new = carried = 0
    known = np.zeros(count, bool)
    previous = np.array([], int)
    for number, keys in enumerate(passes):
        if number >= words.passes // 3:
            new += (~known[keys]).mean()
            carried += np.isin(keys, previous).mean()
        known[keys] = True
        previous = keys
    counted_passes = words.passes - words.passes // 3
    print(f"{len(rows)} rows, {count} keys, {words.passes} passes of {np.mean([len(keys) for keys in passes]):.0f} keys; "
          f"of a pass, after the first third: new {new / counted_passes:.1%}, carried over {carried / counted_passes:.1%}")
    print("memory   last   count   best")
    for share in (0.05, 0.1, 0.2):
        print(f"{share:6.0%} {simulate(passes, count, share, last):7.1%} {with_counts(share):7.1%} "
              f"{simulate(passes, count, share, soonest):7.1%}")


if __name__ == "__main__":
    main()
