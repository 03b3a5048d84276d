#include "serve/server/samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "absl/strings/escaping.h"
#include "test/serve/server/fake_predictor.h"
#include "test/serve/server/tensors.h"

namespace cistern::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr size_t kMaxSamples = 100;

absl::StatusOr<Samples> DecodeSamples(const std::vector<InferTensor>& inputs) {
  return Samples::Decode(FakePredictor().shape(), kMaxSamples, inputs);
}

void ExpectTwoSamples(const absl::StatusOr<Samples>& samples) {
  ASSERT_TRUE(samples.ok()) << samples.status();
  const PredictRequest& request = samples->request();
  EXPECT_EQ(request.samples, 2u);
  EXPECT_THAT(request.dense, ElementsAre(0.5f, 1, 2, 3));
  ASSERT_EQ(request.inputs.size(), 2u);
  EXPECT_THAT(request.inputs[0].keys, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(request.inputs[0].offsets, ElementsAre(0, 1, 3, 3, 4));
  EXPECT_THAT(request.inputs[1].keys, ElementsAre(5, 6, 7));
  EXPECT_THAT(request.inputs[1].offsets, ElementsAre(0, 1, 3));
  EXPECT_EQ(samples->key_num(), 7u);
}

// The error of a request in which one tensor is another.
std::string ErrorWith(InferTensor tensor, std::vector<InferTensor> inputs = TwoSamples()) {
  for (InferTensor& input : inputs) {
    if (input.name == tensor.name) input = tensor;
  }
  const absl::StatusOr<Samples> samples = DecodeSamples(inputs);
  EXPECT_TRUE(absl::IsInvalidArgument(samples.status())) << samples.status();
  return std::string(samples.status().message());
}

TEST(Samples, ReadNamedInputs) {
  ExpectTwoSamples(DecodeSamples(TwoSamples()));
}

TEST(Samples, ReadTheWeightsOfKeys) {
  PredictorShape shape = FakePredictor().shape();
  shape.inputs[1].key_weights = true;
  const auto decode = [&](const std::vector<InferTensor>& inputs) {
    return Samples::Decode(shape, kMaxSamples, inputs);
  };
  const auto with = [](std::vector<float> weights) {
    std::vector<InferTensor> inputs = TwoSamples();
    inputs.push_back(
        TensorFrom<float>("deep.weights", "FP32", {static_cast<int64_t>(weights.size())}, weights));
    return inputs;
  };
  const absl::StatusOr<Samples> samples = decode(with({0.5, -1, 2}));
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_TRUE(samples->request().inputs[0].weights.empty());
  EXPECT_THAT(samples->request().inputs[1].weights, ElementsAre(0.5f, -1, 2));
  EXPECT_THAT(std::string(decode(TwoSamples()).status().message()),
              HasSubstr("input 'deep.weights' is missing"));
  EXPECT_THAT(std::string(decode(with({1, 2})).status().message()),
              HasSubstr("'deep.weights' has 2 elements; this model needs 3, as many as keys"));
  EXPECT_THAT(std::string(decode(TwoHugeCtrSamples()).status().message()),
              HasSubstr("the keys of input 'deep' have weights"));
  EXPECT_THAT(std::string(DecodeSamples(with({1, 2, 3})).status().message()),
              HasSubstr("this model has no input 'deep.weights'"));
}

TEST(Samples, ReadHugeCtrInputsSampleBySample) {
  ExpectTwoSamples(DecodeSamples(TwoHugeCtrSamples()));
}

// Reads rows "x,a,y,b,c" of raw keys: two dense features, three slots, as FakePredictor's shape.
std::shared_ptr<const data::OwnedEncoder> TextEncoder() {
  data::Recipe recipe;
  recipe.layout.columns = {"click", "x", "a", "y", "b", "c"};
  recipe.labels = {{"click", {}, {}}};
  recipe.dense = {{"x"}, {"y"}};
  recipe.slots = {{"a", false, '|'}, {"b", false, '|'}, {"c", false, '|'}};
  recipe.keys = data::KeyMode::kRaw;
  return *data::OwnedEncoder::Open(recipe, "");
}

InferTensor TextTensor(const std::vector<std::string>& texts, std::vector<int64_t> shape) {
  InferTensor tensor;
  tensor.name = "text";
  tensor.datatype = "BYTES";
  tensor.shape = std::move(shape);
  tensor.owned.emplace();
  for (const std::string& text : texts) {
    const auto size = static_cast<uint32_t>(text.size());
    tensor.owned->append(reinterpret_cast<const char*>(&size), sizeof(size)).append(text);
  }
  return tensor;
}

absl::StatusOr<Samples> DecodeText(const std::vector<InferTensor>& inputs) {
  return Samples::Decode(FakePredictor().shape(), kMaxSamples, inputs, TextEncoder().get());
}

std::string TextError(const std::vector<InferTensor>& inputs) {
  const absl::Status status = DecodeText(inputs).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(Samples, ReadLinesAndFieldsOfText) {
  ExpectTwoSamples(DecodeText({TextTensor({"0.5,1,1,2|3,5", "2,,3,4,6|7\n"}, {2})}));
  ExpectTwoSamples(
      DecodeText({TextTensor({"0.5", "1", "1", "2|3", "5", "2", "", "3", "4", "6|7"}, {2, 5})}));
}

TEST(Samples, IgnoreTheLineEndOfARowOfText) {
  for (const char* const end : {"\n", "\r\n", "\r"}) {
    SCOPED_TRACE(absl::CEscape(end));
    const std::vector<std::string> rows = {absl::StrCat("0.5,1,1,2|3,5", end),
                                           absl::StrCat("2,,3,4,6|7", end)};
    ExpectTwoSamples(DecodeText({TextTensor(rows, {2})}));
  }
}

TEST(Samples, RefuseTextThatDoesNotFit) {
  EXPECT_THAT(std::string(DecodeSamples({TextTensor({"1,1,1,1,1"}, {1})}).status().message()),
              HasSubstr("exported without a recipe"));
  EXPECT_THAT(TextError({TextTensor({"1,1,1,1"}, {1})}), HasSubstr("row 0: it has 4 fields"));
  EXPECT_THAT(TextError({TextTensor({"1,a,1,1,1"}, {1})}), HasSubstr("column 'a'"));
  EXPECT_THAT(TextError({TextTensor({"1,1,1,1,1"}, {2})}), HasSubstr("1 whole elements"));
  EXPECT_THAT(TextError({TextTensor({"1", "2"}, {1, 2})}), HasSubstr("[samples,5]"));
  EXPECT_THAT(TextError({TextTensor({}, {0})}), HasSubstr("no samples"));
  EXPECT_THAT(TextError({TextTensor(std::vector<std::string>(101, "1,1,1,1,1"), {101})}),
              HasSubstr("accepts 100"));
  std::vector<InferTensor> both = TwoSamples();
  both.push_back(TextTensor({"1,1,1,1,1"}, {1}));
  EXPECT_THAT(TextError(both), HasSubstr("send one form only"));
  InferTensor cut = TextTensor({"1,1,1,1,1"}, {1});
  cut.owned->pop_back();
  EXPECT_THAT(TextError({cut}), HasSubstr("a part of another"));
  cut.owned = std::string("\xff\xff\xff\xff", 4);
  EXPECT_THAT(TextError({cut}), HasSubstr("a part of another"));
  InferTensor numbers = TextTensor({"1,1,1,1,1"}, {1});
  numbers.datatype = "INT32";
  EXPECT_THAT(TextError({numbers}), HasSubstr("send BYTES"));
}

TEST(Samples, DoNotDependOnTheOrderOfInputs) {
  std::vector<InferTensor> inputs = TwoSamples();
  std::reverse(inputs.begin(), inputs.end());
  ExpectTwoSamples(DecodeSamples(inputs));
}

TEST(Samples, ReadUnalignedBytes) {
  std::vector<InferTensor> inputs = TwoSamples();
  std::vector<std::string> shifted;
  shifted.reserve(inputs.size());
  for (InferTensor& input : inputs) {
    shifted.push_back(absl::StrCat("x", input.bytes()));
    input.owned.reset();
    input.borrowed = absl::string_view(shifted.back()).substr(1);
  }
  ExpectTwoSamples(DecodeSamples(inputs));
}

TEST(Samples, ReadEveryTypeOfKeys) {
  std::vector<InferTensor> inputs = TwoSamples();
  inputs[1] = TensorFrom<uint32_t>("wide.keys", "UINT32", {4}, {1, 2, 3, 4});
  inputs[3] = TensorFrom<int32_t>("deep.keys", "INT32", {3}, {5, 6, 7});
  ExpectTwoSamples(DecodeSamples(inputs));
  inputs[1] = TensorFrom<uint64_t>("wide.keys", "UINT64", {4}, {1, 2, 3, uint64_t{1} << 63});
  const absl::StatusOr<Samples> large = DecodeSamples(inputs);
  ASSERT_TRUE(large.ok());
  EXPECT_EQ(large->request().inputs[0].keys[3], uint64_t{1} << 63);
  inputs[1] = TensorFrom<int64_t>("wide.keys", "INT64", {4}, {1, 2, 3, -1});
  EXPECT_EQ(DecodeSamples(inputs)->request().inputs[0].keys[3], ~uint64_t{0});
}

TEST(Samples, CountByOffsetsWithoutDenseFeatures) {
  PredictorShape shape;
  shape.inputs = {{"a", 3}};
  const std::vector<InferTensor> inputs = {
      TensorFrom<int64_t>("a.keys", "INT64", {1}, {9}),
      TensorFrom<int32_t>("a.offsets", "INT32", {7}, {0, 0, 0, 1, 1, 1, 1})};
  const absl::StatusOr<Samples> samples = Samples::Decode(shape, kMaxSamples, inputs);
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_EQ(samples->request().samples, 2u);
  EXPECT_TRUE(samples->request().dense.empty());

  const std::vector<InferTensor> huge_ctr = {
      TensorFrom<int64_t>("CATCOLUMN", "INT64", {1}, {9}),
      TensorFrom<int32_t>("ROWINDEX", "INT32", {7}, {0, 0, 0, 1, 1, 1, 1})};
  EXPECT_EQ(Samples::Decode(shape, kMaxSamples, huge_ctr)->request().samples, 2u);
}

TEST(Samples, NameWhatIsMissingUnknownOrRepeated) {
  for (size_t i = 0; i < TwoSamples().size(); ++i) {
    std::vector<InferTensor> inputs = TwoSamples();
    const std::string name = inputs[i].name;
    inputs.erase(inputs.begin() + static_cast<long>(i));
    EXPECT_THAT(DecodeSamples(inputs).status().message(), HasSubstr("'" + name + "' is missing"));
  }
  std::vector<InferTensor> inputs = TwoSamples();
  inputs.push_back(TensorFrom<float>("sparse", "FP32", {1}, {1}));
  EXPECT_THAT(DecodeSamples(inputs).status().message(), HasSubstr("no input 'sparse'"));
  inputs.back() = inputs.front();
  EXPECT_THAT(DecodeSamples(inputs).status().message(), HasSubstr("duplicate input 'dense'"));
  inputs.back() = TwoHugeCtrSamples()[0];
  EXPECT_THAT(DecodeSamples(inputs).status().message(), HasSubstr("mix HugeCTR's names"));
  EXPECT_FALSE(DecodeSamples({}).ok());
}

TEST(Samples, NameAWrongType) {
  EXPECT_THAT(ErrorWith(TensorFrom<double>("dense", "FP64", {2, 2}, {1, 2, 3, 4})),
              HasSubstr("send FP32"));
  EXPECT_THAT(ErrorWith(TensorFrom<float>("wide.keys", "FP32", {4}, {1, 2, 3, 4})),
              HasSubstr("send keys as INT64"));
  EXPECT_THAT(ErrorWith(TensorFrom<int64_t>("deep.offsets", "INT64", {3}, {0, 1, 3})),
              HasSubstr("send INT32"));
  EXPECT_THAT(ErrorWith(TensorFrom<int32_t>("deep.keys", "INT32", {3}, {5, -6, 7})),
              HasSubstr("has the key -6"));
  EXPECT_THAT(ErrorWith(TensorFrom<int32_t>("deep.keys", std::string(1000, '\1'), {3}, {5, 6, 7})),
              HasSubstr("..."));
}

TEST(Samples, NameAShapeThatDisagreesWithItsBytes) {
  EXPECT_THAT(ErrorWith(TensorFrom<float>("dense", "FP32", {3, 2}, {0.5, 1, 2, 3})),
              HasSubstr("16 bytes"));
  EXPECT_THAT(ErrorWith(TensorFrom<float>("dense", "FP32", {4}, {0.5, 1, 2, 3})),
              HasSubstr("send [samples,2]"));
  EXPECT_THAT(ErrorWith(TensorFrom<float>("dense", "FP32", {-2, 2}, {0.5, 1, 2, 3})),
              HasSubstr("[-2,2]"));
  EXPECT_THAT(ErrorWith(TensorFrom<int64_t>("deep.keys", "INT64", {-3}, {5, 6, 7})),
              HasSubstr("[-3]"));
  const int64_t large = int64_t{1} << 32;
  EXPECT_THAT(ErrorWith(TensorFrom<int64_t>("deep.keys", "INT64", {large, large}, {5, 6, 7})),
              HasSubstr("64 bits"));
  InferTensor torn = TwoSamples()[3];
  torn.owned->pop_back();
  EXPECT_THAT(ErrorWith(torn), HasSubstr("23 bytes"));
}

TEST(Samples, NameOffsetsThatRunAstray) {
  EXPECT_THAT(ErrorWith(TensorFrom<int32_t>("deep.offsets", "INT32", {3}, {1, 1, 3})),
              HasSubstr("element 0 is 1"));
  EXPECT_THAT(ErrorWith(TensorFrom<int32_t>("deep.offsets", "INT32", {3}, {0, 3, 2})),
              HasSubstr("element 2 is 2"));
  EXPECT_THAT(ErrorWith(TensorFrom<int32_t>("deep.offsets", "INT32", {3}, {0, -1, 3})),
              HasSubstr("element 1 is -1"));
  EXPECT_THAT(ErrorWith(TensorFrom<int32_t>("deep.offsets", "INT32", {3}, {0, 1, 4})),
              HasSubstr("element 2 is 4"));
  EXPECT_THAT(ErrorWith(TensorFrom<int32_t>("deep.offsets", "INT32", {3}, {0, 1, 2})),
              HasSubstr("ends at 2"));
  EXPECT_THAT(ErrorWith(TensorFrom<int32_t>("deep.offsets", "INT32", {2}, {0, 3})),
              HasSubstr("needs 3 for 2 samples of 1 slots"));
}

TEST(Samples, NameHugeCtrInputsThatDisagree) {
  const auto error = [](InferTensor tensor) {
    return ErrorWith(std::move(tensor), TwoHugeCtrSamples());
  };
  EXPECT_THAT(error(TensorFrom<int32_t>("ROWINDEX", "INT32", {7}, {0, 1, 3, 3, 4, 0, 1})),
              HasSubstr("samples * 3 + 2"));
  EXPECT_THAT(error(TensorFrom<int32_t>("ROWINDEX", "INT32", {8}, {0, 1, 3, 3, 4, 4, 5, 7})),
              HasSubstr("element 0 is 4"));
  EXPECT_THAT(error(TensorFrom<int32_t>("ROWINDEX", "INT32", {8}, {0, 1, 3, 3, 5, 0, 1, 3})),
              HasSubstr("accounts for 8"));
  EXPECT_THAT(error(TensorFrom<float>("DES", "FP32", {6}, {1, 2, 3, 4, 5, 6})),
              HasSubstr("needs 4 for the 2 samples of ROWINDEX"));
}

TEST(Samples, AreFiniteAndBounded) {
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    EXPECT_THAT(ErrorWith(TensorFrom<float>("dense", "FP32", {2, 2}, {0.5, 1, bad, 3})),
                HasSubstr("element 2"));
  }
  EXPECT_THAT(ErrorWith(TensorFrom<float>("dense", "FP32", {0, 2}, {})), HasSubstr("no samples"));
  EXPECT_THAT(ErrorWith(TensorFrom<float>("dense", "FP32", {101, 2}, std::vector<float>(202))),
              HasSubstr("accepts 100"));
}

// Random tensors, most of them almost right: the decoder answers, and whatever it accepts is in
// bounds. The address sanitizer sees reads out of bounds.
TEST(Samples, SurviveRandomChanges) {
  std::mt19937 random(18);
  const auto pick = [&random](size_t n) { return random() % n; };
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<InferTensor> inputs = pick(2) == 0 ? TwoSamples() : TwoHugeCtrSamples();
    for (size_t change = pick(3); change > 0; --change) {
      InferTensor& tensor = inputs[pick(inputs.size())];
      const char* const types[] = {"FP32", "INT64", "UINT64", "INT32", "UINT32", "BYTES", ""};
      switch (pick(5)) {
        case 0:
          tensor.shape[pick(tensor.shape.size())] = static_cast<int64_t>(pick(9)) - 1;
          break;
        case 1:
          tensor.datatype = types[pick(std::size(types))];
          break;
        case 2:
          (*tensor.owned)[pick(tensor.owned->size())] = static_cast<char>(random());
          break;
        case 3:
          tensor.owned->resize(pick(40));
          if (tensor.owned->empty()) tensor.owned = std::string(1, 'x');
          break;
        default:
          tensor.name = inputs[pick(inputs.size())].name;
      }
    }
    const absl::StatusOr<Samples> samples = DecodeSamples(inputs);
    if (!samples.ok()) continue;
    ++accepted;
    FakePredictor predictor;
    std::vector<float> predictions(samples->request().samples);
    ServedVersion version;
    ASSERT_TRUE(
        predictor.Predict(samples->request(), absl::MakeSpan(predictions), &version, nullptr).ok());
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace cistern::serve
