// Generates random data of a given shape, to try a model file, to benchmark or to test.
//
// Every number is a pure function of (seed, sample, place). The same options therefore write the
// same bytes, and all formats get the same samples.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/data/format/data_set.h"

namespace cistern::data {

enum class KeyDistribution {
  kUniform,
  // Bounded Pareto, as in HugeCTR since version 3.1: y = ((n^(1-a) - 1) u + 1)^(1/(1-a)) for a slot
  // with n keys, and the key is round(y) - 1. Key 0 is the most frequent.
  kPowerLaw,
};

struct GenerateOptions {
  std::string out;         // output folder: <out>/train and <out>/test
  bool overwrite = false;  // replaces an existing data set
  // Uses format, shape, check, wide_keys, float_label_dense and slot_sizes (keys of each slot,
  // required). In Norm files, keys include an offset: the sum of the sizes of the slots before, as
  // readers of the other formats add it, or slot_starts if the input has them.
  DataSetOptions data;
  uint64_t train_samples = 100000, test_samples = 20000;
  KeyDistribution keys = KeyDistribution::kPowerLaw;
  double alpha = 1.2;    // of kPowerLaw, above 0
  uint32_t max_nnz = 1;  // Norm: a slot has 1 to max_nnz keys
  // A label is 1 with probability 1 / (1 + exp(-z)), where z = log(p / (1 - p)) + signal * the sum
  // over the slots of a normally distributed weight of each key, scaled to a standard deviation of
  // 1. With signal 0, there is nothing to learn.
  double click_rate = 0.25;  // p
  double signal = 2;
  uint64_t seed = 1;
  uint64_t samples_per_file = 100000;  // Norm, Parquet
  // The file system to write to; not owned. Null: the local disk.
  FileSystem* files = nullptr;
};

struct GenerateSummary {
  std::string train_source, test_source;             // for a model's Data layer
  uint64_t train_positives = 0, test_positives = 0;  // of the first label
};

// Writes the data set. Dense features are uniform in [0, 1), or integers in [0, 100) for Raw files
// of integers. progress: called every thousand samples with the number done; returning false stops
// with kCancelled and leaves no output. kInvalidArgument: an option is out of range, or the output
// folder exists.
absl::StatusOr<GenerateSummary> Generate(const GenerateOptions& options,
                                         const std::function<bool(uint64_t)>& progress = nullptr);

}  // namespace cistern::data
