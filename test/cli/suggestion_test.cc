#include "cli/suggestion.h"

#include <gtest/gtest.h>

namespace cistern {
namespace {

const std::vector<std::string> kCommands = {"train", "eval", "predict", "status", "save", "load"};

TEST(NearestName, FindsAMisspeltName) {
  EXPECT_EQ(NearestName("trian", kCommands), "train");
  EXPECT_EQ(NearestName("predct", kCommands), "predict");
  EXPECT_EQ(NearestName("statuss", kCommands), "status");
  EXPECT_EQ(NearestName("sabe", kCommands), "save");
}

TEST(NearestName, IsEmptyWhereNothingIsNear) {
  EXPECT_EQ(NearestName("frobnicate", kCommands), "");
  EXPECT_EQ(NearestName("zzz", kCommands), "");
  EXPECT_EQ(NearestName("train", {}), "");
}

}  // namespace
}  // namespace cistern
