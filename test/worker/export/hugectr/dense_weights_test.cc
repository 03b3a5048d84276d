// HugeCTR's dense files: exact round trips of statistics as text, and refused files.
#include "worker/export/hugectr/dense_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "test/support/memory_file_system.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

model::LayerSummary LayerOf(const std::string& name, size_t parameters, size_t running = 0) {
  model::LayerSummary layer;
  layer.name = name;
  layer.type = running > 0 ? "BatchNorm" : "InnerProduct";
  layer.path = "layers[9]";
  layer.parameters = parameters;
  layer.running = running;
  return layer;
}

TEST(DenseWeights, StatisticsReadBackBitForBit) {
  std::mt19937 random(1);
  std::vector<model::LayerSummary> layers = {LayerOf("bn1", 200, 200), LayerOf("fc", 7),
                                             LayerOf("bn2", 1800, 1800)};
  std::vector<float> running;
  while (running.size() < 2000) {
    const uint32_t bits = random() & 0x7FFFFFFF;  // a variance is not negative
    float x;
    std::memcpy(&x, &bits, sizeof(x));
    if (std::isfinite(x)) running.push_back(x);
  }
  const auto read = ParseNtp(FormatNtp(layers, running), "x.json", layers);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, running);
}

TEST(DenseWeights, StatisticsHaveHugeCtrsJsonForm) {
  EXPECT_EQ(FormatNtp({LayerOf("bn", 4, 4)}, {0.5f, -1, 2, 0.25f}),
            "{\n  \"layers\": [\n    {\n      \"type\": \"BatchNorm\",\n"
            "      \"mean\": [0.5, -1],\n      \"var\": [2, 0.25]\n    }\n  ]\n}\n");
  // HugeCTR's own form, with six decimals.
  const auto read = ParseNtp(
      R"({"layers":[{"type":"BatchNorm","mean":[0.500000,-1.000000],"var":[2.000000,0.250000]}]})",
      "x.json", {LayerOf("bn", 4, 4)});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(*read, ElementsAre(0.5f, -1, 2, 0.25f));
  EXPECT_THAT(FirstRunning({LayerOf("bn", 4, 4)}), ElementsAre(0, 0, 1, 1));
}

// HugeCTR writes no statistics of PReLU_Dice: they start anew.
TEST(DenseWeights, StatisticsOfDiceReadBackAndMayBeAbsent) {
  std::vector<model::LayerSummary> layers = {LayerOf("dice1", 0, 2), LayerOf("bn", 2, 2),
                                             LayerOf("dice2", 0, 2)};
  layers[0].type = layers[2].type = "PReLU_Dice";
  const std::vector<float> running = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(ParseNtp(FormatNtp(layers, running), "x.json", layers).value(), running);
  EXPECT_THAT(
      ParseNtp(R"({"layers":[{"type":"BatchNorm","mean":[3],"var":[4]}]})", "x.json", layers)
          .value(),
      ElementsAre(0, 1, 3, 4, 0, 1));
  // The statistics of a Dice are not those of a BatchNorm.
  EXPECT_FALSE(ParseNtp(FormatNtp({layers[0]}, {1, 2}), "x.json", {layers[1]}).ok());
}

TEST(DenseWeights, StatisticsThatDoNotFitAreRefused) {
  const std::vector<model::LayerSummary> layers = {LayerOf("bn", 2, 2)};
  const struct {
    const char* text;
    absl::StatusCode code;
    const char* part;
  } cases[] = {
      {"{", absl::StatusCode::kDataLoss, "not a JSON object"},
      {R"({"layers":[]})", absl::StatusCode::kInvalidArgument, "layer 'bn' (layers[9])"},
      {R"({"layers":[{"type":"BatchNorm","mean":[1]}]})", absl::StatusCode::kDataLoss,
       "no array \"var\""},
      {R"({"layers":[{"type":"BatchNorm","mean":[1,2],"var":[1]}]})",
       absl::StatusCode::kInvalidArgument, "\"mean\" has 2 numbers"},
      {R"({"layers":[{"type":"BatchNorm","mean":["a"],"var":[1]}]})", absl::StatusCode::kDataLoss,
       "holds \"a\""},
      {R"({"layers":[{"type":"BatchNorm","mean":[1e39],"var":[1]}]})", absl::StatusCode::kDataLoss,
       "\"mean\" holds"},
      {R"({"layers":[{"type":"BatchNorm","mean":[-1],"var":[-1]}]})", absl::StatusCode::kDataLoss,
       "\"var\" holds -1"},
      {R"({"layers":[{"type":"BatchNorm","mean":[1],"var":[1]},
                     {"type":"BatchNorm","mean":[1],"var":[1]}]})",
       absl::StatusCode::kInvalidArgument, "holds 2 BatchNorm layers, the model has 1"},
  };
  for (const auto& one : cases) {
    const absl::Status status = ParseNtp(one.text, "x.json", layers).status();
    EXPECT_EQ(status.code(), one.code) << one.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(one.part));
    EXPECT_THAT(std::string(status.message()), HasSubstr("x.json"));
  }
}

TEST(DenseWeights, AWrongSizeNamesTheLayerWhereTheFileEnds) {
  MemoryFileSystem files;
  const std::vector<model::LayerSummary> layers = {LayerOf("fc1", 6), LayerOf("relu", 0),
                                                   LayerOf("fc2", 4)};
  std::vector<float> cells(20, 0.5f);
  ASSERT_TRUE(WriteFloats(files, "out/opt", cells).ok());
  EXPECT_EQ(ReadFloats(files, "out/opt", layers, 2).value(), cells);
  EXPECT_TRUE(absl::IsInvalidArgument(ReadFloats(files, "out/opt", layers, 0).status()));
  const absl::Status more = ReadFloats(files, "out/opt", layers, 1).status();
  EXPECT_EQ(more.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(more.message()), HasSubstr("80 bytes; the model's layers need 40"));
  EXPECT_THAT(std::string(more.message()), HasSubstr("after the last layer for 40 bytes"));
  cells.resize(7);
  cells[6] = NAN;
  ASSERT_TRUE(WriteFloats(files, "out/w", cells).ok());
  EXPECT_THAT(std::string(ReadFloats(files, "out/w", layers, 1).status().message()),
              HasSubstr("it ends at number 7, within layer 'fc2' (layers[9], InnerProduct), which "
                        "has weights 6 to 9"));
  cells.resize(10, 0);
  ASSERT_TRUE(WriteFloats(files, "out/w", cells).ok());
  const absl::Status bad = ReadFloats(files, "out/w", layers, 1).status();
  EXPECT_EQ(bad.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(bad.message()),
              HasSubstr("number 6 is not finite; it belongs to layer 'fc2'"));
}

}  // namespace
}  // namespace cistern
