#include "serve/server/json_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "serve/server/samples.h"
#include "test/serve/server/fake_predictor.h"

namespace cistern::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The request of tensors.h, nested and flat.
constexpr char kTwoSamples[] = R"({
  "id": "42", "parameters": {"timeout": 5000, "custom": {"x": [1, {"y": null}]}},
  "inputs": [
    {"name": "dense", "shape": [2, 2], "datatype": "FP32", "data": [[0.5, 1], [2, 3e0]]},
    {"data": [1, 2, 3, 4], "name": "wide.keys", "shape": [4], "datatype": "INT64"},
    {"name": "wide.offsets", "shape": [5], "datatype": "INT32", "data": [0, 1, 3, 3, 4]},
    {"name": "deep.keys", "shape": [3], "datatype": "UINT64", "data": [5, 6, 7]},
    {"name": "deep.offsets", "shape": [3], "datatype": "INT32", "data": [0, 1, 3]}],
  "outputs": [{"name": "probability", "parameters": {"binary_data": false}}, {"name": "commit"}]
})";

absl::StatusOr<InferRequest> Decode(absl::string_view body) {
  return DecodeJsonRequest(body, std::nullopt);
}

std::string Error(absl::string_view body) {
  const absl::StatusOr<InferRequest> request = Decode(body);
  EXPECT_TRUE(absl::IsInvalidArgument(request.status())) << body << request.status();
  return std::string(request.status().message());
}

// The error of a request with this input.
std::string InputError(const std::string& input) {
  return Error(absl::StrCat(R"({"inputs":[{)", input, "}]}"));
}

std::string DataError(const std::string& type, const std::string& shape, const std::string& data) {
  return InputError(absl::StrCat(R"("name":"x","datatype":")", type, R"(","shape":)", shape,
                                 R"(,"data":)", data));
}

template <class T>
std::vector<T> Values(const InferTensor& tensor) {
  std::vector<T> values(tensor.bytes().size() / sizeof(T));
  std::memcpy(values.data(), tensor.bytes().data(), tensor.bytes().size());
  return values;
}

TEST(JsonRequest, IsRead) {
  const absl::StatusOr<InferRequest> request = Decode(kTwoSamples);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->id, "42");
  EXPECT_EQ(request->timeout_us, 5000u);
  EXPECT_FALSE(request->binary_outputs);
  ASSERT_EQ(request->inputs.size(), 5u);
  EXPECT_THAT(Values<float>(request->inputs[0]), ElementsAre(0.5f, 1, 2, 3));
  EXPECT_THAT(request->inputs[0].shape, ElementsAre(2, 2));
  EXPECT_THAT(Values<int64_t>(request->inputs[1]), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Values<int32_t>(request->inputs[2]), ElementsAre(0, 1, 3, 3, 4));
  ASSERT_EQ(request->outputs.size(), 2u);
  EXPECT_EQ(request->outputs[0].binary, false);
  EXPECT_EQ(request->outputs[1].binary, std::nullopt);
  EXPECT_TRUE(Samples::Decode(FakePredictor().shape(), 100, request->inputs).ok());
}

TEST(JsonRequest, KeepsEveryBitOfANumber) {
  const absl::StatusOr<InferRequest> request = Decode(R"({"inputs":[
      {"name":"a","datatype":"UINT64","shape":[1],"data":[18446744073709551615]},
      {"name":"b","datatype":"INT64","shape":[2],"data":[-9223372036854775808,9223372036854775807]},
      {"name":"c","datatype":"FP32","shape":[3],"data":[0.1,16777217,-3]},
      {"name":"d","datatype":"INT32","shape":[1],"data":[-2147483648]}]})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(Values<uint64_t>(request->inputs[0]), ElementsAre(~uint64_t{0}));
  EXPECT_THAT(Values<int64_t>(request->inputs[1]), ElementsAre(INT64_MIN, INT64_MAX));
  EXPECT_THAT(Values<float>(request->inputs[2]), ElementsAre(0.1f, 16777216.f, -3.f));
  EXPECT_THAT(Values<int32_t>(request->inputs[3]), ElementsAre(INT32_MIN));
}

TEST(JsonRequest, KeepsTexts) {
  const absl::StatusOr<InferRequest> request = Decode(R"({"inputs":[
      {"name":"a","datatype":"BYTES","shape":[2,1],"data":[["x\n"],[""]]}]})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->inputs[0].bytes(), absl::string_view("\2\0\0\0x\n\0\0\0\0", 10));
}

TEST(JsonRequest, TakesBinaryTensorsFromTheRestOfTheBody) {
  const std::string json = R"({"inputs":[
      {"name":"a","datatype":"INT32","shape":[2],"parameters":{"binary_data_size":8}},
      {"name":"b","datatype":"INT32","shape":[1],"data":[5]},
      {"name":"c","datatype":"BYTES","shape":[1],"parameters":{"binary_data_size":3}}],
      "parameters":{"binary_data_output":true}})";
  const std::string body = absl::StrCat(json, absl::string_view("\1\0\0\0\2\0\0\0abc", 11));
  const absl::StatusOr<InferRequest> request = DecodeJsonRequest(body, json.size());
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(Values<int32_t>(request->inputs[0]), ElementsAre(1, 2));
  EXPECT_THAT(Values<int32_t>(request->inputs[1]), ElementsAre(5));
  EXPECT_EQ(request->inputs[2].bytes(), "abc");
  EXPECT_TRUE(request->binary_outputs);
  for (const size_t cut : {size_t{1}, size_t{4}, size_t{11}}) {
    EXPECT_THAT(
        DecodeJsonRequest(body.substr(0, body.size() - cut), json.size()).status().message(),
        HasSubstr("binary_data_size"));
  }
  EXPECT_THAT(DecodeJsonRequest(body + "d", json.size()).status().message(),
              HasSubstr("1 bytes after the JSON"));
  EXPECT_THAT(DecodeJsonRequest(body, body.size() + 1).status().message(),
              HasSubstr("Inference-Header-Content-Length"));
  EXPECT_THAT(DecodeJsonRequest(body, json.size() - 1).status().message(), HasSubstr("not JSON"));
}

TEST(JsonRequest, SaysWhatIsWrong) {
  EXPECT_THAT(Error(""), HasSubstr("not JSON"));
  EXPECT_THAT(Error("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(Error("7"), HasSubstr("not a JSON object"));
  EXPECT_THAT(Error("{\"inputs\":[]}}"), HasSubstr("not JSON"));
  EXPECT_THAT(Error("{\"id\":\"\xff\"}"), HasSubstr("not JSON"));
  EXPECT_THAT(Error(R"({"inputz":[]})"), HasSubstr("field 'inputz'"));
  EXPECT_THAT(Error(R"({"id":5})"), HasSubstr("field 'id' of the request: a number;"));
  EXPECT_THAT(Error(R"({"inputs":[5]})"), HasSubstr("a number"));
  EXPECT_THAT(Error(R"({"inputs":{}})"), HasSubstr("object"));
  EXPECT_THAT(Error(R"({"parameters":{"timeout":-1}})"), HasSubstr("negative"));
  EXPECT_THAT(InputError(R"("name":"x","shape":[1],"data":[1])"), HasSubstr("lacks"));
  EXPECT_THAT(InputError(R"("name":"x","datatype":"INT32","shape":[1])"), HasSubstr("neither"));
  EXPECT_THAT(InputError(R"("name":"x","datatype":"INT32","shape":[1],"data":[1],
                            "parameters":{"binary_data_size":4})"),
              HasSubstr("both"));
  EXPECT_THAT(InputError(R"("name":"x","parameters":{"shared_memory_region":"r"})"),
              HasSubstr("not supported"));
  EXPECT_THAT(InputError(R"("name":"x","parameters":{"binary_data_size":-4})"),
              HasSubstr("negative"));
  EXPECT_THAT(InputError(R"("name":"x","parameters":{"binary_data_size":"4"})"),
              HasSubstr("not supported"));
  EXPECT_THAT(InputError(R"("name":"x","shape":[-1])"), HasSubstr("out of range"));
  EXPECT_THAT(InputError(R"("name":"x","shape":[18446744073709551615])"),
              HasSubstr("out of range"));
  EXPECT_THAT(InputError(R"("name":"x","shape":[1.5])"), HasSubstr("not a whole number"));
  EXPECT_THAT(InputError(R"("name":"x","shape":[18446744073709551616])"),
              HasSubstr("the shape of input 'x' has a size that is out of range"));
}

TEST(JsonRequest, RefusesATimeoutThatIsNoWholeNumber) {
  for (const char* const timeout :
       {"\"x\"", "\"5\"", "null", "true", "1.5", "18446744073709551616", "{\"us\":5}", "[5]"}) {
    EXPECT_THAT(Error(absl::StrCat(R"({"parameters":{"timeout":)", timeout, "}}")),
                HasSubstr("'timeout' is not a whole number below 2^64; send microseconds"))
        << timeout;
  }
  const std::string good = kTwoSamples;
  const std::string other = R"("custom": {"x")";  // a parameter of another name may have any form
  const size_t at = good.find(other);
  ASSERT_NE(at, std::string::npos);
  std::string nested = good;
  nested.replace(at, other.size(), R"("custom": {"timeout")");
  EXPECT_TRUE(Decode(nested).ok()) << Decode(nested).status();
}

TEST(JsonRequest, RefusesParametersThatAskForWhatIsNotDone) {
  for (const char* const parameter :
       {R"("sequence_id":5)", R"("sequence_id":"a")", R"("sequence_start":true)",
        R"("sequence_end":true)", R"("priority":1)", R"("priority":0.5)", R"("priority":[1])",
        R"("sequence_id":{"x":1})", R"("triton_enable_empty_final_response":true)"}) {
    EXPECT_THAT(Error(absl::StrCat(R"({"parameters":{)", parameter, "}}")),
                HasSubstr("is not supported: "))
        << parameter;
  }
  for (const char* const parameter :
       {R"("classification":1)", R"("shared_memory_region":"r")", R"("shared_memory_offset":0)"}) {
    EXPECT_THAT(Error(absl::StrCat(R"({"outputs":[{"name":"probability","parameters":{)", parameter,
                                   "}}]}")),
                HasSubstr("is not supported"))
        << parameter;
  }
  for (const char* const parameter :
       {R"("sequence_id":0)", R"("sequence_id":"")", R"("sequence_start":false)", R"("priority":0)",
        R"("trace":"a")", R"("sequence_end":null)"}) {
    EXPECT_TRUE(Decode(absl::StrCat(R"({"parameters":{)", parameter, "}}")).ok()) << parameter;
  }
  EXPECT_THAT(Error(R"({"parameters":{"binary_data_output":"yes"}})"), HasSubstr("true or false"));
  EXPECT_THAT(InputError(R"("name":"x","parameters":{"binary_data_size":true})"),
              HasSubstr("a number of bytes"));
}

TEST(JsonRequest, ExplainsNumbersThatJsonLacks) {
  for (const char* const number : {"NaN", "Infinity", "-Infinity", "nan", "-inf"}) {
    EXPECT_THAT(DataError("FP32", "[2]", absl::StrCat("[1, ", number, "]")),
                HasSubstr("JSON has no NaN or Infinity; send finite numbers"))
        << number;
  }
  for (const char* const word : {"None", "nap", "info", "-x", "+1", ""}) {
    EXPECT_THAT(DataError("FP32", "[2]", absl::StrCat("[1, ", word, "]")),
                testing::Not(HasSubstr("Infinity")))
        << word;
  }
}

TEST(JsonRequest, SaysWhatIsWrongWithData) {
  EXPECT_THAT(DataError("INT32", "[2]", "[1]"), HasSubstr("1 numbers"));
  EXPECT_THAT(DataError("INT32", "[1]", "[1.5]"), HasSubstr("does not fit INT32"));
  EXPECT_THAT(DataError("INT32", "[1]", "[2147483648]"), HasSubstr("does not fit"));
  EXPECT_THAT(DataError("UINT32", "[1]", "[-1]"), HasSubstr("does not fit"));
  EXPECT_THAT(DataError("UINT32", "[1]", "[4294967296]"), HasSubstr("does not fit"));
  EXPECT_THAT(DataError("INT64", "[1]", "[9223372036854775808]"), HasSubstr("does not fit"));
  EXPECT_THAT(DataError("UINT64", "[1]", "[18446744073709551616]"), HasSubstr("does not fit"));
  EXPECT_THAT(DataError("BOOL", "[1]", "[1]"), HasSubstr("this server reads FP32"));
  EXPECT_THAT(DataError("BYTES", "[1]", "[1]"), HasSubstr("must be strings"));
  EXPECT_THAT(DataError("BYTES", "[2]", "[\"a\",1]"), HasSubstr("must be strings"));
  EXPECT_THAT(DataError("BYTES", "[2]", "[\"a\"]"), HasSubstr("must agree"));
  EXPECT_THAT(DataError("BYTES", "[1]", "[null]"), HasSubstr("has null"));
  EXPECT_THAT(DataError("FP32", "[1]", "[1e999]"), HasSubstr("not JSON"));
  EXPECT_THAT(DataError("FP32", "[1]", "[NaN]"), HasSubstr("not JSON"));
  EXPECT_THAT(DataError("FP32", "[1]", "[null]"), HasSubstr("must be numbers"));
  EXPECT_THAT(DataError("FP32", "[1]", "[true]"), HasSubstr("must be numbers"));
  EXPECT_THAT(DataError("FP32", "[1]", "[\"1\"]"), HasSubstr("must be numbers"));
  EXPECT_THAT(DataError("BYTES", "[1]", "[null]"),
              HasSubstr("has null; it must be strings, and \"\" for a missing value"));
  EXPECT_THAT(DataError("FP32", "[1]", "1"), HasSubstr("of the request: a number;"));
  EXPECT_THAT(DataError("FP32", "[2,2]", "[[1,2],[3]]"), HasSubstr("3 numbers"));
  EXPECT_THAT(DataError("FP32", "[3]", "[[1,2],[3]]"), HasSubstr("not nested"));
  EXPECT_THAT(DataError("FP32", "[2,2]", "[[1,2],[3],[4]]"), HasSubstr("not nested"));
  EXPECT_THAT(DataError("FP32", "[2,2]", "[[1],[2],[3],[4]]"), HasSubstr("not nested"));
  EXPECT_THAT(DataError("FP32", "[3]", "[1,[2,3]]"), HasSubstr("not nested"));
  EXPECT_THAT(DataError("FP32", "[3]", "[[1,2],3]"), HasSubstr("not nested"));
  EXPECT_THAT(DataError("FP32", "[1]", "[[[[[[[[[1]]]]]]]]]"), HasSubstr("deeper than"));
}

TEST(JsonRequest, BoundsItsTensors) {
  std::string body = R"({"inputs":[)";
  for (size_t i = 0; i <= kMaxTensors; ++i) {
    absl::StrAppend(&body, i > 0 ? "," : "",
                    R"({"name":"x","datatype":"INT32","shape":[0],"data":[]})");
  }
  EXPECT_THAT(Error(body + "]}"), HasSubstr("more than 4096 inputs"));
  body = R"({"outputs":[{})";
  for (size_t i = 0; i < kMaxTensors; ++i) body += ",{}";
  EXPECT_THAT(Error(body + "]}"), HasSubstr("more than 4096 outputs"));
  EXPECT_FALSE(Decode(std::string(1 << 20, '[')).ok());
  EXPECT_FALSE(Decode(R"({"parameters":{"x":)" + std::string(1 << 20, '[')).ok());
}

// Changes bytes, words and lengths of good bodies at random. Each gets an answer, and samples that
// are accepted can be predicted; the address sanitizer sees reads out of bounds.
TEST(JsonRequest, SurvivesRandomChanges) {
  std::mt19937 random(18);
  const auto pick = [&random](size_t n) { return static_cast<size_t>(random()) % n; };
  const char* const words[] = {"\"data\"",
                               "\"shape\"",
                               "[",
                               "]",
                               "{",
                               "}",
                               ",",
                               "-1",
                               "null",
                               "1e30",
                               "\"INT32\"",
                               "\"FP32\"",
                               "18446744073709551615",
                               "\"id\"",
                               "\"parameters\":{\"binary_data_size\":4}",
                               "0.5",
                               "[[",
                               "\"\""};
  FakePredictor predictor;
  int accepted = 0;
  for (int round = 0; round < 10000; ++round) {
    std::string body = kTwoSamples;
    const size_t json_bytes = pick(3) == 0 ? pick(body.size() + 20) : body.size();
    for (size_t change = pick(4); change > 0; --change) {
      const size_t at = pick(body.size());
      switch (pick(4)) {
        case 0:
          body[at] = static_cast<char>(random());
          break;
        case 1:
          body.erase(at, pick(20));
          break;
        case 2:
          body.insert(at, words[pick(std::size(words))]);
          break;
        default:
          body.insert(at, body.substr(pick(body.size()), pick(40)));
      }
      if (body.empty()) body = "{";
    }
    const absl::StatusOr<InferRequest> request =
        DecodeJsonRequest(body, round % 2 == 0 ? std::optional(json_bytes) : std::nullopt);
    if (!request.ok()) {
      EXPECT_TRUE(absl::IsInvalidArgument(request.status())) << request.status();
      continue;
    }
    const absl::StatusOr<Samples> samples =
        Samples::Decode(predictor.shape(), predictor.max_samples(), request->inputs);
    if (!samples.ok()) continue;
    ++accepted;
    std::vector<float> predictions(samples->request().samples);
    ServedVersion version;
    ASSERT_TRUE(
        predictor.Predict(samples->request(), absl::MakeSpan(predictions), &version, nullptr).ok());
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace cistern::serve
