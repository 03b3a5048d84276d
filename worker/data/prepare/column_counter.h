// Counts the values of a column of a table.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "worker/data/prepare/key_counter.h"
#include "worker/data/prepare/table_profile.h"
#include "worker/data/prepare/time_text.h"

namespace cistern::data {

// Counts what one column holds: type, distinct values, spread.
//
// Threads: one at a time.
class ColumnCounter {
 public:
  // counted: the most distinct values that are counted exactly.
  explicit ColumnCounter(size_t counted) : distinct_(counted) {}

  void AddMissing() { ++missing_; }
  void Add(absl::string_view text);
  // Once, after the last value.
  ColumnProfile Profile(const std::string& name);

 private:
  // An infinite number is missing among numbers, and a text among texts: which, is known at the
  // end. False if there are too many forms of them.
  bool AddInfinite(absl::string_view text);
  void AddInteger(absl::string_view text);
  void AddNumber(double x);
  void CountValue(absl::string_view text, uint64_t more);
  // Infinite numbers were texts after all.
  void TakeInfinite();

  KeyCounter distinct_;
  TimeForms times_;
  bool epochs_ = true;        // all numbers are times since 1970
  unsigned epoch_units_ = 0;  // a bit for each of their units
  bool integer_ = true, number_ = true, many_ = false;
  bool float_text_ = false, exponent_ = false;
  std::vector<std::pair<std::string, uint64_t>> infinite_;  // by their text
  uint64_t count_ = 0, missing_ = 0;
  uint64_t codes_ = 0, long_codes_ = 0;  // 1e2, and of them 10e1 (IsExponentCode)
  double mean_ = 0, squares_ = 0, cubes_ = 0, min_ = 0, max_ = 0;
  std::vector<std::pair<std::string, uint64_t>> values_;
};

}  // namespace cistern::data
