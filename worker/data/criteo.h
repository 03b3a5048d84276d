// DLRM's preparation of the Criteo logs (spec/002): days of TSV in, shuffled training data and the
// last day as test data out.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "worker/data/data_set.h"
#include "worker/data/keyed_jagged.h"

namespace cistern {

// A line is a label, 13 whole numbers and 26 values in hexadecimal, separated by tabs. An empty
// field is 0. A dense feature x becomes ln(x + 3); below -2 it counts as -2, since there is no
// logarithm of 0 or less. The values of each sparse column become 2, 3, 4 ... in the order in which
// they first occur, over all days.
struct CriteoOptions {
  std::vector<std::string> days;  // at least two; the last is the test data
  std::string out;                // folder to make: train, test, ids, slot_sizes.json
  bool overwrite = false;
  DataFormat format = DataFormat::kNorm;
  NormCheck check = NormCheck::kSum;  // Norm
  bool wide_keys = false;             // Norm
  uint64_t samples_per_file = 1000000;
  bool shuffle = true;  // the training data; an order that is a function of the seed
  uint64_t seed = 1;
  uint64_t memory_mb = 1024;                 // for shuffling: of rows at once
  std::optional<MultiHotOptions> multi_hot;  // Norm only
};

struct CriteoSummary {
  uint64_t train_samples = 0, test_samples = 0, train_positives = 0, test_positives = 0;
  uint64_t clipped = 0;                   // dense features below -2
  std::vector<uint64_t> slot_sizes;       // of each sparse column: ids are below it
  std::string train_source, test_source;  // for a model's Data layer
};

// Writes the data set, whole or not at all. Beside it: ids/cat_N.txt, the values of column N, one a
// line from id 2 on; slot_sizes.json; with frequencies counted, frequencies.tsv. Memory: the
// distinct values of all columns, and memory_mb.
//
// progress(rows) is called now and then; false stops with kCancelled. kDataLoss: file, line,
// column.
absl::StatusOr<CriteoSummary> PrepareCriteo(const CriteoOptions& options,
                                            const std::function<bool(uint64_t rows)>& progress);

}  // namespace cistern
