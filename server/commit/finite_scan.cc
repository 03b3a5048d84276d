#include "server/commit/finite_scan.h"

#include <algorithm>
#include <cstring>

namespace cistern {
namespace {

constexpr uint32_t kFloatExponent = 0x7F800000;
constexpr uint32_t kDoubleExponent = 0x7FF00000;  // in the upper half, the second cell
constexpr size_t kChunkCells = 1024;

}  // namespace

FiniteScan::FiniteScan(const ValueLayout& layout)
    : mask_(layout.full_floats(), kFloatExponent), bad_(mask_) {
  const auto ignore = [this](uint32_t cell) {
    mask_[cell] = 0;
    bad_[cell] = 1;  // never equal
  };
  for (const ValueField& field : layout.fields()) {
    if (field.type == CellType::kFloat) continue;
    ignore(field.first);
    ignore(field.first + 1);
    if (field.type == CellType::kDouble) {
      mask_[field.first + 1] = bad_[field.first + 1] = kDoubleExponent;
    }
  }
  Repeat();
}

FiniteScan::FiniteScan(uint32_t columns) : mask_(columns, kFloatExponent), bad_(mask_) {
  Repeat();
}

size_t FiniteScan::FirstBad(absl::Span<const float> cells) const {
  for (size_t begin = 0; begin < cells.size(); begin += mask_.size()) {
    const size_t count = std::min(mask_.size(), cells.size() - begin);
    const size_t bad = FirstBadOfChunk(cells.data() + begin, count);
    if (bad < count) return begin + bad;
  }
  return cells.size();
}

void FiniteScan::Repeat() {
  const size_t stride = mask_.size();
  const size_t rows = std::max<size_t>(1, kChunkCells / stride);
  for (std::vector<uint32_t>* pattern : {&mask_, &bad_}) {
    pattern->resize(rows * stride);
    for (size_t i = stride; i < pattern->size(); ++i) (*pattern)[i] = (*pattern)[i - stride];
  }
}

size_t FiniteScan::FirstBadOfChunk(const float* cells, size_t count) const {
  const auto is_bad = [&](size_t i) {
    uint32_t bits;
    std::memcpy(&bits, cells + i, sizeof(bits));
    return (bits & mask_[i]) == bad_[i];
  };
  uint32_t any = 0;
  for (size_t i = 0; i < count; ++i) any |= is_bad(i);  // branch-free, so it vectorizes
  if (any == 0) return count;
  size_t i = 0;
  while (!is_bad(i)) ++i;
  return i;
}

}  // namespace cistern
