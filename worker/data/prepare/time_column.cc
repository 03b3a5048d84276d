#include "worker/data/prepare/time_column.h"

#include "worker/data/prepare/column_name.h"

namespace cistern::data {

bool IsTimeColumn(const ColumnProfile& column) {
  if (column.type == ColumnType::kTime) return true;
  const bool numbers = column.type == ColumnType::kInteger || column.type == ColumnType::kNumber;
  if (!numbers || column.distinct < 2) return false;
  if (!HasWord(column.name,
               {"time",     "timestamp", "ts",       "date",    "datetime", "day",       "hour",
                "unixtime", "dt",        "created",  "updated", "at",       "start",     "end",
                "epoch",    "unix",      "utc",      "ymd",     "yyyymmdd", "datehour",  "t",
                "when",     "ms",        "millis",   "stamp",   "tstamp",   "seen",      "us",
                "usec",     "micros",    "ns",       "nsec",    "nanos",    "sec",       "secs",
                "msec",     "sent",      "received", "posted",  "modified", "published", "occurred",
                "logged"})) {
    return false;
  }
  const auto within = [&](double low, double high) {
    return column.min >= low && column.max <= high;
  };
  if (column.time_form.number == TimeForm::kEpochs) return true;
  // Days since 1900 (spreadsheets) and since 1970 of the years 1980 to 2050, Julian days, and
  // 2024061 for a day of a year. Under other names, such as t, numbers of this size are durations.
  const bool is_date = HasWord(column.name, {"date", "datetime", "dt", "day", "timestamp"}) &&
                       !HasWord(column.name, {"per"}) && !IsAmountName(column.name);
  if (is_date && (within(29221, 54789) || within(3652, 29220) || within(2444239, 2469807) ||
                  within(1980001, 2050366))) {
    return true;
  }
  // Seconds, and days since 1900, may have a fraction.
  if (column.type == ColumnType::kNumber) return within(3e8, 2.2e9) || within(3e4, 7e4);
  return within(3e8, 2.2e9) || within(3e11, 2.2e12) || within(3e14, 2.2e15) ||
         within(3e17, 2.2e18) || within(19000101, 21001231) || within(1900010100, 2100123123) ||
         within(190001010000, 210012312359) || within(19000101000000, 21001231235959) ||
         within(19000101000000000, 21001231235959999) ||
         // Ticks of 100 ns since 1601 (Windows), and microseconds since then (Chrome).
         within(1.1e17, 1.7e17) || within(1.1e16, 1.7e16) || within(7010100, 99123123);
}

}  // namespace cistern::data
