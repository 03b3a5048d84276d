// Stubs of the Parquet functions for a build without Arrow.
#include "worker/data/format/parquet_reader.h"
#include "worker/data/format/sample_set_writer.h"

namespace cistern::data {
namespace {

absl::Status Absent(const std::string& what) {
  return absl::UnimplementedError(absl::StrCat(
      what,
      ": this program was built without Parquet, because no Arrow library was found: run "
      "scripts/install_deps.sh, which installs one from pip, and rebuild; or use Norm or Raw "
      "files"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SampleReader>> OpenParquet(const ParquetOptions& options) {
  return Absent(options.source);
}

absl::StatusOr<std::unique_ptr<SampleReader>> OpenParquet(const ParquetOptions& options,
                                                          const std::vector<std::string>&) {
  return Absent(options.source);
}

absl::StatusOr<std::unique_ptr<SampleSetWriter>> CreateParquetSetWriter(FileSystem&,
                                                                        const std::string& folder,
                                                                        const DataSetOptions&,
                                                                        uint64_t) {
  return Absent(folder);
}

std::string ParquetLibrary() {
  return "";
}

}  // namespace cistern::data
