// OpenParquet of a build without Arrow.
#include "worker/data/parquet_reader.h"

namespace cistern {

absl::StatusOr<std::unique_ptr<SampleReader>> OpenParquet(const ParquetOptions& options) {
  return absl::UnimplementedError(absl::StrCat(
      options.source,
      ": this program was built without Parquet, because no Arrow library was found: run "
      "scripts/install_deps.sh, which gets one from pip, and build again; or write Norm or Raw "
      "files"));
}

std::string ParquetLibrary() {
  return "";
}

}  // namespace cistern
