#include "common/value/value_binary.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace cistern {
namespace {

void AppendRecord(Key key, absl::Span<const float> cells, std::string* out) {
  const size_t bytes = kRecordHeadBytes + cells.size() * sizeof(float), begin = out->size();
  const uint32_t length = static_cast<uint32_t>(bytes);
  out->resize(begin + bytes);
  char* record = out->data() + begin;
  std::memcpy(record, &length, sizeof(length));
  std::memcpy(record + sizeof(length), &key, sizeof(key));
  if (!cells.empty()) {
    std::memcpy(record + kRecordHeadBytes, cells.data(), cells.size() * sizeof(float));
  }
}

absl::Status NotFinite(Key key, const std::string& cell) {
  return absl::DataLossError(absl::StrCat("key ", key, ": ", cell, " is not a finite number"));
}

// Scans all cells without an early exit, so that the loop vectorizes: nearly always all are finite.
bool AreFinite(const float* begin, const float* end) {
  constexpr uint32_t kExponent = 0x7F800000;
  uint32_t bad = 0;
  for (const float* cell = begin; cell != end; ++cell) {
    bad |= static_cast<uint32_t>((std::bit_cast<uint32_t>(*cell) & kExponent) == kExponent);
  }
  return bad == 0;
}

// The same for two bfloat16 in each cell.
bool AreFiniteHalves(const float* begin, const float* end) {
  constexpr uint32_t kLower = 0x7F80, kUpper = kLower << 16;
  uint32_t bad = 0;
  for (const float* cell = begin; cell != end; ++cell) {
    const auto bits = std::bit_cast<uint32_t>(*cell);
    bad |= static_cast<uint32_t>((bits & kLower) == kLower || (bits & kUpper) == kUpper);
  }
  return bad == 0;
}

// Checks every number except those of any bits.
absl::Status CheckFinite(const ValueLayout& layout, Key key, const float* value, bool has_embedx) {
  for (const ValueField& field : layout.fields()) {
    if (field.in_embedx && !has_embedx) continue;
    const float* const cells = value + field.first;
    const bool is_bad =
        (field.type == CellType::kDouble && !std::isfinite(LoadDouble(cells))) ||
        (field.type == CellType::kBfloat16 && !AreFiniteHalves(cells, cells + field.cells()));
    if (is_bad) return NotFinite(key, field.name);
  }
  const uint32_t end = layout.floats(has_embedx);
  for (const auto& [first, last] : layout.float_runs()) {
    if (first >= end || AreFinite(value + first, value + last)) continue;
    for (uint32_t i = first; i < last; ++i) {
      if (!std::isfinite(value[i])) return NotFinite(key, absl::StrCat("cell ", i));
    }
  }
  return absl::OkStatus();
}

// The key of a record, and the position of its cells.
struct RecordParts {
  Key key = 0;
  const char* cells = nullptr;
  size_t cell_num = 0;
};

absl::StatusOr<RecordParts> Parts(absl::string_view record) {
  uint32_t length = 0;
  if (record.size() >= sizeof(length)) std::memcpy(&length, record.data(), sizeof(length));
  if (length != record.size() || length < kRecordHeadBytes ||
      (length - kRecordHeadBytes) % sizeof(float) != 0) {
    return absl::DataLossError(
        absl::StrCat("a record of ", record.size(), " bytes states a length of ", length));
  }
  RecordParts parts;
  std::memcpy(&parts.key, record.data() + sizeof(length), sizeof(parts.key));
  parts.cells = record.data() + kRecordHeadBytes;
  parts.cell_num = (length - kRecordHeadBytes) / sizeof(float);
  return parts;
}

}  // namespace

void AppendValueRecord(const ValueLayout& layout, Key key, const float* value, bool has_embedx,
                       std::string* out) {
  AppendRecord(key, absl::MakeConstSpan(value, layout.floats(has_embedx)), out);
}

absl::Status ParseValueRecord(const ValueLayout& layout, absl::string_view record, Key* key,
                              float* value, bool* has_embedx) {
  CISTERN_ASSIGN_OR_RETURN(const RecordParts parts, Parts(record));
  const size_t short_cells = layout.short_floats(), full_cells = layout.full_floats();
  if (parts.cell_num != short_cells && parts.cell_num != full_cells) {
    return absl::DataLossError(absl::StrCat(
        "key ", parts.key, " has ", parts.cell_num, " cells; a value has ", full_cells,
        short_cells == full_cells ? "" : absl::StrCat(", or ", short_cells, " without embedx")));
  }
  *key = parts.key;
  *has_embedx =
      !layout.embedx_is_optional() || (parts.cell_num == full_cells && full_cells > short_cells);
  std::memcpy(value, parts.cells, parts.cell_num * sizeof(float));
  std::fill(value + parts.cell_num, value + full_cells, 0.0f);
  return CheckFinite(layout, *key, value, *has_embedx);
}

void AppendDenseRecord(uint64_t row, absl::Span<const float> values, std::string* out) {
  AppendRecord(row, values, out);
}

absl::Status ParseDenseRecord(absl::string_view record, uint64_t row, size_t columns,
                              std::vector<float>* values) {
  CISTERN_ASSIGN_OR_RETURN(const RecordParts parts, Parts(record));
  if (parts.key != row) {
    return absl::DataLossError(absl::StrCat("found row ", parts.key, " in place of row ", row));
  }
  if (parts.cell_num != columns) {
    return absl::DataLossError(
        absl::StrCat("row ", row, " has ", parts.cell_num, " cells instead of ", columns));
  }
  const size_t begin = values->size();
  values->resize(begin + columns);
  std::memcpy(values->data() + begin, parts.cells, columns * sizeof(float));
  for (size_t i = 0; i < columns; ++i) {
    if (std::isfinite((*values)[begin + i])) continue;
    values->resize(begin);
    return absl::DataLossError(
        absl::StrCat("row ", row, ": column ", i, " is not a finite number"));
  }
  return absl::OkStatus();
}

absl::Status SplitRecord(absl::string_view record, Key* key, std::vector<float>* cells) {
  CISTERN_ASSIGN_OR_RETURN(const RecordParts parts, Parts(record));
  *key = parts.key;
  cells->resize(parts.cell_num);
  if (!cells->empty()) std::memcpy(cells->data(), parts.cells, parts.cell_num * sizeof(float));
  return absl::OkStatus();
}

}  // namespace cistern
