// Dates and times as programs and people write them.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cistern::data {

// One way to write a time, such as "24/03/2024 10:11". Most columns are of one form.
struct TimeForm {
  static constexpr size_t kIso = 0;  // 2024-05-31 or 2024/05/31, alone or with a time behind it
  // Numbers since 1970 in several units, seconds in some rows and milliseconds in others.
  static constexpr size_t kEpochs = 1000;
  size_t number = kIso;
  std::vector<size_t> others;  // further forms of a column that several programs wrote
  // Whether day and month could change places: 03/04/2024 in every row.
  bool is_ambiguous = false;
};

// The unit of a number since 1970 that is a time of the years 1979 to 2039: 0 to 3 for seconds,
// milli-, micro- and nanoseconds. nullopt for other numbers.
std::optional<unsigned> EpochUnit(double number);

// The forms that the values of a column have: one for all, or up to kFormsMixed.
//
// Threads: one at a time.
class TimeForms {
 public:
  void Add(absl::string_view text);
  bool any() const { return odd_ == 0; }
  TimeForm form() const;  // any() must be true
  // Values that are no times although at least 99 in a hundred are; the first of them. 0: all are
  // times, or fewer.
  uint64_t odd() const { return odd_ > 0 && kOddOneIn * odd_ <= count_ ? odd_ : 0; }
  const std::string& first_odd() const { return first_odd_; }

  static constexpr size_t kMaxForms = 192;
  static constexpr size_t kFormsMixed = 3;

 private:
  using Set = std::bitset<kMaxForms>;
  static constexpr uint64_t kMaxOdd = 2, kOddOneIn = 100;

  // Whether a value has a form of the others, or may add one.
  bool AddTime(absl::string_view text);
  // Those of `forms` that a text has.
  static Set Fitting(absl::string_view text, const Set& forms);

  std::vector<Set> possible_;      // a set for each group of values that share a form
  std::bitset<100> first_, last_;  // the numbers at the ends of dates such as 24-05-31
  uint64_t count_ = 0, odd_ = 0;
  std::string first_odd_;
};

// A time as a number that orders like it: 2024-05-31 12:00:00 is 20240531120000, in UTC if the text
// has an offset; an integer or a number of seconds is itself (kEpochs: microseconds). nullopt for
// other text.
std::optional<int64_t> TimeOrder(absl::string_view text, const TimeForm& form = {});

}  // namespace cistern::data
