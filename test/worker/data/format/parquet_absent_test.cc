// A build without Arrow reports that.
#include <gtest/gtest.h>

#include "worker/data/format/parquet_reader.h"

namespace cistern::data {
namespace {

TEST(Parquet, ErrorOfABuildWithoutParquetNamesTheInstallScript) {
  ParquetOptions options;
  options.source = "a.parquet";
  const absl::Status status = OpenParquet(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(status.message().find("a.parquet"), absl::string_view::npos);
  EXPECT_NE(status.message().find("scripts/install_deps.sh"), absl::string_view::npos);
}

}  // namespace
}  // namespace cistern::data
