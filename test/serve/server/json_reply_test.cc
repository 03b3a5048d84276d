#include "serve/server/json_reply.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

namespace cistern::serve {
namespace {

using Json = nlohmann::json;

InferReply ReplyWith(const std::vector<float>& probabilities, bool binary) {
  InferReply reply;
  reply.model = "a\"b";
  reply.id = "4\n2";
  reply.commit = 7;
  const int64_t commit = 7;
  reply.outputs = {TensorOf<float>("probability", "FP32",
                                   {static_cast<int64_t>(probabilities.size()), 1}, probabilities),
                   TensorOf<int64_t>("commit", "INT64", {1}, {&commit, 1})};
  reply.binary = {binary, false};
  return reply;
}

TEST(JsonReply, IsJson) {
  const JsonReply reply = EncodeJsonReply(ReplyWith({0.25, 0.5}, false));
  EXPECT_FALSE(reply.json_bytes.has_value());
  EXPECT_EQ(Json::parse(reply.body), Json::parse(R"({
      "model_name": "a\"b", "model_version": "7", "id": "4\n2", "outputs": [
        {"name": "probability", "datatype": "FP32", "shape": [2, 1], "data": [0.25, 0.5]},
        {"name": "commit", "datatype": "INT64", "shape": [1], "data": [7]}]})"));
}

TEST(JsonReply, AnEmptyTensorIsAnEmptyArray) {
  const Json json = Json::parse(EncodeJsonReply(ReplyWith({}, false)).body);
  EXPECT_EQ(json["outputs"][0]["shape"], Json::parse("[0, 1]"));
  EXPECT_EQ(json["outputs"][0]["data"], Json::array());
}

TEST(JsonReply, PutsBinaryTensorsAfterTheJson) {
  const JsonReply reply = EncodeJsonReply(ReplyWith({0.25, 0.5}, true));
  ASSERT_TRUE(reply.json_bytes.has_value());
  const Json json = Json::parse(reply.body.substr(0, *reply.json_bytes));
  EXPECT_EQ(json["outputs"][0]["parameters"]["binary_data_size"], 8);
  EXPECT_FALSE(json["outputs"][0].contains("data"));
  EXPECT_EQ(json["outputs"][1]["data"], Json::parse("[7]"));
  EXPECT_EQ(reply.body.substr(*reply.json_bytes), std::string("\0\0\x80\x3e\0\0\0\x3f", 8));
}

TEST(JsonReply, CarriesEveryFloatExactly) {
  std::mt19937 random(18);
  std::vector<float> values;
  while (values.size() < 10000) {
    const uint32_t bits = random();
    float value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    if (std::isfinite(value)) values.push_back(value);
  }
  const Json json = Json::parse(EncodeJsonReply(ReplyWith(values, false)).body);
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(json["outputs"][0]["data"][i].get<float>(), values[i]);
  }
}

TEST(JsonReply, ExplainsErrors) {
  EXPECT_EQ(ErrorJson("no 'x\xff\"'"), "{\"error\":\"no 'x\xEF\xBF\xBD\\\"'\"}");
}

}  // namespace
}  // namespace cistern::serve
