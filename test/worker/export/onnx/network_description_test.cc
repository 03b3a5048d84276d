#include "worker/export/onnx/network_description.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <map>
#include <nlohmann/json.hpp>

#include "test/worker/export/onnx/network_nodes.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(NetworkDescription, SaysHowInputsAreMade) {
  const model::ModelConfig config = model::ParseOrDie(
      {"layers.deep.sparse_embedding_hparam.combiner=1", "solver.mixed_precision=128"});
  StoredModel model(config);
  const NetworkModel network = NetworkOf(config, model);
  const auto json =
      nlohmann::json::parse(DescribeNetwork(config, model, network, "a.onnx", "content"));
  EXPECT_EQ(json, nlohmann::json::parse(
                      absl::StrCat(R"({
    "format": 1, "onnx": "a.onnx", "bytes": 7,
    "xxh3": ")",
                                   absl::Hex(XXH3_64bits("content", 7), absl::kZeroPad16), R"(",
    "commit": 12, "manifest_xxh3": "0000000000000abc", "pass": 34,
    "source": "runs/a, commit 12", "model_file": "model.json", "trained_in": "float16",
    "dense": {"input": "dense", "columns": 3},
    "embeddings": [{"input": "emb", "table": "deep", "accessor": "embedding", "sparse": "data1",
                    "first_slot": 0, "slots": 2, "vec_size": 4, "combiner": "mean"}],
    "outputs": [{"output": "probability", "columns": 1}]})")));
}

TEST(NetworkDescription, TheModelHasTheSameProperties) {
  const model::ModelConfig config = model::ParseOrDie();
  StoredModel model(config);
  onnx::Model made;
  AddProperties(config, model, &made);
  std::vector<std::pair<std::string, std::string>> properties;
  for (const onnx::Property& one : made.metadata_props()) {
    properties.emplace_back(one.key(), one.value());
  }
  EXPECT_THAT(
      properties,
      ElementsAre(Pair("cistern.commit", "12"), Pair("cistern.manifest_xxh3", "0000000000000abc"),
                  Pair("cistern.pass", "34"), Pair("cistern.source", "runs/a, commit 12"),
                  Pair("cistern.model_file", "model.json"), Pair("cistern.trained_in", "float32")));
}

}  // namespace
}  // namespace cistern
