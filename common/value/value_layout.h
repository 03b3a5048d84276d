// The layout of a value: the single definition of where each field is.
//
// A value is an array of 4-byte cells ("floats"). Fields of the two accessors:
//
//   embedding  w[dim]  state[RowStateFloats(rule, dim)]
//   ctr        unseen_days  delta_score  show(f64: 2 cells)  click(f64: 2 cells)  embed_w
//              embed_state  slot  uid(u64: 2 cells)  embedx_state  embedx_w[dim]
//
// With AdaGrad, which has one cell of state, the ctr layout equals spec/003 section 3.2 cell by
// cell: dim 12 + D. A ctr value without embedx ("short") ends before embedx_state. In a server's
// arena a value follows its 8-byte key and starts 8-byte aligned. uid may start at an odd cell, so
// wide fields are read and written with memcpy, never through a cast.
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

// Replaces the `full` flag of a requested row whose key is not in the table.
inline constexpr uint8_t kAbsent = 0xFF;

// Threads: immutable after Create; any thread.
class ValueLayout {
 public:
  using Accessor = v1::TableSpec::Accessor;

  // kInvalidArgument if the spec is not usable: an empty or unsafe name, dim 0 (embedding) or above
  // 4096, an unknown rule or initializer, a constant that is not finite or is outside the range of
  // its rule (ToRuleParams).
  static absl::StatusOr<ValueLayout> Create(const v1::TableSpec& spec);

  Accessor accessor() const { return accessor_; }
  bool is_ctr() const { return accessor_ == v1::TableSpec::CTR; }
  uint32_t dim() const { return dim_; }
  const RuleParams& rule() const { return rule_; }
  const v1::CtrRules& ctr() const { return ctr_; }
  uint64_t seed() const { return seed_; }

  // The number of cells of a whole value, and of one without embedx (the same for embedding).
  uint32_t full_floats() const { return full_floats_; }
  uint32_t short_floats() const { return short_floats_; }
  uint32_t floats(bool full) const { return full ? full_floats_ : short_floats_; }

  // The cells of w and its state (embedding), or of embedx_w and its state (ctr).
  uint32_t weight_index() const { return weight_index_; }
  uint32_t state_index() const { return state_index_; }
  uint32_t state_floats() const { return state_floats_; }

  // Ctr only.
  static constexpr uint32_t kUnseenDays = 0, kDeltaScore = 1, kShow = 2, kClick = 4, kEmbedW = 6,
                            kEmbedState = 7;
  uint32_t slot_index() const { return slot_index_; }
  uint32_t uid_index() const { return slot_index_ + 1; }

  // Writes the initial value of `key` to out[0 .. full_floats()): a pure function of (seed, key).
  // Returns whether that value is full: always for embedding; for ctr only if the threshold is at
  // most zero and dim is not 0. The cells of an absent embedx are set to zero.
  bool Initialize(Key key, float* out) const;

  // Writes the initial weights of embedx into a ctr value and zeroes the state of embedx.
  void InitializeEmbedx(Key key, float* value) const;

  // score(show, click) of the ctr rules.
  double Score(double show, double click) const {
    return (show - click) * ctr_.nonclk_coeff() + click * ctr_.click_coeff();
  }

  // The names of the fields in memory order, one per number: "show", "embedx_w[0]" ...
  // A wide field is one number. full: with embedx.
  std::vector<std::string> FieldNames(bool full) const;
  // The numbers of those fields, in the same order.
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

// Access to wide fields at any alignment.
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

// Converts a rule of a schema to plain data. kInvalidArgument for an unknown kind or update type;
// for a constant that is not finite or is outside the range that the rule states (RuleConstant),
// because it could produce NaN; and for deferred updates of a rule that has none, or with a
// weight_bound.
absl::StatusOr<RuleParams> ToRuleParams(const v1::UpdateRule& rule);
// The inverse. Constants that the rule does not read stay unset, so they are not part of the
// schema's hash.
v1::UpdateRule ToUpdateRule(const RuleParams& rule);

}  // namespace cistern
