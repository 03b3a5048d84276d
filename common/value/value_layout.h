// The layout of a value: the single definition of where each field is.
//
// A value is an array of 4-byte cells ("floats"). Its accessor (common/value/accessor) says which
// fields it has. In a server's arena a value follows its 8-byte key and starts 8-byte aligned. A
// wide field may start at an odd cell, so wide fields are read and written with memcpy, never
// through a cast.
//
// The values of a table with 16-bit rows (TableSpec.row_type) have two forms. Training computes
// with floats; tables, frames, row files and saved models hold them packed, two numbers in a cell.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/philox.h"
#include "common/base/status.h"
#include "common/base/types.h"
#include "common/value/accessor.h"
#include "common/value/first_weights.h"
#include "common/value/update_rule.h"
#include "common/value/value_shape.h"
#include "proto/schema.pb.h"

namespace cistern {

// Replaces the `has_embedx` flag of a requested row whose key is not in the table.
inline constexpr uint8_t kAbsent = 0xFF;

// The cell last_pass of a pass number, and back. Numbers up to 2^24 are stored as such, later ones
// as the floats that follow: the k-th float above 2^24 stands for 2^24 + k, which floats lack.
// Cells compare as their passes do. kMaxCellPass, 889 million passes, stands for itself and all
// later ones. Any other cell (negative, fractional, not finite) reads as a pass, too.
inline constexpr PassId kMaxCellPass = (PassId{1} << 24) + 0x33FFFFFF;
float CellOfPass(PassId pass);
PassId PassOfCell(float cell);

// The largest TableBounds.admit_after: floats count exactly up to here.
inline constexpr uint32_t kMaxAdmitAfter = 1u << 24;
// Whether the rows of a table with these bounds count how often they occur in training.
inline bool CountsSightings(const v1::TableBounds& bounds) {
  return bounds.admit_after() > 0 || bounds.evict_by() == v1::TableBounds::COUNT;
}

// Threads: immutable after Create; any thread.
class ValueLayout {
 public:
  static constexpr uint32_t kMaxDim = 4096;

  // The layout of the values that training computes with: each weight is a float.
  //
  // accessors: those that the spec may name. kInvalidArgument if the spec is not usable: an empty
  // or unsafe name, an unknown accessor, rule or initializer, a dim that the accessor does not have
  // or above kMaxDim, a constant that is not finite or is outside the range of its rule
  // (ToRuleParams), bounds that bound nothing or need statistics that rows do not keep.
  static absl::StatusOr<ValueLayout> Create(const v1::TableSpec& spec,
                                            AccessorList accessors = Accessors());
  // The layout of the values that tables, frames and files hold: packed if the rows have 16 bits,
  // otherwise that of Create. Errors as Create.
  static absl::StatusOr<ValueLayout> CreateStored(const v1::TableSpec& spec,
                                                  AccessorList accessors = Accessors());

  // Whether weights and state are 16-bit fields (CellType::kBfloat16), which cannot be read as
  // floats: Unpack them first.
  bool is_packed() const { return unpacked_ != nullptr; }
  // The layout of the same values as floats: that of Create.
  const ValueLayout& unpacked() const { return is_packed() ? *unpacked_ : *this; }
  // stored: a value of this layout. value: of unpacked().
  void Unpack(const float* stored, float* value) const;
  // The inverse, rounded to the nearest: exact for the results of RoundCells (bfloat16_cells.h).
  void Pack(const float* value, float* stored) const;
  // The cells of an unpacked value that are stored in 16 bits, [first, end); empty if none is.
  std::pair<uint32_t, uint32_t> rounded_cells() const { return rounded_cells_; }
  bool rounds() const { return rounded_cells_.first < rounded_cells_.second; }

  const Accessor& accessor() const { return *accessor_; }
  uint32_t dim() const { return dim_; }
  const RuleParams& rule() const { return rule_; }
  const v1::CtrRules& ctr() const { return ctr_; }
  const v1::TableBounds& bounds() const { return bounds_; }
  // Whether servers remove rows on their own (v1.TableBounds). Then the cell last_pass_index() has
  // the last pass that pushed the row (CellOfPass); servers write it, and workers carry it along.
  bool is_bounded() const { return is_bounded_; }
  uint32_t last_pass_index() const { return last_pass_index_; }
  // The cell in which training counts how often the row occurs; null if it does not
  // (CountsSightings).
  const ValueField* count_field() const { return FindField("count"); }
  uint64_t seed() const { return seed_; }

  // The number of cells of a whole value, and of one without embedx.
  uint32_t full_floats() const { return shape_.full_floats; }
  uint32_t short_floats() const { return shape_.short_floats; }
  uint32_t floats(bool has_embedx) const { return has_embedx ? full_floats() : short_floats(); }
  // Whether a value may lack its embedx; otherwise every value has it.
  bool embedx_is_optional() const { return shape_.embedx_is_optional; }

  // The cells of the weights that training reads and writes, and of their state: w (embedding),
  // embedx_w (ctr).
  uint32_t weight_index() const { return shape_.weight_index; }
  uint32_t state_index() const { return shape_.state_index; }
  uint32_t state_floats() const { return shape_.state_floats; }

  // The fields in memory order, and the one with this name; null if there is none.
  absl::Span<const ValueField> fields() const { return shape_.fields; }
  const ValueField* FindField(absl::string_view name) const;
  // The cells of runs of adjacent floats, [first, end), in order; the cells between them belong to
  // wide and 16-bit fields. Those of embedx, if it is optional, are a run of their own.
  absl::Span<const std::pair<uint32_t, uint32_t>> float_runs() const { return float_runs_; }

  // Writes the initial value of `key` to out[0 .. full_floats()): a pure function of (seed, key).
  // Returns whether that value has its embedx; if not, its cells are set to zero.
  bool Initialize(Key key, float* out) const;

  // Writes the initial weights of embedx into a value and zeroes their state.
  void InitializeEmbedx(Key key, float* value) const;

  // The names of the fields in memory order, one per number: "show", "embedx_w[0]" ...
  // A wide field is one number.
  std::vector<std::string> FieldNames(bool has_embedx) const;
  // The numbers of those fields, in the same order; of last_pass, the pass.
  std::vector<double> FieldValues(const float* value, bool has_embedx) const;

 private:
  ValueLayout() = default;
  void SetShape(ValueShape shape);
  void WriteFirstWeights(Key key, float* value) const;

  const Accessor* accessor_ = nullptr;
  uint32_t dim_ = 0;
  RuleParams rule_;
  v1::Initializer initializer_;
  v1::CtrRules ctr_;
  v1::TableBounds bounds_;
  bool is_bounded_ = false;
  uint32_t last_pass_index_ = 0;
  uint64_t seed_ = 0;
  ValueShape shape_;
  std::vector<float> blank_;  // a new row without its first weights
  std::vector<std::pair<uint32_t, uint32_t>> float_runs_;
  std::pair<uint32_t, uint32_t> rounded_cells_;
  std::shared_ptr<const ValueLayout> unpacked_;  // null: not packed
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

// Unpacks values one by one, if they are packed.
//
// Threads: one at a time (each object has one buffer).
class ValueUnpacker {
 public:
  // stored: that of ValueLayout::CreateStored.
  explicit ValueUnpacker(const ValueLayout& stored)
      : stored_(stored), value_(stored.is_packed() ? stored.unpacked().full_floats() : 0) {}

  const ValueLayout& stored() const { return stored_; }
  // stored: stored().full_floats() cells. The result is `stored` itself, or valid until the next
  // call.
  const float* operator()(const float* stored) {
    if (!stored_.is_packed()) return stored;
    stored_.Unpack(stored, value_.data());
    return value_.data();
  }
  float* operator()(float* stored) {
    return stored_.is_packed() ? const_cast<float*>((*this)(const_cast<const float*>(stored)))
                               : stored;
  }

 private:
  const ValueLayout stored_;
  std::vector<float> value_;
};

// Converts a rule of a schema to plain data. kInvalidArgument for an unknown kind or update type;
// for a constant that is not finite or is outside the range that the rule states (RuleConstant),
// because it could produce NaN; and for deferred updates of a rule that has none, or with a
// weight_bound.
absl::StatusOr<RuleParams> ToRuleParams(const v1::UpdateRule& rule);
// The inverse. Constants that the rule does not read stay unset, so they are not part of the
// schema's hash.
v1::UpdateRule ToUpdateRule(const RuleParams& rule);

}  // namespace cistern
