// The fields of a value, as its accessor describes them. What reads or writes whole values (text,
// records, checks, conversions) follows this description and knows no accessor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cistern {

enum class CellType : uint8_t {
  kFloat,
  kDouble,    // two cells
  kU64,       // two cells, any bits
  kBfloat16,  // two numbers in a cell, the first in its lower half; the last may be alone
};

// What a field is to a conversion between two layouts (value_upgrade.h).
enum class FieldRole : uint8_t {
  kPlain,    // kept
  kWeights,  // one float per weight: kept up to the smaller number
  kState,    // of `weights` weights: kept for the kept weights if the rule is the same
  kFresh,    // as in a new row
};

// One field: `count` floats or bfloat16, or one wide number.
struct ValueField {
  std::string name;  // "embedx_w"; a field of several floats is embedx_w[0], embedx_w[1] ...
  uint32_t first = 0, count = 1;  // its cells; count of a wide number: 1
  FieldRole role = FieldRole::kPlain;
  uint32_t weights = 0;  // kWeights, kState
  CellType type = CellType::kFloat;
  bool in_embedx = false;   // absent while the value has no embedx
  bool leads_text = false;  // in a line of text it comes directly after the key
  float initial = 0;        // every float of it in a new row; the weights are drawn

  uint32_t cells() const {
    return type == CellType::kFloat ? count : type == CellType::kBfloat16 ? (count + 1) / 2 : 2;
  }
  uint32_t end() const { return first + cells(); }
};

// Fields are in memory order, without gaps; those of embedx are last. The weights and state that
// the update rule works on are embedx_w and its state, or w and its state.
struct ValueShape {
  std::vector<ValueField> fields;
  uint32_t full_floats = 0, short_floats = 0;  // cells with and without embedx
  uint32_t weight_index = 0, state_index = 0, state_floats = 0;
  bool embedx_is_optional = false;  // a value may lack its embedx; otherwise it always has it
  bool starts_with_embedx = true;   // a new row has it
};

}  // namespace cistern
