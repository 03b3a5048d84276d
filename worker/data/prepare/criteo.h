// DLRM's preparation of the Criteo logs: reads days of TSV, writes shuffled training
// data and the last day as test data. Also writes crosses for a wide part, as HugeCTR does.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/data/format/data_set.h"
#include "worker/data/prepare/criteo_block.h"
#include "worker/data/prepare/multi_hot.h"

namespace cistern::data {

// The values of each sparse column and of each cross get ids 2, 3, 4 ... in the order of first
// occurrence over all days. Values in fewer than min_count rows get id 1.
struct CriteoOptions {
  // At least two files, as text or gzip; the last one is the test data.
  std::vector<std::string> days;
  std::string out;  // output folder: train, test, ids, slot_sizes.json
  bool overwrite = false;
  DataFormat format = DataFormat::kNorm;
  NormCheck check = NormCheck::kSum;  // Norm
  bool wide_keys = false;             // Norm
  uint64_t samples_per_file = 1000000;
  bool shuffle = true;  // shuffles the training data, as a pure function of the seed
  uint64_t seed = 1;
  uint64_t memory_mb = 1024;  // for tables of values, and for the rows of a shuffle part
  std::optional<MultiHotOptions> multi_hot;  // Norm only; does not apply to crosses
  CriteoDense dense = CriteoDense::kLog3;
  uint64_t min_count = 1;
  // The wide part, before the other slots. Norm: one slot with a key per cross; else a slot each.
  CriteoCrosses crosses;
  uint64_t threads = 0;      // 0: all cores; does not change the output
  uint64_t block_bytes = 0;  // text that a thread reads at a time; 0: from the size of the days
  // Limits of the decompressed size of a gzip day on disk: a multiple of its compressed size (3 for
  // the days of the challenge), and a number of MiB.
  uint64_t gzip_max_ratio = 100;
  uint64_t gzip_max_mb = uint64_t{1} << 20;
  // The file system to write to; not owned. Null: the local disk.
  FileSystem* files = nullptr;
};

struct CriteoSummary {
  uint64_t train_samples = 0, test_samples = 0, train_positives = 0, test_positives = 0;
  uint64_t clipped = 0;                   // dense numbers outside the domain of the transform
  std::vector<uint64_t> slot_sizes;       // largest id + 1 of each cross, then of each column
  std::string train_source, test_source;  // for a model's Data layer
  bool resumed = false;                   // continued the work of an earlier run
};

// Writes the data set atomically. The output folder also holds ids/cat_N.txt with the values of
// column N, one per line starting at id 2, and ids/cross_N.txt with pairs of values;
// slot_sizes.json; with kMinMax, dense_ranges.tsv; if frequencies are counted, frequencies.tsv.
//
// There are three steps, each split into pieces for the threads: blocks of text become rows
// (criteo_block.h), columns get their ids (criteo_ids.h), rows are dealt to shuffle parts
// (criteo_rows.h). Each piece ends with a complete file in "<out>.partial" (work_folder.h). After a
// kill, or after `progress` stopped the run, the same call does only the missing pieces. Only the
// final write of the samples, in "<out>.partial-set", starts over. An error removes both folders.
//
// Memory: memory_mb; the rows and values of a block, at most 400 MiB per thread with the largest
// blocks; and 2 bits for each distinct value of each block, for each column in progress. Disk: 4
// bytes times (40 + number of crosses) per row, and the decompressed text of gzip days.
//
// progress(rows) is called now and then, by one thread at a time; returning false stops with
// kCancelled. kDataLoss names file, line and column.
absl::StatusOr<CriteoSummary> PrepareCriteo(const CriteoOptions& options,
                                            const std::function<bool(uint64_t rows)>& progress);

}  // namespace cistern::data
