#include "worker/data/format/format_list.h"

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "worker/data/format/norm_set_writer.h"
#include "worker/data/format/parquet_reader.h"
#include "worker/data/format/raw_reader.h"
#include "worker/data/format/sample_set_writer.h"
#include "worker/data/format/tar_reader.h"

namespace cistern::data {
namespace {

using ReaderOr = absl::StatusOr<std::unique_ptr<SampleReader>>;
using WriterOr = absl::StatusOr<std::unique_ptr<SampleSetWriter>>;
using Paths = std::vector<std::string>;

ReaderOr OpenNormFiles(const DataSetOptions& options, const Paths& paths) {
  return OpenNorm({options.source, options.check, options.wide_keys, options.shape,
                   options.slot_starts, options.counts, options.places},
                  paths);
}

ReaderOr OpenRawFiles(const DataSetOptions& options, const Paths& paths) {
  return OpenRaw({options.source, options.shape, options.slot_sizes, options.float_label_dense,
                  options.num_samples, options.counts},
                 paths);
}

WriterOr CreateRaw(FileSystem& files, const std::string& folder, const DataSetOptions& options,
                   uint64_t) {
  return CreateRawSetWriter(files, folder, options);
}

ReaderOr OpenParquetFiles(const DataSetOptions& options, const Paths& paths) {
  return OpenParquet({options.source, options.shape, options.slot_sizes, options.counts}, paths);
}

ReaderOr OpenTarFiles(const DataSetOptions& options, const Paths& paths) {
  return OpenTar({options.shape, options.columns, options.wide_keys, options.slot_starts,
                  options.counts, options.places},
                 paths);
}

WriterOr RefuseTar(FileSystem&, const std::string&, const DataSetOptions&, uint64_t) {
  return absl::UnimplementedError(
      "tar shards are written by cistern data pack: write Norm, and pack it");
}

// The list: one line per format.
constexpr DataFormatEntry kFormats[] = {
    {DataFormat::kNorm, "Norm", /*key_lists=*/true, OpenNormFiles, CreateNormSetWriter},
    {DataFormat::kRaw, "Raw", /*key_lists=*/false, OpenRawFiles, CreateRaw},
    {DataFormat::kParquet, "Parquet", /*key_lists=*/false, OpenParquetFiles,
     CreateParquetSetWriter},
    {DataFormat::kTar, "Tar", /*key_lists=*/true, OpenTarFiles, RefuseTar}};

const DataFormatEntry& EntryOf(DataFormat format) {
  for (const DataFormatEntry& entry : kFormats) {
    if (entry.format == format) return entry;
  }
  CISTERN_CHECK(false);
  return kFormats[0];
}

}  // namespace

absl::Span<const DataFormatEntry> DataFormats() {
  return kFormats;
}

const DataFormatEntry& EntryOf(const DataSetOptions& options) {
  return options.own != nullptr ? *options.own : EntryOf(options.format);
}

const char* FormatName(DataFormat format) {
  return EntryOf(format).name;
}

bool HoldsKeyLists(DataFormat format) {
  return EntryOf(format).key_lists;
}

absl::StatusOr<DataFormat> FormatOfName(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const DataFormatEntry& entry : kFormats) {
    if (absl::EqualsIgnoreCase(name, entry.name)) return entry.format;
    names.push_back(entry.name);
  }
  const absl::string_view last = names.back();
  names.pop_back();
  return absl::InvalidArgumentError(absl::StrCat("there is no data format '", name, "'; use ",
                                                 absl::StrJoin(names, ", "), " or ", last));
}

}  // namespace cistern::data
