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
  std::string source;  // a file list, a data file, or several of either, comma-separated
  SampleShape shape;
  NormCheck check = NormCheck::kNone;         // Norm
  bool wide_keys = false;                     // Norm
  std::vector<std::vector<Key>> slot_starts;  // Norm: as in NormOptions
  bool float_label_dense = false;             // Raw
  uint64_t num_samples = 0;                   // Raw; 0: all
  std::vector<uint64_t> slot_sizes;           // Raw, Parquet
  // Keyset files (keyset.h) that must hold every key between them; empty: no check.
  std::vector<std::string> keysets;
  LabelRule labels = LabelRule::kAny;
};

// Errors: as OpenNorm, OpenRaw, OpenParquet, OpenWithKeyset and OpenWithLabels.
absl::StatusOr<std::unique_ptr<SampleReader>> OpenDataSet(const DataSetOptions& options);

}  // namespace cistern
