// Finds values that training does not know as they are written, but in another way: what other
// programs make of ids and lists. I17 is i17 in the training data, 'i17' or " i17" likewise, 00123
// or 123.5e0 is 123, and "t1,t2" is two values where '|' separates them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "worker/data/recipe/row_encoder.h"

namespace cistern {

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
  struct Slot {
    bool is_read = false;  // no cross, no bucket, and not all values are known
    uint64_t values = 0, spelled = 0, parted = 0;
    std::string spelling, known;   // of the first value that is known in another way
    std::string joined, one_part;  // of the first one that is several known values
  };

  void AddValue(absl::string_view value, size_t slot);
  bool Knows(absl::string_view value, size_t slot);
  // The known value that `value` is in another way; "" if it is none.
  std::string KnownAs(absl::string_view value, size_t slot);
  // The first one of the values that `value` holds, if all are known; "" if they are not.
  std::string FirstKnownPart(absl::string_view value, size_t slot);

  const RowEncoder& encoder_;
  EncoderWork work_;
  std::vector<Slot> slots_;
  uint64_t rows_ = 0;
};

}  // namespace cistern
