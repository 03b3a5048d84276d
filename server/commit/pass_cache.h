// HugeCTR's Cached-PS: memory for the rows of a number of passes of a table, in place of a number
// of bytes for all tables.
//
// While there is room, all rows of a pass stay. Then a commit exchanges rows for those of its pass
// (hot_rows.h says which), if the pass found too few of its rows in memory, and only so often.
// Afterwards memory keeps the rows that it has. HugeCTR's words for it: embedding training cache,
// "Cached Host Memory Parameter Server". There a row is in memory once for each pass that had it.
#pragma once

#include <cstdint>
#include <string>

#include "server/table/hot_rows.h"

namespace cistern::server {

struct PassCacheOptions {
  std::string table;
  uint64_t num_blocks = 1;     // as many of the largest pass so far fit
  double target_hit_rate = 1;  // 0 to 1: rows are exchanged while the share found is below this
  uint64_t max_num_evict = 0;  // the most commits that exchange rows, since the server started
};

// Threads: one at a time.
class PassCache {
 public:
  explicit PassCache(const PassCacheOptions& options) : options_(options) {}

  struct Step {
    ScoreCut cut;        // of all rows
    bool admits = true;  // rows that were not in memory, if the cut keeps them
  };
  // What a commit does. scores: of all rows after it, if all were kept.
  Step Next(const PassRows& pass, const ScoreHistogram& scores);

 private:
  const PassCacheOptions options_;
  uint64_t largest_bytes_ = 0;  // of a pass
  uint64_t evictions_ = 0;
};

}  // namespace cistern::server
