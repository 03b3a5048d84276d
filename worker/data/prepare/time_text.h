// Dates and times as programs and people write them.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace cistern {

// One way to write a time, such as "24/03/2024 10:11". Of a column, all values are of one form.
struct TimeForm {
  static constexpr size_t kIso = 0;  // 2024-05-31 or 2024/05/31, alone or with a time behind it
  size_t number = kIso;
  // Whether day and month could change places: 03/04/2024 in every row.
  bool is_ambiguous = false;
};

// The forms that all values of a column have.
//
// Threads: one at a time.
class TimeForms {
 public:
  TimeForms() { possible_.set(); }

  void Add(absl::string_view text);
  bool any() const { return possible_.any(); }
  TimeForm form() const;  // any() must be true

  static constexpr size_t kFormsMost = 192;

 private:
  std::bitset<kFormsMost> possible_;
};

// A time as a number that orders like it: 2024-05-31 12:00:00 is 20240531120000, in UTC if the text
// has an offset; an integer or a number of seconds is itself. nullopt for other text.
std::optional<int64_t> TimeOrder(absl::string_view text, const TimeForm& form = {});

}  // namespace cistern
