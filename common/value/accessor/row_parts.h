// The sizes of the parts of rows of any dim.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/value/update_rule.h"

namespace cistern {

// The number of cells for the weights and state of an embedx, or of an embedding, of size `dim`.
inline size_t PartCells(RuleKind kind, uint32_t dim) {
  return dim + RuleStateFloats(kind, dim);
}

// The dim whose weights and state have `cells` cells, if there is one.
inline std::optional<uint32_t> DimOfPart(RuleKind kind, size_t cells) {
  // There are 1 to 3 cells per weight.
  for (size_t dim = cells / 3; dim <= cells; ++dim) {
    if (dim > 0 && PartCells(kind, static_cast<uint32_t>(dim)) == cells) {
      return static_cast<uint32_t>(dim);
    }
  }
  return std::nullopt;
}

}  // namespace cistern
