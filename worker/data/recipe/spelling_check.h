// Finds values that training does not know as they are written, but in another way: what other
// programs make of ids and lists. I17 is i17 in the training data, 'i17' or " i17" likewise, 00123
// or 1.23e2 is 123, and "t1,t2" is two values where '|' separates them. Where no known value has
// their form, u1047, user:1047, 0x417 and 1,047 are 1047, and 1047 is one of the others.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "worker/data/recipe/row_encoder.h"

namespace cistern::data {

// Threads: one at a time.
class SpellingCheck {
 public:
  // encoder: outlives this.
  explicit SpellingCheck(const RowEncoder& encoder);

  // Looks at the values of a row. Only the first 20,000 rows count.
  void Add(const std::vector<absl::string_view>& fields, const RowPlaces& places);
  // A sentence about each slot of the recipe; empty for a slot with fewer than 20 such values, or
  // one in which less than a twentieth of the values are some.
  std::vector<std::string> Sentences() const;

 private:
  // Values that are known in another way.
  struct Finding {
    uint64_t values = 0;
    std::string spelling, known;  // of the first one
    void Add(absl::string_view value, const std::string& known_as);
  };
  struct Slot {
    bool is_read = false;  // no cross, no bucket, and not all values are known
    uint64_t values = 0;
    Finding spelled, parted;
    // Ids in another form, by form ("a0" for u1047), and the forms of known values: an id in one of
    // these says nothing, because it may be a new one.
    std::map<std::string, Finding> formed;
    std::set<std::string> known_forms;
  };

  void AddValue(absl::string_view value, size_t slot);
  bool Knows(absl::string_view value, size_t slot);
  // The first of `ways` that is known; "": none is.
  std::string FirstKnown(const std::vector<std::string>& ways, size_t slot);
  // The ways to write a value that programs use for the same one, and those to write an id.
  static std::vector<std::string> Spellings(absl::string_view value);
  static std::vector<std::string> OtherForms(absl::string_view value, absl::string_view column);
  // The first one of the values that `value` holds, if all are known; "" if they are not.
  std::string FirstKnownPart(absl::string_view value, size_t slot);

  const RowEncoder& encoder_;
  EncoderWork work_;
  std::vector<Slot> slots_;
  uint64_t rows_ = 0;
};

}  // namespace cistern::data
