// Packs samples into tar shards (worker/data/format/tar_sample.h): rows of text and of Parquet
// tables keep their tokens, so that columns and key widths can be chosen anew at each training;
// samples of a data set keep their keys.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/data/format/data_set.h"
#include "worker/data/prepare/convert.h"
#include "worker/data/prepare/shard_set_writer.h"

namespace cistern::data {

// Each field corresponds to the flag of the same name, with dashes.
struct PackOptions {
  // Text or Parquet files, or folders of part files, read in order; "-" is standard input. Empty:
  // `data`.
  std::vector<std::string> input;
  TextFormat format = TextFormat::kCsv;
  char delimiter = 0;                // as in ConvertOptions
  std::vector<std::string> columns;  // as in ConvertOptions
  std::vector<std::string> multi;    // columns that hold several values; lists of Parquet do too
  char separator = '|';
  bool numbers = false;  // whole numbers become keys instead of tokens; libsvm: always

  // A data set to pack instead of text.
  std::optional<DataSetOptions> data;

  std::string out;
  bool overwrite = false;
  std::string name = "data";
  uint64_t samples_per_shard = 2000, bytes_per_shard = 0;
  std::vector<LengthGroup> groups;
  // Text: the column whose values are counted as a sample's length, required with groups. A data
  // set: the keys of all slots are counted.
  std::string length_column;
  bool skip_bad = false;  // leaves out rows that cannot be packed, and counts them by cause
  // The file system to write to; not owned. Null: the local disk.
  FileSystem* files = nullptr;
};

struct PackSummary {
  ShardManifest manifest;
  uint64_t resumed_shards = 0;  // complete shards of a stopped run that were kept
  std::string file_list;        // path
};

// Called every few thousand samples with their number. Returning false stops with kCancelled; the
// shards so far are kept, and the same call continues.
using PackProgress = std::function<bool(uint64_t samples)>;

// kInvalidArgument: options that contradict each other, or as ShardSetWriter::Create; kDataLoss:
// bad input, with file and line; errors of the reader.
absl::StatusOr<PackSummary> Pack(const PackOptions& options,
                                 const PackProgress& progress = nullptr);

}  // namespace cistern::data
