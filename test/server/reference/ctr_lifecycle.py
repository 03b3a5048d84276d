#!/usr/bin/env python3
"""Three days of a small ctr table by PSLib's rules, for table_lifecycle_test.cc.

Written from the rules alone (docs/formats.md, "Save modes"), without the code under test:

    python3 test/server/reference/ctr_lifecycle.py > test/server/reference/ctr_lifecycle_golden.h
"""
import struct


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


NONCLK, CLICK, RATE = f32(0.1), 1.0, f32(0.98)
BASE, DELTA, KEEP_DAYS, DELETE, DELETE_AFTER = 1.5, 0.25, 16, f32(0.8), 30
FIRST_DAY, DAYS = 20000, (20000, 20001, 20005)


class Row:
    def __init__(self, key, unseen):
        self.key, self.unseen = key, unseen
        self.show = key * 7 % 23 + key * 0.25
        self.click = float(min(key % 5, int(self.show)))
        self.delta = key * 13 % 17 / 8

    def score(self, fade=1.0):
        show, click = self.show * fade, self.click * fade
        return (show - click) * NONCLK + click * CLICK


def age(row, day):
    """(days unseen, fade) of a row; day None: unseen is a count."""
    if day is None or row.unseen < KEEP_DAYS:
        return row.unseen, 1.0
    days = max(0, day - row.unseen)
    return days, RATE**days


def saved(row, mode, day):
    days, fade = age(row, day)
    least = DELTA if mode == "DELTA" else 0
    return row.score(fade) >= BASE and row.delta >= least and days <= KEEP_DAYS


def shrink(row, day):
    if day is None:
        row.show *= RATE
        row.click *= RATE
    elif row.unseen < KEEP_DAYS:
        back = 1 / RATE**row.unseen
        row.show *= back
        row.click *= back
        row.unseen = day - row.unseen
    days, fade = age(row, day)
    return row.score(fade) >= DELETE and days <= DELETE_AFTER


def see(row, day):
    if day is None:
        row.unseen = 0
    else:
        _, fade = age(row, day)
        row.show *= fade
        row.click *= fade
        row.unseen = max(row.unseen, day)
    row.show += 1
    row.delta += NONCLK


def run(name, rows, days):
    print(f"inline const std::vector<GoldenDay> {name} = {{")
    for n, day in enumerate(days):
        for row in rows:
            if row.key % 7 == n:
                see(row, day)
        delta = [row.key for row in rows if saved(row, "DELTA", day)]
        base = [row.key for row in rows if saved(row, "BASE", day)]
        for row in rows:
            if row.key in delta:
                row.delta = 0.0
        if day is None:
            for row in rows:
                row.unseen += 1
        rows = [row for row in rows if shrink(row, day)]
        lists = ["{" + ", ".join(map(str, keys)) + "}" for keys in (delta, base)]
        print(f"    {{{day or 0},\n     {lists[0]},\n     {lists[1]},\n     {{")
        for row in rows:
            show, click = row.show.hex(), row.click.hex()
            print(f"         {{{row.key}, {row.unseen}, {f32(row.delta).hex()}, {show}, {click}}},")
        print("     }},")
    print("};\n")


def day_cell(key):
    if key == 11:
        return FIRST_DAY + 2  # seen after today
    return key % 16 if key % 3 == 0 else FIRST_DAY - key % 40


print("""// Made by ctr_lifecycle.py; do not edit.
// clang-format off
#pragma once

#include <cstdint>
#include <vector>

namespace cistern {

struct GoldenRow {
  uint64_t key;
  float unseen, delta;
  double show, click;
};
// Keys that a save of each mode holds, and the rows that are left after the shrink of that day.
struct GoldenDay {
  uint32_t day;
  std::vector<uint64_t> delta, base;
  std::vector<GoldenRow> rows;
};
""")
run("kGoldenCounts", [Row(key, key * 3 % 40) for key in range(40)], [None, None, None])
run("kGoldenDays", [Row(key, day_cell(key)) for key in range(40)], DAYS)
print("}  // namespace cistern")
