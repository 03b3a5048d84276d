// The last step of preparing Criteo's logs: rows that have their ids become samples.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "worker/data/format/data_set.h"
#include "worker/data/format/keyed_jagged.h"
#include "worker/data/prepare/criteo_block.h"

namespace cistern {

// Threads: any, unless multi_hot counts frequencies; then one at a time.
class CriteoSamples {
 public:
  static constexpr uint64_t kRowsPerBlock = 1024;
  // Blocks that so many rows make.
  static size_t Blocks(uint64_t rows) { return (rows + kRowsPerBlock - 1) / kRowsPerBlock; }

  // sizes: ids of each column, crosses behind the 26. wide_slot: the crosses are the keys of one
  // slot. multi_hot: outlives this; null: every value stays one.
  CriteoSamples(DataFormat format, std::vector<uint64_t> sizes, bool wide_slot, MultiHot* multi_hot)
      : is_norm_(format == DataFormat::kNorm),
        sizes_(std::move(sizes)),
        wide_slot_(wide_slot),
        multi_hot_(multi_hot) {}

  // Puts samples [number * kRowsPerBlock, and so many more) into `block`.
  // rows: [n, CriteoRowWords]; order: which row comes when; empty: as they are.
  void Take(absl::string_view rows, const std::vector<uint32_t>& order, size_t number,
            SampleBlock* block) const;

 private:
  void AppendRow(const uint32_t* row, SampleBlock* block) const;

  const bool is_norm_;  // slots share no keys; in other formats the reader sees to it
  const std::vector<uint64_t> sizes_;
  const bool wide_slot_;
  MultiHot* const multi_hot_;
};

}  // namespace cistern
