#include "serve/predictor/predict_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/predictor/open_predictor.h"
#include "test/serve/predictor/serving_example.h"

namespace cistern::serve {
namespace {

TEST(PredictData, AMissingFileIsAWrongArgument) {
  const ServingExample example("predict_data_test");
  const auto predictor = OpenPredictor(example.root(), {.threads = 1, .poll_ms = 0}).value();
  const model::ModelConfig config = ReadServedConfig(example.root()).value();
  EXPECT_EQ(config.embeddings[0].name, "deep");
  const auto predicted = PredictData(
      *predictor, config, {"nowhere.norm"}, 10,
      [](absl::Span<const float>, absl::Span<const float>) { return absl::OkStatus(); });
  EXPECT_TRUE(absl::IsInvalidArgument(predicted.status())) << predicted.status();
  EXPECT_THAT(std::string(predicted.status().message()), testing::HasSubstr("nowhere.norm"));
}

TEST(PredictData, AFolderWithoutVersionsIsNotServed) {
  EXPECT_TRUE(absl::IsNotFound(ReadServedConfig(testing::TempDir()).status()));
  EXPECT_TRUE(absl::IsNotFound(OpenPredictor(testing::TempDir()).status()));
}

}  // namespace
}  // namespace cistern::serve
