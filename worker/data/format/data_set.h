// A data set of any format.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/format/sample_reader.h"

namespace cistern {

enum class DataFormat { kNorm, kRaw, kParquet };

// As in a model's Data layer.
const char* FormatName(DataFormat format);
// The format of that name, in whichever case; kNorm for any other word.
DataFormat FormatOfName(absl::string_view name);

// What a label may be.
enum class LabelRule {
  kAny,                // a finite number
  kProbability,        // in [0, 1]
  kProbabilityOrNone,  // or below -0.5: there is none
};

// What a model says about its data. Fields that a format does not know are not looked at.
struct DataSetOptions {
  DataFormat format = DataFormat::kNorm;
  std::string source;  // a file list or a data file, or several of either with commas
  SampleShape shape;
  NormCheck check = NormCheck::kNone;         // Norm
  bool wide_keys = false;                     // Norm
  std::vector<std::vector<Key>> slot_starts;  // Norm: as in NormOptions
  bool float_label_dense = false;             // Raw
  uint64_t num_samples = 0;                   // Raw; 0: all
  std::vector<uint64_t> slot_sizes;           // Raw, Parquet
  // Keyset files (keyset.h) that must hold every key between them; none: nobody looks.
  std::vector<std::string> keysets;
  LabelRule labels = LabelRule::kAny;
};

// Errors are those of OpenNorm, OpenRaw and OpenParquet, of OpenWithKeyset and OpenWithLabels.
absl::StatusOr<std::unique_ptr<SampleReader>> OpenDataSet(const DataSetOptions& options);

}  // namespace cistern
