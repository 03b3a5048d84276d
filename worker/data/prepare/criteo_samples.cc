#include "worker/data/prepare/criteo_samples.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace cistern::data {

void CriteoSamples::Take(absl::string_view rows, const std::vector<uint32_t>& order, size_t number,
                         SampleBlock* block) const {
  std::vector<uint32_t> row(CriteoRowWords(sizes_.size()));
  const size_t row_bytes = row.size() * sizeof(uint32_t);
  const uint64_t count = rows.size() / row_bytes, first = number * kRowsPerBlock;
  block->Reset(1);
  for (uint64_t i = first; i < std::min(count, first + kRowsPerBlock); ++i) {
    const uint64_t place = order.empty() ? i : order[i];
    std::memcpy(row.data(), rows.data() + place * row_bytes, row_bytes);
    AppendRow(row.data(), block);
  }
}

void CriteoSamples::AppendRow(const uint32_t* row, SampleBlock* block) const {
  block->label.push_back(std::bit_cast<float>(row[0]));
  for (size_t i = 0; i < kCriteoDense; ++i) {
    block->dense.push_back(std::bit_cast<float>(row[1 + i]));
  }
  const uint32_t* const ids = row + 1 + kCriteoDense;
  SparseColumn& column = block->sparse[0];
  const auto end_slot = [&] {
    column.offsets.push_back(static_cast<uint32_t>(column.keys.size()));
  };
  Key offset = 0;
  for (size_t i = kCriteoSparse; i < sizes_.size(); ++i) {
    column.keys.push_back(ids[i] + offset);
    if (is_norm_) offset += sizes_[i];
    if (!wide_slot_) end_slot();
  }
  if (wide_slot_) end_slot();
  for (size_t i = 0; i < kCriteoSparse; ++i) {
    const size_t first = column.keys.size();
    if (multi_hot_ != nullptr) {
      multi_hot_->Append(i, ids[i], &column.keys);
    } else {
      column.keys.push_back(ids[i]);
    }
    for (size_t k = first; k < column.keys.size(); ++k) column.keys[k] += offset;
    end_slot();
    if (is_norm_) offset += sizes_[i];
  }
  ++block->size;
}

}  // namespace cistern::data
