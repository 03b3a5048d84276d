#include "serve/server/grpc_tensors.h"

#include <gmock/gmock.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include "serve/server/samples.h"
#include "test/serve/server/fake_predictor.h"
#include "test/serve/server/grpc_request.h"

namespace cistern::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Error(const inference::ModelInferRequest& message) {
  const absl::StatusOr<InferRequest> request = FromMessage(message);
  EXPECT_TRUE(absl::IsInvalidArgument(request.status())) << request.status();
  return std::string(request.status().message());
}

uint64_t MemoryOf(const std::string& wire) {
  google::protobuf::io::ArrayInputStream in(wire.data(), static_cast<int>(wire.size()), 7);
  return MemoryOfRequest(&in, wire.size());
}

TEST(GrpcTensors, ReadRawAndTypedContents) {
  for (const bool raw : {true, false}) {
    inference::ModelInferRequest message = GrpcRequest(raw);
    message.set_id("9");
    message.set_model_version("7");
    auto* timeout = message.add_parameters();
    timeout->set_key("timeout");
    timeout->mutable_value()->set_int64_param(250);
    message.add_outputs()->set_name("commit");
    const absl::StatusOr<InferRequest> request = FromMessage(message);
    ASSERT_TRUE(request.ok()) << request.status();
    EXPECT_EQ(request->model, "ads");
    EXPECT_EQ(request->version, "7");
    EXPECT_EQ(request->id, "9");
    EXPECT_EQ(request->timeout_us, 250u);
    ASSERT_EQ(request->outputs.size(), 1u);
    const absl::StatusOr<Samples> samples =
        Samples::Decode(FakePredictor().shape(), 100, request->inputs);
    ASSERT_TRUE(samples.ok()) << samples.status();
    EXPECT_THAT(samples->request().dense, ElementsAre(0.5f, 1, 2, 3));
    EXPECT_THAT(samples->request().inputs[1].keys, ElementsAre(5, 6, 7));
  }
}

TEST(GrpcTensors, ReadTypedTexts) {
  inference::ModelInferRequest message;
  auto* input = message.add_inputs();
  input->set_datatype("BYTES");
  input->mutable_contents()->add_bytes_contents("ab");
  input->mutable_contents()->add_bytes_contents("");
  const absl::StatusOr<InferRequest> request = FromMessage(message);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->inputs[0].bytes(), absl::string_view("\2\0\0\0ab\0\0\0\0", 10));
}

TEST(GrpcTensors, ReadEveryTypedContent) {
  inference::ModelInferRequest message;
  const auto add = [&](const char* type) {
    auto* input = message.add_inputs();
    input->set_datatype(type);
    return input->mutable_contents();
  };
  add("UINT64")->add_uint64_contents(~uint64_t{0});
  add("UINT32")->add_uint_contents(~uint32_t{0});
  add("INT32")->add_int_contents(-1);
  const absl::StatusOr<InferRequest> request = FromMessage(message);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->inputs[0].bytes(), std::string(8, '\xff'));
  EXPECT_EQ(request->inputs[1].bytes(), std::string(4, '\xff'));
  EXPECT_EQ(request->inputs[2].bytes(), std::string(4, '\xff'));
}

TEST(GrpcTensors, RefuseContentsThatDisagree) {
  inference::ModelInferRequest message = GrpcRequest(true);
  message.mutable_raw_input_contents()->RemoveLast();
  EXPECT_THAT(Error(message), HasSubstr("5 inputs, but 4 raw_input_contents"));
  message = GrpcRequest(true);
  message.add_raw_input_contents("x");
  EXPECT_THAT(Error(message), HasSubstr("6 raw_input_contents"));
  message = GrpcRequest(true);
  message.mutable_inputs(2)->mutable_contents();
  EXPECT_THAT(Error(message), HasSubstr("'wide.offsets' has contents although"));
  message = GrpcRequest(false);
  message.mutable_inputs(0)->set_datatype("FP16");
  EXPECT_THAT(Error(message), HasSubstr("'FP16'"));
  message.clear_inputs();
  for (size_t i = 0; i <= kMaxTensors; ++i) message.add_inputs();
  EXPECT_THAT(Error(message), HasSubstr("more than 4096"));
}

TEST(GrpcTensors, RefuseATimeoutThatIsNoWholeNumber) {
  inference::ModelInferRequest message = GrpcRequest(true);
  auto* timeout = message.add_parameters();
  timeout->set_key("timeout");
  EXPECT_THAT(Error(message), HasSubstr("'timeout' is not a whole number"));
  timeout->mutable_value()->set_string_param("5");
  EXPECT_THAT(Error(message), HasSubstr("'timeout' is not a whole number"));
  timeout->mutable_value()->set_bool_param(true);
  EXPECT_THAT(Error(message), HasSubstr("'timeout' is not a whole number"));
  timeout->mutable_value()->set_double_param(5);
  EXPECT_THAT(Error(message), HasSubstr("'timeout' is not a whole number"));
  timeout->mutable_value()->set_int64_param(-1);
  EXPECT_THAT(Error(message), HasSubstr("'timeout' is negative"));
  timeout->mutable_value()->set_uint64_param(7);
  const absl::StatusOr<InferRequest> request = FromMessage(message);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->timeout_us, 7u);
}

TEST(GrpcTensors, RefuseSharedMemory) {
  for (const bool raw : {true, false}) {
    inference::ModelInferRequest message = GrpcRequest(raw);
    auto* region = message.mutable_inputs(1)->add_parameters();
    region->set_key("shared_memory_region");
    region->mutable_value()->set_string_param("r");
    EXPECT_THAT(Error(message), HasSubstr("'wide.keys' has the parameter 'shared_memory_region'"));
    message.mutable_inputs(1)->clear_contents();
    EXPECT_THAT(Error(message), HasSubstr("'shared_memory_region'"));
  }
  inference::ModelInferRequest message = GrpcRequest(true);
  auto* output = message.add_outputs();
  output->set_name("probability");
  output->add_parameters()->set_key("shared_memory_region");
  EXPECT_THAT(Error(message), HasSubstr("'probability' has the parameter"));
}

TEST(GrpcTensors, RefuseParametersThatAskForWhatIsNotDone) {
  inference::ModelInferRequest message = GrpcRequest(true);
  auto* sequence = message.add_parameters();
  sequence->set_key("sequence_id");
  sequence->mutable_value()->set_int64_param(0);
  EXPECT_TRUE(FromMessage(message).ok());
  sequence->mutable_value()->set_int64_param(5);
  EXPECT_THAT(Error(message), HasSubstr("'sequence_id', which is not supported"));
  sequence->mutable_value()->set_string_param("a");
  EXPECT_THAT(Error(message), HasSubstr("'sequence_id'"));
  sequence->set_key("priority");
  sequence->mutable_value()->set_uint64_param(2);
  EXPECT_THAT(Error(message), HasSubstr("'priority'"));
  sequence->set_key("trace");
  EXPECT_TRUE(FromMessage(message).ok());
  auto* output = message.add_outputs();
  output->set_name("probability");
  output->add_parameters()->set_key("classification");
  EXPECT_TRUE(FromMessage(message).ok());
  output->mutable_parameters(0)->mutable_value()->set_int64_param(1);
  EXPECT_THAT(Error(message), HasSubstr("'probability' has the parameter 'classification'"));
}

TEST(GrpcTensors, DescribeAModelAsTritonDoes) {
  const ModelMetadata model = {"ads",
                               "7",
                               {{"dense", "FP32", {-1, 2}}, {"text", "BYTES", {-1, 3}, true}},
                               {{"commit", "INT64", {1}}},
                               {{"text_columns", "a,b,c"}}};
  const inference::ModelConfig config = ToConfigMessage(model).config();
  EXPECT_EQ(config.name(), "ads");
  ASSERT_EQ(config.input_size(), 2);
  EXPECT_EQ(config.input(0).data_type(), inference::TYPE_FP32);
  EXPECT_FALSE(config.input(0).optional());
  EXPECT_EQ(config.input(1).data_type(), inference::TYPE_STRING);
  EXPECT_TRUE(config.input(1).optional());
  EXPECT_EQ(config.input(1).dims(1), 3);
  EXPECT_EQ(config.output(0).data_type(), inference::TYPE_INT64);
  ASSERT_EQ(config.parameters_size(), 1);
  EXPECT_EQ(config.parameters(0).key(), "text_columns");
  EXPECT_EQ(config.parameters(0).value().string_value(), "a,b,c");
}

TEST(GrpcTensors, ContentsOfAnotherTypeAreMissingElements) {
  inference::ModelInferRequest message = GrpcRequest(false);
  auto* keys = message.mutable_inputs(1);
  keys->mutable_contents()->Clear();
  keys->mutable_contents()->add_uint_contents(1);  // INT64 belongs into int64_contents
  const absl::StatusOr<InferRequest> request = FromMessage(message);
  ASSERT_TRUE(request.ok());
  EXPECT_THAT(Samples::Decode(FakePredictor().shape(), 100, request->inputs).status().message(),
              HasSubstr("but 0 bytes of data"));
}

TEST(GrpcTensors, AnswerAsAsked) {
  InferReply reply;
  reply.model = "ads";
  reply.commit = 7;
  reply.id = "9";
  const std::vector<float> probabilities = {0.25, 0.5};
  const int64_t commit = 7;
  reply.outputs = {TensorOf<float>("probability", "FP32", {2, 1}, probabilities),
                   TensorOf<int64_t>("commit", "INT64", {1}, {&commit, 1})};
  const inference::ModelInferResponse raw = ToMessage(reply, true);
  EXPECT_EQ(raw.model_version(), "7");
  EXPECT_EQ(raw.id(), "9");
  ASSERT_EQ(raw.raw_output_contents_size(), 2);
  EXPECT_EQ(raw.raw_output_contents(1), absl::string_view("\7\0\0\0\0\0\0\0", 8));
  EXPECT_FALSE(raw.outputs(0).has_contents());
  const inference::ModelInferResponse typed = ToMessage(reply, false);
  EXPECT_EQ(typed.raw_output_contents_size(), 0);
  EXPECT_THAT(typed.outputs(0).contents().fp32_contents(), ElementsAre(0.25f, 0.5f));
  EXPECT_THAT(typed.outputs(0).shape(), ElementsAre(2, 1));
  EXPECT_THAT(typed.outputs(1).contents().int64_contents(), ElementsAre(7));
}

TEST(GrpcTensors, BoundTheMemoryOfARequestBeforeItIsParsed) {
  inference::ModelInferRequest message = GrpcRequest(true);
  message.mutable_raw_input_contents(1)->assign(1 << 20, 'x');
  const std::string raw = message.SerializeAsString();
  EXPECT_GE(MemoryOf(raw), raw.size());
  EXPECT_LT(MemoryOf(raw), (1 << 20) + (128 << 10));

  inference::ModelInferRequest empties;
  for (int i = 0; i < 10000; ++i) empties.add_inputs();
  const std::string many = empties.SerializeAsString();
  inference::ModelInferRequest parsed;
  ASSERT_TRUE(parsed.ParseFromString(many));
  EXPECT_GE(MemoryOf(many), parsed.SpaceUsedLong());
  // Torn and hostile bytes end the scan, which then assumes the worst.
  for (size_t cut = 0; cut < 200; ++cut) EXPECT_GE(MemoryOf(raw.substr(0, cut)), cut);
  EXPECT_EQ(MemoryOf("\x3a\xff\xff\xff\xff\x0f"), 6u * 128);
}

}  // namespace
}  // namespace cistern::serve
