// Data from a known model, so that the best AUC that anyone can reach is known.
//
// Sample i holds D dense features, uniform in [-1, 1), and one key for each of S slots, from a
// bounded Pareto distribution over the slot's keys (HugeCTR's power law from 3.1 on). Its label is
// 1 with probability 1 / (1 + exp(-z)), where
//
//   z = bias + sum_d a_d x_d + sum_s w(k_s) + sum_{s < t} <v(k_s), v(k_t)>
//
// is a factorization machine whose weights are normal numbers, pure functions of (seed, key). So
// every run with the same options writes the same bytes.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/data/format/sample_reader.h"

namespace cistern {

struct SyntheticOptions {
  std::string out;  // folder to make: <out>/train and <out>/test, each with its file_list.txt
  bool overwrite = false;  // replaces a data set made before
  uint64_t train_samples = 200000, test_samples = 50000;
  uint32_t slots = 8;
  uint32_t dense = 4;
  uint64_t keys_per_slot = 1000;  // slot s has keys s * keys_per_slot up
  double alpha = 1.2;             // of the Pareto distribution: above 0, not 1
  uint32_t factors = 4;           // floats of v
  double weight_scale = 0.5, factor_scale = 0.3, dense_scale = 0.5;  // standard deviations
  double bias = -1;
  uint64_t seed = 1;
  NormCheck check = NormCheck::kSum;
  bool wide_keys = true;
  uint64_t samples_per_file = 50000;
  // The disk that is written to; not owned. Null: the machine's own.
  FileSystem* files = nullptr;
};

struct SyntheticSummary {
  std::string train_list, test_list;  // file lists
  SampleShape shape;                  // one sparse input
  uint64_t train_positives = 0, test_positives = 0;
  // Of the true probabilities: what a perfect model has on these very test labels, and what it has
  // on average over labels.
  double best_auc = 0, best_logloss = 0;
  double expected_auc = 0;
};

// kInvalidArgument: options out of range. Errors of files pass through.
absl::StatusOr<SyntheticSummary> WriteSynthetic(const SyntheticOptions& options);

}  // namespace cistern
