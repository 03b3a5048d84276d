#include "worker/data/format/data_set.h"

#include "absl/strings/match.h"
#include "worker/data/format/keyset.h"
#include "worker/data/format/label_check.h"
#include "worker/data/format/parquet_reader.h"
#include "worker/data/format/raw_reader.h"

namespace cistern {

const char* FormatName(DataFormat format) {
  switch (format) {
    case DataFormat::kNorm:
      return "Norm";
    case DataFormat::kRaw:
      return "Raw";
    case DataFormat::kParquet:
      return "Parquet";
  }
  return "";
}

absl::StatusOr<DataFormat> FormatOfName(absl::string_view name) {
  for (const DataFormat format : {DataFormat::kNorm, DataFormat::kRaw, DataFormat::kParquet}) {
    if (absl::EqualsIgnoreCase(name, FormatName(format))) return format;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no data format '", name, "'; use Norm, Raw or Parquet"));
}

namespace {

absl::StatusOr<std::unique_ptr<SampleReader>> OpenFormat(const DataSetOptions& options) {
  switch (options.format) {
    case DataFormat::kNorm:
      return OpenNorm(
          {options.source, options.check, options.wide_keys, options.shape, options.slot_starts});
    case DataFormat::kRaw:
      return OpenRaw({options.source, options.shape, options.slot_sizes, options.float_label_dense,
                      options.num_samples});
    case DataFormat::kParquet:
      return OpenParquet({options.source, options.shape, options.slot_sizes});
  }
  return absl::InternalError("no such format");
}

}  // namespace

absl::StatusOr<std::unique_ptr<SampleReader>> OpenDataSet(const DataSetOptions& options) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<SampleReader> reader, OpenFormat(options));
  if (options.labels != LabelRule::kAny) reader = OpenWithLabels(std::move(reader), options);
  if (options.keysets.empty()) return reader;
  return OpenWithKeyset(std::move(reader), options);
}

}  // namespace cistern
