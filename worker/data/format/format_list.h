// The data formats: one entry each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/data/format/data_set.h"

namespace cistern::data {

class SampleSetWriter;  // sample_set_writer.h

// All that readers and writers of data sets know of a format.
struct DataFormatEntry {
  DataFormat format;
  const char* name;  // in a model's Data layer
  bool key_lists;    // a slot holds any number of keys; false: exactly one
  // Opens these files, in this order; ignores options.source.
  absl::StatusOr<std::unique_ptr<SampleReader>> (*open)(const DataSetOptions& options,
                                                        const std::vector<std::string>& paths);
  // As CreateSampleSetWriter (sample_set_writer.h).
  absl::StatusOr<std::unique_ptr<SampleSetWriter>> (*create)(FileSystem& files,
                                                             const std::string& folder,
                                                             const DataSetOptions& options,
                                                             uint64_t samples_per_file);
};

// All formats of the library.
absl::Span<const DataFormatEntry> DataFormats();

// options.own, or the entry of options.format.
const DataFormatEntry& EntryOf(const DataSetOptions& options);

}  // namespace cistern::data
