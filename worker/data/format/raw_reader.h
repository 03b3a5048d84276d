// HugeCTR's Raw format, byte by byte. All numbers are little-endian.
//
//   file    = samples, back to back: no header, nothing between them
//   sample  = int32 label[label_dim], int32 dense[dense_dim], uint32 key[slots of all inputs],
//             float weight[slots whose keys have weights] (ShapeInFiles, key_weights.h)
//
// The reader converts labels to floats and a dense feature x to log(x + 1). With float_label_dense,
// both are stored as floats and are not transformed. Every slot holds one key.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/format/sample_reader.h"

namespace cistern::data {

struct RawOptions {
  std::string source;  // a file list, a data file, or several of either, comma-separated
  SampleShape shape;
  std::vector<uint64_t> slot_sizes;  // slot_size_array; empty: keys are neither offset nor checked
  bool float_label_dense = false;
  uint64_t num_samples = 0;      // reads only the first ones; 0: all
  ReadCounts* counts = nullptr;  // as in NormOptions
  // Threads that decode a large read; 0: up to 4, a quarter of the cores. The result does not
  // depend on their number.
  int threads = 0;
};

// Bytes of one sample.
size_t RawSampleBytes(const SampleShape& shape);

// Opens Raw files. They are memory-mapped, so Read takes samples from the system's page cache.
// kInvalidArgument: fewer samples than num_samples, or slot sizes that do not match the shape;
// kNotFound: no such file; kDataLoss: the file size is not a multiple of the sample size.
//
// Errors of Read (name file, record from 0, slot or column): kOutOfRange: a key outside its slot's
// size, or the reserved key; kDataLoss: a label or dense feature that is not a finite number, or an
// integer dense feature below 0, for which log(x + 1) is not finite.
absl::StatusOr<std::unique_ptr<SampleReader>> OpenRaw(const RawOptions& options);
// The same for these data files, in this order; options.source is used in messages only.
absl::StatusOr<std::unique_ptr<SampleReader>> OpenRaw(const RawOptions& options,
                                                      const std::vector<std::string>& paths);

}  // namespace cistern::data
