#include "worker/model/config/several_losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cistern::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// click has one column, and kinds two.
constexpr char kFile[] = R"({"layers": [
  {"name": "data", "type": "Data",
   "label": {"top": ["click", "kinds"], "label_dim": [1, 2]}},
  {"name": "fc1", "type": "InnerProduct", "bottom": "x", "top": "fc1"},
  {"name": "loss2", "type": "BinaryCrossEntropyLoss", "bottom": ["fc2", "kinds"], "top": "loss2",
   "loss_weight": 0.25, "regularizer": "L2", "lambda": 0.1},
  {"name": "loss1", "type": "BinaryCrossEntropyLoss", "bottom": ["fc1", "click"], "top": "loss1"}
]})";

absl::Status Join(const std::string& text, Json* file, std::vector<std::string>* names) {
  *file = Json::parse(text);
  return JoinLosses(file, names);
}

std::string Changed(const std::string& from, const std::string& to) {
  std::string text = kFile;
  const size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return text.replace(place, from.size(), to);
}

TEST(SeveralLosses, BecomeOneInTheOrderOfTheLabels) {
  Json file;
  std::vector<std::string> names;
  ASSERT_TRUE(Join(kFile, &file, &names).ok());
  EXPECT_THAT(names, ElementsAre("click", "kinds[0]", "kinds[1]"));
  EXPECT_EQ(file["layers"].size(), 4u);
  EXPECT_EQ(file["layers"][0]["label"], Json({{"top", "click+kinds"}, {"label_dim", 3}}));
  EXPECT_EQ(file["layers"][2]["type"], "Concat");
  EXPECT_EQ(file["layers"][2]["bottom"], Json({"fc1", "fc2"}));
  const Json& loss = file["layers"][3];
  EXPECT_EQ(loss["type"], "MultiCrossEntropyLoss");
  EXPECT_EQ(loss["bottom"], Json({"all_logits", "click+kinds"}));
  EXPECT_EQ(loss["lambda"], 0.1);
  // 1 * mean over b + 0.25 * mean over 2 b = sum over 3 b of weights 3, 0.375, 0.375, over 3 b.
  EXPECT_EQ(loss["target_weight"], Json({3.0, 0.375, 0.375}));
}

TEST(SeveralLosses, LeaveOtherFilesAsTheyAre) {
  for (const char* const text :
       {R"({})", R"({"layers": []})", R"({"layers": [7]})", R"({"layers": [{"label": 3}]})",
        R"({"layers": [{"label": {"top": "y"}}, {"type": "CrossEntropyLoss"}]})"}) {
    Json file;
    std::vector<std::string> names = {"x"};
    ASSERT_TRUE(Join(text, &file, &names).ok()) << text;
    EXPECT_EQ(file, Json::parse(text));
    EXPECT_TRUE(names.empty());
  }
}

TEST(SeveralLosses, SayWhatIsWrong) {
  const std::pair<std::string, std::string> cases[] = {
      {Changed(R"(["click", "kinds"])", R"(["click", "click"])"), "names 'click' twice"},
      {Changed(R"(["click", "kinds"])", R"(["click", 3])"), "layers[0].label.top: must be names"},
      {Changed(R"(["click", "kinds"])", "[]"), "names no label"},
      {Changed("[1, 2]", "3"), "must be 2 numbers, one for each label"},
      {Changed("[1, 2]", "[1, 0]"), "layers[0].label.label_dim[1]: must be an integer from 1"},
      {Changed("[1, 2]", "[1, 1e300]"), "must be an integer from 1"},
      {Changed(R"("fc1", "click")", R"("fc1", "kinds")"), "label 'kinds' has a loss already"},
      {Changed(R"("fc1", "click")", R"("fc1", "other")"), "'other' is no label of layers[0]"},
      {Changed(R"(["fc1", "click"])", "7"), "layers[3].bottom: must be [logit, label]"},
      {Changed(R"("type": "BinaryCrossEntropyLoss", "bottom": ["fc1")",
               R"("type": "CrossEntropyLoss", "bottom": ["fc1")"),
       "has a BinaryCrossEntropyLoss of its own"},
      {Changed(R"("type": "BinaryCrossEntropyLoss", "bottom": ["fc1")",
               R"("type": "ReLU", "bottom": ["fc1")"),
       "label 'click' has no BinaryCrossEntropyLoss"},
      {Changed("0.25", "-1"), "layers[2].loss_weight: must be a number from 0"},
      {Changed("0.25", "\"much\""), "must be a number"},
      {Changed(R"("top": "loss1")", R"("top": "loss1", "lambda": 0.2)"), "have one regularizer"}};
  for (const auto& [text, message] : cases) {
    Json file;
    std::vector<std::string> names;
    EXPECT_THAT(std::string(Join(text, &file, &names).message()), HasSubstr(message)) << text;
  }
}

}  // namespace
}  // namespace cistern::model
