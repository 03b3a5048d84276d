// A data set of any format.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/format/bad_data.h"
#include "worker/data/format/sample_reader.h"
#include "worker/data/format/tar_sample.h"

namespace cistern::data {

// The formats are listed in format_list.cc.
enum class DataFormat { kNorm, kRaw, kParquet, kTar };
struct DataFormatEntry;  // format_list.h

// As in a model's Data layer.
const char* FormatName(DataFormat format);
// Whether a slot holds any number of keys in this format; in the others it holds exactly one.
bool HoldsKeyLists(DataFormat format);
// The format with this name, ignoring case. kInvalidArgument lists the formats.
absl::StatusOr<DataFormat> FormatOfName(absl::string_view name);

// The values that a label may have.
enum class LabelRule {
  kAny,                // a finite number
  kProbability,        // in [0, 1]
  kProbabilityOrNone,  // in [0, 1], or below -0.5 for a missing label
};

// The data options of a model. Fields that do not apply to the format are ignored.
struct DataSetOptions {
  DataFormat format = DataFormat::kNorm;
  std::string source;  // as ReadFileList (file_list.h)
  SampleShape shape;
  NormCheck check = NormCheck::kNone;         // Norm
  bool wide_keys = false;                     // Norm, Tar
  std::vector<std::vector<Key>> slot_starts;  // Norm, Tar: as in NormOptions
  TarColumns columns;                         // Tar
  bool float_label_dense = false;             // Raw
  uint64_t num_samples = 0;                   // Raw; 0: all
  std::vector<uint64_t> slot_sizes;           // Raw, Parquet
  // Keyset files (keyset.h) that must hold every key between them; empty: no check.
  std::vector<std::string> keysets;
  LabelRule labels = LabelRule::kAny;
  bool shuffle_files = false;  // the order of the files is a function of shuffle_seed and the epoch
  uint64_t shuffle_seed = 0;
  // Null: a bad file is an error. Else it is left out and counted here (skipping_reader.h); must
  // outlive the readers.
  BadData* bad_data = nullptr;
  ReadCounts* counts = nullptr;          // of all readers; must outlive them; null: not counted
  RecordPlaces* places = nullptr;        // Norm, Tar: as in NormOptions
  const DataFormatEntry* own = nullptr;  // replaces `format`: an entry that no list has
};

// Opens one pass over the data set: `epoch` is the number of passes before it.
//
// Errors: as OpenNorm, OpenRaw, OpenParquet, OpenTar, OpenWithKeyset and OpenWithLabels.
absl::StatusOr<std::unique_ptr<SampleReader>> OpenDataSet(const DataSetOptions& options,
                                                          uint32_t epoch = 0);

// The files of the data set in the order of an epoch.
absl::StatusOr<std::vector<std::string>> FilesOf(const DataSetOptions& options, uint32_t epoch = 0);
// Opens these files of the data set, in this order. may_be_empty: leaving out all of
// them is not an error, because they are only part of the data set.
absl::StatusOr<std::unique_ptr<SampleReader>> OpenFilesOf(const DataSetOptions& options,
                                                          const std::vector<std::string>& paths,
                                                          bool may_be_empty = false);

}  // namespace cistern::data
