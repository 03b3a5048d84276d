#include <gmock/gmock.h>

#include "cli/command/dry_run.h"
#include "test/worker/model/config/config_parsing.h"

namespace cistern::cli {
namespace {

TEST(DryRun, ShowsTheGraphAsATable) {
  const absl::StatusOr<Report> report = DryRun(model::ParseOrDie());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->text, testing::HasSubstr("fc1       InnerProduct            concat1"));
}

}  // namespace
}  // namespace cistern::cli
