#include "cli/terminal/usual_flags.h"

#include <gtest/gtest.h>

namespace cistern::cli {
namespace {

TEST(OwnFlagFor, IsAFlagThatTheCommandHas) {
  const std::vector<std::string> train = {"--set", "--label", "--out", "--device"};
  EXPECT_EQ(OwnFlagFor("--epochs", train), "--set solver.num_epochs=N");
  EXPECT_EQ(OwnFlagFor("--lr", train), "--set optimizer.adam_hparam.learning_rate=X");
  EXPECT_EQ(OwnFlagFor("--target", train), "--label");
  EXPECT_EQ(OwnFlagFor("-o", train), "--out");
  EXPECT_EQ(OwnFlagFor("--gpu", train), "--device cuda");
  EXPECT_EQ(OwnFlagFor("--input", {"--data"}), "--data");
  EXPECT_EQ(OwnFlagFor("--test", {"--set", "--data"}), "--data");
  EXPECT_EQ(OwnFlagFor("--out", {"--output"}), "--output");
  EXPECT_EQ(OwnFlagFor("-", {"--input", "--data"}), "--input");
  EXPECT_EQ(OwnFlagFor("--epochs", {"--data"}), "");
  EXPECT_EQ(OwnFlagFor("--anything", train), "");
}

}  // namespace
}  // namespace cistern::cli
