#include "cli/command/table_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cistern::cli {
namespace {

using testing::HasSubstr;

absl::Status Worded(const std::vector<std::string>& options) {
  return WithTableFix(
      WithFix(WithOptions(absl::InvalidArgumentError("what is wrong"), options), "as a library"));
}

TEST(TableFlags, AnErrorSaysWhatToType) {
  EXPECT_EQ(FixOf(Worded({"label"})), "name it: --label COLUMN");
  EXPECT_EQ(Worded({"more", "valid"}).message(), "--valid what is wrong");
  EXPECT_TRUE(OptionsOf(Worded({"more", "valid"})).empty()) << "it is in the message";
  EXPECT_EQ(FixOf(Worded({"of another library"})), "as a library");
}

TEST(TableFlags, AFixHasTheNumberOfItsOption) {
  EXPECT_THAT(FixOf(Worded({"label_threshold=2.5", "positive"})),
              HasSubstr("--label-threshold 2.5, if labels above 2.5 are positive"));
  EXPECT_THAT(FixOf(Worded({"more", "negative_rate=0.25"})), HasSubstr("--negative-rate 0.25 "));
}

TEST(TableFlags, TextsBecomeOptions) {
  TableModelFlags flags;
  flags.separator = "^";
  flags.delimiter = "tab";
  flags.label_threshold = "3.5";
  const absl::StatusOr<app::TableOptions> options = TableOptionsOf(flags);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->wishes.separator, '^');
  EXPECT_EQ(options->delimiter, '\t');
  EXPECT_EQ(options->wishes.label_threshold, 3.5);
  flags.label_threshold = "much";
  EXPECT_THAT(std::string(TableOptionsOf(flags).status().message()), HasSubstr("'much'"));
  flags.label_threshold = "";
  flags.separator = "ab";
  EXPECT_THAT(std::string(TableOptionsOf(flags).status().message()), HasSubstr("--separator"));
}

TEST(TableFlags, AFlagOfTablesIsRefusedForOtherData) {
  EXPECT_EQ(CheckNoTableFlag("", "m.json", "a model file"), absl::OkStatus());
  const absl::Status refused = CheckNoTableFlag("label_threshold", "m.json", "a model file");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("m.json is a model file"));
  EXPECT_EQ(FixOf(refused), "leave out --label-threshold");
}

}  // namespace
}  // namespace cistern::cli
