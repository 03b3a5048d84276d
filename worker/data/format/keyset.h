// HugeCTR's keyset files: the distinct keys of a data set. HugeCTR's embedding training cache needs
// them to know the rows of a pass in advance. Cistern collects the keys while it reads and needs no
// such file. It writes keysets for other programs, and checks theirs on request or during training.
//
//   file = keys, back to back: uint32, or int64 where input_key_type is I64. No header, any order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/data/format/data_set.h"

namespace cistern::data {

struct KeysetOptions {
  DataSetOptions data;
  // The sparse input whose keys are collected; -1: all inputs, as one set.
  int input = -1;
  bool wide_keys = true;  // 8 bytes per key; false: 4
};

struct KeysetSummary {
  uint64_t samples = 0;     // in the data
  uint64_t keys = 0;        // distinct keys in the data
  uint64_t in_file = 0;     // keys in the file
  uint64_t unused = 0;      // distinct keys in the file that are not in the data
  uint64_t duplicates = 0;  // repeated keys in the file
};

// A keyset has the key width of its data.
inline bool HasWideKeys(const DataSetOptions& data) {
  return data.format == DataFormat::kParquet || data.wide_keys;
}

// Wraps `reader` of `data` and refuses keys that no file of data.keysets holds: kOutOfRange names
// file, record, slot and key. Loads the keysets at once, about 9 bytes per key. Errors: as
// CheckKeyset; kNotFound: no such file.
absl::StatusOr<std::unique_ptr<SampleReader>> OpenWithKeyset(std::unique_ptr<SampleReader> reader,
                                                             const DataSetOptions& data);

// Writes the keys of the data to `path`, ascending, atomically. Keys include the offsets of their
// slots, as the model sees them. kOutOfRange: a key that does not fit 4 bytes. Passes errors of the
// reader through.
absl::StatusOr<KeysetSummary> WriteKeyset(FileSystem& files, const KeysetOptions& options,
                                          const std::string& path);

// Checks that the file at `path` holds every key of the data. kOutOfRange names the first missing
// key, its sample and slot; kDataLoss: the file size is not a multiple of the key size, or the file
// holds the reserved key or a negative key.
absl::StatusOr<KeysetSummary> CheckKeyset(const KeysetOptions& options, const std::string& path);

}  // namespace cistern::data
