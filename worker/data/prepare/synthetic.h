// Synthetic data from a known model, so that the best reachable AUC is known.
//
// Each sample has D dense features, uniform in [-1, 1), and one key in each of S slots, drawn from
// a bounded Pareto distribution over the slot's keys (HugeCTR's power law since version 3.1). Its
// label is 1 with probability 1 / (1 + exp(-z)), where
//
//   z = bias + sum_d a_d x_d + sum_s w(k_s) + sum_{s < t} <v(k_s), v(k_t)>
//
// is a factorization machine. Its weights are normally distributed and pure functions of (seed,
// key), so every run with the same options writes the same bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/data/format/sample_reader.h"

namespace cistern::data {

struct SyntheticOptions {
  std::string out;         // output folder: <out>/train and <out>/test, each with a file_list.txt
  bool overwrite = false;  // replaces an existing data set
  uint64_t train_samples = 200000, test_samples = 50000;
  uint32_t slots = 8;
  uint32_t dense = 4;
  uint64_t keys_per_slot = 1000;  // the first key of slot s is s * keys_per_slot
  double alpha = 1.2;             // exponent of the Pareto distribution: above 0, not 1
  uint32_t factors = 4;           // dimension of v
  double weight_scale = 0.5, factor_scale = 0.3, dense_scale = 0.5;  // standard deviations
  double bias = -1;
  uint64_t seed = 1;
  NormCheck check = NormCheck::kSum;
  bool wide_keys = true;
  uint64_t samples_per_file = 50000;
  // The file system to write to; not owned. Null: the local disk.
  FileSystem* files = nullptr;
  // Set by Ctrl-C; not owned. Null: never.
  const std::atomic<bool>* interrupted = nullptr;
};

struct SyntheticSummary {
  std::string train_list, test_list;  // file lists
  SampleShape shape;                  // one sparse input
  uint64_t train_positives = 0, test_positives = 0;
  // Metrics of the true probabilities, that is of a perfect model. best_*: on the test labels as
  // drawn; expected_auc: in expectation over the labels.
  double best_auc = 0, best_logloss = 0;
  double expected_auc = 0;
};

// Writes the data set. kInvalidArgument: an option is out of range. kCancelled: interrupted;
// nothing was written. Passes file errors through.
absl::StatusOr<SyntheticSummary> WriteSynthetic(const SyntheticOptions& options);

}  // namespace cistern::data
