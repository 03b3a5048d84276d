#include "server/checkpoint/dense_section.h"

#include <algorithm>
#include <optional>

#include "common/base/checked.h"

namespace cistern::server {

absl::Status AppendDenseSection(const DenseTable& table, TableId id, RowFileWriter& writer) {
  const DenseRange range = table.range();
  const uint64_t rows = range.end - range.begin;
  const size_t columns = table.columns();
  RowSection section;
  section.dense = true;
  section.table = id;
  section.stride = table.columns();
  section.begin = range.begin;
  CISTERN_RETURN_IF_ERROR(writer.BeginSection(section));
  const uint64_t step = std::max<uint64_t>(1, (size_t{1} << 20) / (columns * sizeof(float)));
  std::vector<float> cells(std::min(step, rows) * columns);
  RowBlockBuilder builder(nullptr, table.columns());
  for (uint64_t row = 0; row < rows; row += step) {
    const uint64_t count = std::min(step, rows - row);
    CISTERN_RETURN_IF_ERROR(table.Read(range.begin + row, count, cells.data()));
    for (uint64_t i = 0; i < count; ++i) builder.AddDense(&cells[i * columns]);
    CISTERN_RETURN_IF_ERROR(writer.Append(builder.Take(row + count == rows)));
  }
  return writer.EndSection(rows, table.Digest());
}

absl::Status TakeDenseSections(const RowFileReader& file, TableId id, DenseTable& table) {
  const DenseRange own = table.range();
  for (const RowSection& section : file.sections()) {
    if (!section.dense || section.table != id) continue;
    const std::optional<uint64_t> section_end = CheckedAdd(section.begin, section.rows);
    if (section.stride != table.columns() || !section_end.has_value()) {
      return absl::DataLossError(
          absl::StrCat("a dense section has rows of ", section.stride, " columns from row ",
                       section.begin, " on, but table ", id, " has ", table.columns(), " columns"));
    }
    const uint64_t begin = std::max(own.begin, section.begin);
    const uint64_t end = std::min(own.end, *section_end);
    if (begin >= end) continue;
    std::vector<float> cells;
    CISTERN_RETURN_IF_ERROR(file.ReadDense(section, &cells));
    const float* first = cells.data() + (begin - section.begin) * table.columns();
    CISTERN_RETURN_IF_ERROR(table.Write(begin, end - begin, first));
  }
  return absl::OkStatus();
}

}  // namespace cistern::server
