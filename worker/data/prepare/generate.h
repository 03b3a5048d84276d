// Data of a given shape from a random generator: to try a model file, to measure, to test.
//
// Every number is a pure function of (seed, sample, place), so that the same options write the same
// bytes, and that the samples of two formats are the same ones.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/data/format/data_set.h"

namespace cistern {

enum class KeyDistribution {
  kUniform,
  // Bounded Pareto, HugeCTR's from 3.1 on: y = ((n^(1-a) - 1) u + 1)^(1/(1-a)) for a slot of n
  // keys, key round(y) - 1. So key 0 is the most frequent.
  kPowerLaw,
};

struct GenerateOptions {
  std::string out;         // folder to make: <out>/train and <out>/test
  bool overwrite = false;  // replaces a data set made before
  // Format, shape, check, wide_keys, float_label_dense; slot_sizes: keys of each slot, required.
  // In Norm files the sizes of the slots before are added to a key, as reading does with the
  // others; or what slot_starts has for the slot, where its input has any.
  DataSetOptions data;
  uint64_t train_samples = 100000, test_samples = 20000;
  KeyDistribution keys = KeyDistribution::kPowerLaw;
  double alpha = 1.2;    // of kPowerLaw, above 0
  uint32_t max_nnz = 1;  // Norm: a slot holds 1 to this many keys
  // A label is 1 with probability 1 / (1 + exp(-z)), z = log(p / (1 - p)) + signal * the mean over
  // slots of a normal number for each key, scaled to deviation 1. signal 0: no model could learn
  // it.
  double click_rate = 0.25;  // p
  double signal = 2;
  uint64_t seed = 1;
  uint64_t samples_per_file = 100000;  // Norm, Parquet
  // The disk that is written to; not owned. Null: the machine's own.
  FileSystem* files = nullptr;
};

struct GenerateSummary {
  std::string train_source, test_source;             // for a model's Data layer
  uint64_t train_positives = 0, test_positives = 0;  // of the first label
};

// Dense features are uniform in [0, 1), or whole in [0, 100) for Raw files of whole numbers.
// progress: called every thousand samples with how many are done; false stops: kCancelled, nothing
// is left. kInvalidArgument: options out of range, or an output folder in the way.
absl::StatusOr<GenerateSummary> Generate(const GenerateOptions& options,
                                         const std::function<bool(uint64_t)>& progress = nullptr);

}  // namespace cistern
