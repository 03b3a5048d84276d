// HugeCTR's keyset files: the distinct keys of a data set, for those who say before a pass which
// rows it needs (reference: the embedding training cache). Cistern finds the keys while it reads
// and needs no such file; it writes them for others, and checks theirs, by itself or while it
// trains.
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

namespace cistern {

struct KeysetOptions {
  DataSetOptions data;
  // The sparse input whose keys count, or -1: all of them, as one set.
  int input = -1;
  bool wide_keys = true;  // 8 bytes a key, else 4
};

struct KeysetSummary {
  uint64_t samples = 0;     // of the data
  uint64_t keys = 0;        // distinct, of the data
  uint64_t in_file = 0;     // keys that the file holds
  uint64_t unused = 0;      // distinct keys of the file that the data do not have
  uint64_t duplicates = 0;  // keys of the file that came before in it
};

// The width of keys in a keyset is that of the data's own.
inline bool HasWideKeys(const DataSetOptions& data) {
  return data.format == DataFormat::kParquet || data.wide_keys;
}

// `reader`, which is of `data`, but refusing a key that none of data.keysets holds: kOutOfRange
// with file, record, slot and key. The keysets are read now and take about 9 bytes a key. Errors
// are those of CheckKeyset; kNotFound: no such file.
absl::StatusOr<std::unique_ptr<SampleReader>> OpenWithKeyset(std::unique_ptr<SampleReader> reader,
                                                             const DataSetOptions& data);

// Writes the keys of the data at `path`, ascending; complete or not at all. Keys are those that a
// model sees: with the slots' offsets. kOutOfRange: a key that does not fit 4 bytes. Errors of the
// reader pass through.
absl::StatusOr<KeysetSummary> WriteKeyset(FileSystem& files, const KeysetOptions& options,
                                          const std::string& path);

// Checks that the file at `path` holds every key of the data. kOutOfRange names the first key that
// it misses, with its sample and slot; kDataLoss: a file that is not a whole number of keys, or
// that holds the reserved key or a negative one.
absl::StatusOr<KeysetSummary> CheckKeyset(const KeysetOptions& options, const std::string& path);

}  // namespace cistern
