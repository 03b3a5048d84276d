// Reads rows of one shard from the row files of a commit: a base and the deltas after it.
//
// Nothing is kept per row. A filter tells which file may hold a key, the first keys of its blocks
// tell which block, and the blocks that a call needs are read together. 1.9 bytes of memory per row
// of a base (12 floats), against 67 for a row in memory.
#pragma once

#include <memory>
#include <vector>

#include "common/value/value_layout.h"
#include "server/checkpoint/row_file.h"
#include "server/table/cold_rows.h"

namespace cistern::server {

// Threads: any thread.
class ColdShard : public ColdRows {
 public:
  // A section and its file, after LoadIndex.
  struct Run {
    std::shared_ptr<const RowFileReader> file;
    const RowSection* section = nullptr;
  };
  // runs: newest first. layout: outlives this.
  ColdShard(std::vector<Run> runs, const ValueLayout* layout);

  std::unique_ptr<ColdReading> Begin(absl::Span<const ColdRead> reads) const override;
  bool MayHave(Key key) const override;
  uint64_t part_num() const override;
  Key part_begin(uint64_t part) const override;
  absl::Status ReadPart(uint64_t part, const Visit& visit) const override;
  // Of the blocks' first keys and hashes, and the filters, of this shard alone.
  size_t memory_bytes() const override { return memory_bytes_; }

 private:
  // A key whose row is looked for: in `run`, and then in the older ones.
  struct Search {
    Key key = 0;
    uint32_t read = 0;  // its place in the caller's list
    uint32_t run = 0;
    uint64_t block = 0;
  };
  class Reading;

  // Moves every search to the next run that may hold its key, and its block there; drops those that
  // no run may hold. Blocks of a run come in ascending order, runs one after the other.
  void FindBlocks(std::vector<Search>* searches) const;

  const std::vector<Run> runs_;
  const ValueLayout* const layout_;
  size_t largest_ = 0;        // the run with the most blocks: its blocks cut the parts
  uint64_t part_blocks_ = 1;  // of that run, in a part
  size_t memory_bytes_ = 0;
};

}  // namespace cistern::server
