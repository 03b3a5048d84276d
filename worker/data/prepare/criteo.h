// DLRM's preparation of the Criteo logs (spec/002): days of TSV in, shuffled training data and the
// last day as test data out; and what HugeCTR's preparation adds, crosses for a wide part.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/data/format/data_set.h"
#include "worker/data/format/keyed_jagged.h"
#include "worker/data/prepare/criteo_block.h"

namespace cistern {

// The values of each sparse column, and of each cross, become 2, 3, 4 ... in the order in which
// they first occur, over all days; those of fewer than min_count rows become 1.
struct CriteoOptions {
  // At least two, as text or in gzip's format; the last is the test data.
  std::vector<std::string> days;
  std::string out;  // folder to make: train, test, ids, slot_sizes.json
  bool overwrite = false;
  DataFormat format = DataFormat::kNorm;
  NormCheck check = NormCheck::kSum;  // Norm
  bool wide_keys = false;             // Norm
  uint64_t samples_per_file = 1000000;
  bool shuffle = true;  // the training data; an order that is a function of the seed
  uint64_t seed = 1;
  uint64_t memory_mb = 1024;  // for tables of values, and for shuffling: rows at once
  std::optional<MultiHotOptions> multi_hot;  // Norm only, and not of crosses
  CriteoDense dense = CriteoDense::kLog3;
  uint64_t min_count = 1;
  // Of the wide part, before the others: with Norm one slot of a key a cross, else a slot each.
  CriteoCrosses crosses;
  uint64_t threads = 0;      // 0: all cores; changes nothing of what is written
  uint64_t block_bytes = 0;  // text that a thread takes at a time; 0: by the size of the days
  // What a day in gzip's format may unpack to on the disk: so many times its own bytes (the days of
  // the challenge have 3), and so many MiB at most.
  uint64_t gzip_max_ratio = 100;
  uint64_t gzip_max_mb = uint64_t{1} << 20;
  // The disk that is written to; not owned. Null: the machine's own.
  FileSystem* files = nullptr;
};

struct CriteoSummary {
  uint64_t train_samples = 0, test_samples = 0, train_positives = 0, test_positives = 0;
  uint64_t clipped = 0;                   // dense numbers that their transform has no value for
  std::vector<uint64_t> slot_sizes;       // of each cross, then of each column: ids are below it
  std::string train_source, test_source;  // for a model's Data layer
  bool went_on = false;                   // with what an earlier run had done
};

// Writes the data set, whole or not at all. Beside it: ids/cat_N.txt, the values of column N, one a
// line from id 2 on, and ids/cross_N.txt, pairs of them; slot_sizes.json; with kMinMax,
// dense_ranges.tsv; with frequencies counted, frequencies.tsv.
//
// Three steps, each in pieces that threads take: blocks of text become rows (criteo_block.h),
// columns get their ids (criteo_ids.h), rows their order. Each piece ends with a file that is
// whole, in
// "<out>.partial" (work_folder.h): the same call after a kill, or after progress said stop, does
// only what is missing. Only the last writing, of rows that have their order, begins again, in
// "<out>.partial-set". An error removes both.
//
// Memory: memory_mb; a block's rows and values, at most 400 MiB a thread with the largest blocks; 2
// bits for each distinct value of each block in the columns that are at work. Disk: 4 bytes times
// 40 + crosses a row, and the text of days that come in gzip's format.
//
// progress(rows) is called now and then, by one thread at a time; false stops with kCancelled.
// kDataLoss: file, line, column.
absl::StatusOr<CriteoSummary> PrepareCriteo(const CriteoOptions& options,
                                            const std::function<bool(uint64_t rows)>& progress);

}  // namespace cistern
