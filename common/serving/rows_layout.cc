#include "common/serving/rows_layout.h"

#include <algorithm>
#include <bit>

namespace cistern {
namespace {

// Rows of a group on average. Groups of more than 56 need a bisection. At 24 rows on average only
// adversarial keys produce one; at 36, one group in 1,500 is that large.
constexpr uint64_t kPlainRows = 24, kPackedRows = 36;

}  // namespace

RowsLayout RowsLayout::ForWriting(const RowsShape& shape, uint64_t rows) {
  // Rows of one byte a weight are short: there the key and the padding count.
  const Format format = shape.precision == RowPrecision::kInt8 ? kPacked : kPlain;
  return Of(format, shape, rows / (format == kPacked ? kPackedRows : kPlainRows) + 1);
}

RowsLayout RowsLayout::Of(Format format, const RowsShape& shape, uint64_t groups) {
  RowsLayout layout;
  layout.format = format;
  layout.shape = shape;
  layout.groups = groups;
  layout.row_bytes = RowBytes(shape.precision, shape.dim);
  if (format == kPlain) return layout;
  // The tag has 8 bits of the mixed key, and the group tells the highest ones.
  const auto known = 8 + static_cast<size_t>(std::bit_width(groups) - 1);
  layout.key_bytes = std::max<size_t>(1, (64 - std::min<size_t>(known, 64) + 7) / 8);
  layout.field_mask = ~uint64_t{0} >> (64 - 8 * layout.key_bytes);
  layout.row_bytes = layout.key_bytes + WeightBytes(shape.precision, shape.dim);
  return layout;
}

uint64_t RowsLayout::MixedOf(uint64_t field, uint64_t group, uint8_t tag) const {
  if (!packed()) return MixKey(field);
  // The least mixed key of the group; the mixed keys of a group differ in the low bits only, up to
  // one carry.
  const unsigned __int128 start = static_cast<unsigned __int128>(group) << 64;
  const auto least = static_cast<uint64_t>((start + groups - 1) / groups);
  const size_t bits = 8 + 8 * key_bytes;
  const uint64_t low = field << 8 | tag;
  if (bits >= 64) return low;
  const uint64_t step = uint64_t{1} << bits, mixed = (least & ~(step - 1)) | low;
  return mixed < least ? mixed + step : mixed;
}

ServedRowDigest::ServedRowDigest(const RowsShape& shape)
    : weight_bytes_(WeightBytes(shape.precision, shape.dim)),
      row_(RowBytes(shape.precision, shape.dim), '\0') {}

uint64_t ServedRowDigest::Of(Key key, const char* weights) {
  std::memcpy(row_.data(), &key, sizeof(key));
  std::memcpy(row_.data() + sizeof(key), weights, weight_bytes_);
  return HashBytes(row_);
}

}  // namespace cistern
