// Where each field lies inside a value: the one place that knows.
//
// A value is an array of 4-byte cells ("floats"). Fields of the two accessors:
//
//   embedding  w[dim]  state[RowStateFloats(rule, dim)]
//   ctr        unseen_days  delta_score  show(f64: 2 cells)  click(f64: 2 cells)  embed_w
//              embed_state  slot  uid(u64: 2 cells)  embedx_state  embedx_w[dim]
//
// With AdaGrad's one cell of state the ctr layout is spec/003 section 3.2 to the cell: dim 12 + D.
// A ctr value without embedx ("short") ends before embedx_state. In a server's arena a value
// follows its 8-byte key and starts 8-byte aligned; uid may lie at an odd cell, so wide fields are
// read and written with memcpy, never through a cast.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "common/base/philox.h"
#include "common/base/status.h"
#include "common/base/types.h"
#include "common/value/update_rule.h"
#include "proto/schema.pb.h"

namespace cistern {

// Of a row that was asked for, in place of whether it holds its embedx: the table does not hold the
// key.
inline constexpr uint8_t kAbsent = 0xFF;

// Threads: immutable after Create; any thread.
class ValueLayout {
 public:
  using Accessor = v1::TableSpec::Accessor;

  // kInvalidArgument if the spec is not usable: empty or unsafe name, dim 0 (embedding) or above
  // 4096, an unknown rule or initializer, a constant that is not finite or outside its rule's range
  // (ToRuleParams).
  static absl::StatusOr<ValueLayout> Create(const v1::TableSpec& spec);

  Accessor accessor() const { return accessor_; }
  bool is_ctr() const { return accessor_ == v1::TableSpec::CTR; }
  uint32_t dim() const { return dim_; }
  const RuleParams& rule() const { return rule_; }
  const v1::CtrRules& ctr() const { return ctr_; }
  uint64_t seed() const { return seed_; }

  // Cells of a whole value, and of one whose embedx does not exist yet (the same for embedding).
  uint32_t full_floats() const { return full_floats_; }
  uint32_t short_floats() const { return short_floats_; }
  uint32_t floats(bool full) const { return full ? full_floats_ : short_floats_; }

  // Embedding: cells of w and of its state. Ctr: of embedx_w and of its state.
  uint32_t weight_index() const { return weight_index_; }
  uint32_t state_index() const { return state_index_; }
  uint32_t state_floats() const { return state_floats_; }

  // Ctr only.
  static constexpr uint32_t kUnseenDays = 0, kDeltaScore = 1, kShow = 2, kClick = 4, kEmbedW = 6,
                            kEmbedState = 7;
  uint32_t slot_index() const { return slot_index_; }
  uint32_t uid_index() const { return slot_index_ + 1; }

  // Writes the first value of `key` to out[0 .. full_floats()): a pure function of (seed, key).
  // Returns whether that value is full: always for embedding; for ctr only where the threshold is
  // zero or less and dim is not 0. The cells of an absent embedx are written as zero.
  bool Initialize(Key key, float* out) const;

  // Writes the first weights of embedx (its state is zeroed too) into a ctr value.
  void InitializeEmbedx(Key key, float* value) const;

  // score(show, click) of the ctr rules.
  double Score(double show, double click) const {
    return (show - click) * ctr_.nonclk_coeff() + click * ctr_.click_coeff();
  }

  // Names of the fields in memory order, each of one number: "show", "embedx_w[0]" ...
  // Wide fields are one name. full: with embedx.
  std::vector<std::string> FieldNames(bool full) const;
  // The numbers that belong to those names.
  std::vector<double> FieldValues(const float* value, bool full) const;

 private:
  ValueLayout() = default;

  Accessor accessor_ = v1::TableSpec::EMBEDDING;
  uint32_t dim_ = 0;
  RuleParams rule_;
  v1::Initializer initializer_;
  v1::CtrRules ctr_;
  uint64_t seed_ = 0;
  uint32_t full_floats_ = 0, short_floats_ = 0;
  uint32_t weight_index_ = 0, state_index_ = 0, state_floats_ = 0;
  uint32_t slot_index_ = 0;
};

// Wide fields, whatever their alignment.
inline double LoadDouble(const float* cell) {
  double x;
  std::memcpy(&x, cell, sizeof(x));
  return x;
}
inline void StoreDouble(float* cell, double x) {
  std::memcpy(cell, &x, sizeof(x));
}
inline uint64_t LoadU64(const float* cell) {
  uint64_t x;
  std::memcpy(&x, cell, sizeof(x));
  return x;
}
inline void StoreU64(float* cell, uint64_t x) {
  std::memcpy(cell, &x, sizeof(x));
}

// The plain-data form of a rule. kInvalidArgument for a kind that does not exist, and for a
// constant that could make NaN: ADAM needs betas in [0, 1) and epsilon > 0, ADAGRAD epsilon > 0,
// the other AdaGrads initial_g2sum > 0; none may be infinite.
absl::StatusOr<RuleParams> ToRuleParams(const v1::UpdateRule& rule);

}  // namespace cistern
