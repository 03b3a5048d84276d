// The "data" of a tensor in JSON: numbers or texts, flat or nested as the shape says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "serve/server/tensor.h"

namespace cistern::serve {

// Collects the numbers or texts of one tensor while the parser reads them; the data type and the
// shape may come later.
//
// Threads: one at a time.
class JsonTensorData {
 public:
  // A bracket within "data"; the first StartArray is that of "data" itself. kInvalidArgument if the
  // nesting is deeper than kMaxDepth, or an array holds both numbers and arrays.
  absl::Status StartArray();
  absl::Status EndArray();
  absl::Status Add(int64_t value) {
    return AddNumber({Kind::kSigned, static_cast<uint64_t>(value)});
  }
  absl::Status Add(uint64_t value) { return AddNumber({Kind::kUnsigned, value}); }
  absl::Status Add(double value);
  absl::Status Add(absl::string_view text);

  bool done() const { return started_ && open_.empty(); }

  // Sets the elements of `tensor`, whose name, data type and shape are complete. kInvalidArgument
  // if the numbers or their nesting do not fit the shape, or a number does not fit the data type.
  absl::Status Finish(InferTensor* tensor) const;

 private:
  static constexpr size_t kMaxDepth = 8;
  enum class Kind : uint8_t { kSigned, kUnsigned, kFloat, kText };
  struct Number {
    Kind kind;
    uint64_t bits;  // the integer, or the bits of the double; of a text nothing
  };

  absl::Status AddNumber(Number number);
  absl::Status CheckNesting(const InferTensor& tensor) const;
  template <class T>
  absl::Status Convert(InferTensor* tensor) const;

  std::vector<Number> numbers_;
  std::string texts_;  // each its length (u32), then its bytes
  size_t text_num_ = 0;
  bool started_ = false, ragged_ = false, mixed_ = false;
  std::vector<uint64_t> open_;    // elements so far of each array that is open, outermost first
  std::vector<int64_t> lengths_;  // of the first array that ended at each depth; -1: none yet
  size_t number_depth_ = 0;       // open arrays around each number; 0: no number yet
};

}  // namespace cistern::serve
