// The last step of preparing Criteo's logs: turns rows with ids into samples.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "worker/data/format/data_set.h"
#include "worker/data/prepare/criteo_block.h"
#include "worker/data/prepare/multi_hot.h"

namespace cistern::data {

// Threads: any, unless multi_hot counts frequencies; then one at a time.
class CriteoSamples {
 public:
  static constexpr uint64_t kRowsPerBlock = 1024;
  // Number of blocks for `rows` rows.
  static size_t Blocks(uint64_t rows) { return (rows + kRowsPerBlock - 1) / kRowsPerBlock; }

  // sizes: number of ids of each column; crosses follow the 26 columns. wide_slot: all crosses are
  // keys of one slot. multi_hot: outlives this; null: no multi-hot transform.
  CriteoSamples(DataFormat format, std::vector<uint64_t> sizes, bool wide_slot, MultiHot* multi_hot)
      : is_norm_(format == DataFormat::kNorm),
        sizes_(std::move(sizes)),
        wide_slot_(wide_slot),
        multi_hot_(multi_hot) {}

  // Puts the samples of block `number` into `block`: up to kRowsPerBlock, from number *
  // kRowsPerBlock on. rows: [n, CriteoRowWords]. order: sample i is row order[i]; empty: row i.
  void Take(absl::string_view rows, const std::vector<uint32_t>& order, size_t number,
            SampleBlock* block) const;

 private:
  void AppendRow(const uint32_t* row, SampleBlock* block) const;

  const bool is_norm_;  // adds slot offsets to keys; in other formats, the reader adds them
  const std::vector<uint64_t> sizes_;
  const bool wide_slot_;
  MultiHot* const multi_hot_;
};

}  // namespace cistern::data
