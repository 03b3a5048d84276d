// The value of a row as serving reads it: a MioMFResult (proto/xbox.proto) in fixed point.
//
//   show x 1, click x 8, embed_w x 1024 (weight_lr_person), embedx_w x 1024 (weight_mf)
//
// Each number is rounded to the nearest integer, halves away from zero, and limited to the range of
// its field: a weight is exact to 1/2048 up to 2^21. Numbers that are zero are left out, except in
// weight_mf, which holds all dim numbers, or is absent for a row without embedx. A row with the
// accessor `embedding` has no statistics: its weights, all of them, are weight_mf.
#pragma once

#include <memory>
#include <string>

#include "common/value/row_lifecycle.h"
#include "common/value/value_layout.h"
#include "proto/xbox.pb.h"

namespace cistern {

inline constexpr double kXboxClickRatio = 8, kXboxWeightRatio = 1024;

// Threads: one at a time.
class XboxEncoder {
 public:
  // layout: outlives this. day: as for its accessor's lifecycle.
  XboxEncoder(const ValueLayout* layout, uint32_t day);

  // value: [full_floats]. Replaces *out by the bytes of the message.
  void Encode(const float* value, bool has_embedx, std::string* out);

  // How many numbers were outside the range of their fields.
  uint64_t limited() const { return limited_; }

 private:
  template <class Int>
  Int Fixed(double x);

  const ValueLayout* const layout_;
  const std::unique_ptr<RowLifecycle> lifecycle_;  // null: no statistics
  const ValueField* const embed_w_;                // null: no such weight
  xbox::MioMFResult message_;
  uint64_t limited_ = 0;
};

}  // namespace cistern
