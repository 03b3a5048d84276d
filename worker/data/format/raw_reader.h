// HugeCTR's Raw format, byte by byte. All numbers are little-endian.
//
//   file    = samples, back to back: no header, nothing between them
//   sample  = int32 label[label_dim], int32 dense[dense_dim], uint32 key[slots of all inputs]
//
// A label is its number as a float, and a dense feature x is log(x + 1). With float_label_dense
// both are floats and stay as they are. Every slot holds one key.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/format/sample_reader.h"

namespace cistern {

struct RawOptions {
  std::string source;  // one file, a file list, or several of either with commas
  SampleShape shape;
  std::vector<uint64_t> slot_sizes;  // slot_size_array; empty: keys stay as they are, unchecked
  bool float_label_dense = false;
  uint64_t num_samples = 0;  // reads the first ones only; 0: all
};

// Bytes of one sample.
size_t RawSampleBytes(const SampleShape& shape);

// Opens Raw files; they are mapped, so the samples are where the system's page cache has them.
// kInvalidArgument: fewer samples than num_samples, or slot sizes that do not fit the shape;
// kNotFound: no such file; kDataLoss: a size that is not a whole number of samples.
//
// Read refuses (file, record from 0, place): a key outside its slot's size or the reserved key
// (kOutOfRange), a label or dense feature that is not a finite number, a whole dense feature below
// 0, whose logarithm is none (kDataLoss).
absl::StatusOr<std::unique_ptr<SampleReader>> OpenRaw(const RawOptions& options);

}  // namespace cistern
