// Stubs for a build without Arrow.
#include "absl/strings/str_cat.h"
#include "worker/data/recipe/arrow_stream.h"
#include "worker/data/recipe/parquet_table.h"

namespace cistern::data {
namespace {

absl::Status Absent(const std::string& path) {
  return absl::UnimplementedError(absl::StrCat(
      path,
      ": this program was built without Parquet, because no Arrow library was found: run "
      "scripts/install_deps.sh, which installs one from pip, and rebuild; or use CSV"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TextTable>> OpenParquetTable(const std::string& path,
                                                            const ListSeparators&) {
  return Absent(path);
}

absl::StatusOr<std::unique_ptr<TextTable>> OpenArrowStream(absl::string_view,
                                                           const std::vector<std::string>&,
                                                           const ListSeparators&) {
  return absl::InvalidArgumentError(
      "is an Arrow stream, but this program was built without Arrow, because no Arrow library was "
      "found: run scripts/install_deps.sh, which installs one from pip, and rebuild; or send CSV "
      "or "
      "JSON");
}

absl::StatusOr<std::unique_ptr<ParquetPredictions>> CreateParquetPredictions(
    FileSystem&, const std::string& path, const std::vector<std::string>&,
    const std::vector<std::string>&) {
  return Absent(path);
}

}  // namespace cistern::data
