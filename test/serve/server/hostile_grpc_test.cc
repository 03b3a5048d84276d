// Requests that lie over gRPC, on real sockets: each is refused with a reason, none is predicted,
// and the next honest request is answered.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "test/serve/server/server_fixture.h"

namespace cistern::serve {
namespace {

using Message = inference::ModelInferRequest;

class HostileGrpcTest : public ServerFixture {
 protected:
  // Whatever the bytes are.
  grpc::Status InferBytes(const std::string& bytes) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(20)));
    const grpc::Slice slice(bytes);
    grpc::ByteBuffer request(&slice, 1), reply;
    grpc::CompletionQueue queue;
    grpc::GenericStub stub(channel_);
    const auto call = stub.PrepareUnaryCall(&context, "/inference.GRPCInferenceService/ModelInfer",
                                            request, &queue);
    call->StartCall();
    grpc::Status status;
    call->Finish(&reply, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status;
  }
};

struct GrpcLie {
  const char* what;
  std::function<void(Message*)> tell;
  bool raw = true;
  grpc::StatusCode code = grpc::StatusCode::INVALID_ARGUMENT;
};

auto* InputOf(Message* message, int i) {
  return message->mutable_inputs(i);
}
void SetShape(Message* message, int i, const std::vector<int64_t>& shape) {
  InputOf(message, i)->clear_shape();
  for (const int64_t size : shape) InputOf(message, i)->add_shape(size);
}
std::string Floats(std::vector<float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}
std::string Offsets(std::vector<int32_t> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int32_t)};
}

// The inputs are dense, wide.keys, wide.offsets, deep.keys, deep.offsets (tensors.h).
const std::vector<GrpcLie>& GrpcLies() {
  constexpr int64_t kHuge = int64_t{1} << 62;
  static const auto& lies = *new std::vector<GrpcLie>{
      {"no inputs", [](Message* m) { m->clear_inputs(), m->clear_raw_input_contents(); }},
      {"no shape", [](Message* m) { SetShape(m, 0, {}); }},
      {"another shape",
       [](Message* m) {
         SetShape(m, 0, {2, 3});
       }},
      {"a flat shape of another size", [](Message* m) { SetShape(m, 1, {5}); }},
      {"a negative size",
       [](Message* m) {
         SetShape(m, 0, {-1, 2});
       }},
      {"two negative sizes",
       [](Message* m) {
         SetShape(m, 0, {-2, -2});
       }},
      {"the least size", [](Message* m) { SetShape(m, 1, {INT64_MIN}); }},
      {"a product of 2^64",
       [](Message* m) {
         SetShape(m, 0, {kHuge, 4});
       }},
      {"a product of 2^64 + 4",
       [](Message* m) {
         SetShape(m, 0, {kHuge + 1, 4});
       }},
      {"bytes of 2^64 + 16",
       [](Message* m) {
         SetShape(m, 0, {(kHuge + 4) / 2, 2});
       }},
      {"a huge count of keys", [](Message* m) { SetShape(m, 1, {INT64_MAX}); }},
      {"a zero in a shape",
       [](Message* m) {
         SetShape(m, 0, {0, 2});
       }},
      {"a zero beside a huge size",
       [](Message* m) {
         SetShape(m, 0, {0, INT64_MAX});
       }},
      {"a thousand sizes", [](Message* m) { SetShape(m, 0, std::vector<int64_t>(1000, 1)); }},
      {"raw contents too short", [](Message* m) { m->mutable_raw_input_contents(0)->pop_back(); }},
      {"raw contents too long",
       [](Message* m) { *m->mutable_raw_input_contents(1) += "12345678"; }},
      {"empty raw contents", [](Message* m) { m->mutable_raw_input_contents(2)->clear(); }},
      {"too few raw contents", [](Message* m) { m->mutable_raw_input_contents()->RemoveLast(); }},
      {"too many raw contents", [](Message* m) { m->add_raw_input_contents("abcd"); }},
      {"raw and typed contents",
       [](Message* m) { InputOf(m, 0)->mutable_contents()->add_fp32_contents(1); }},
      {"typed contents of two types",
       [](Message* m) { InputOf(m, 0)->mutable_contents()->add_int64_contents(1); }, false},
      {"typed contents of another type",
       [](Message* m) {
         InputOf(m, 0)->clear_contents();
         for (int i = 0; i < 4; ++i) InputOf(m, 0)->mutable_contents()->add_fp64_contents(1);
       },
       false},
      {"typed contents of FP64",
       [](Message* m) {
         InputOf(m, 0)->set_datatype("FP64");
         InputOf(m, 0)->clear_contents();
         for (int i = 0; i < 4; ++i) InputOf(m, 0)->mutable_contents()->add_fp64_contents(1);
       },
       false},
      {"typed contents of FP16", [](Message* m) { InputOf(m, 0)->set_datatype("FP16"); }, false},
      {"FP64 after inputs that were read", [](Message* m) { InputOf(m, 4)->set_datatype("FP64"); },
       false},
      {"contents beside the raw ones of the last input",
       [](Message* m) { InputOf(m, 4)->mutable_contents()->add_int_contents(1); }},
      {"texts and numbers",
       [](Message* m) {
         InputOf(m, 4)->set_datatype("BYTES");
         InputOf(m, 4)->mutable_contents()->add_bytes_contents("x");
       },
       false},
      {"numbers instead of texts", [](Message* m) { InputOf(m, 4)->set_datatype("BYTES"); }, false},
      {"a timeout that is a text",
       [](Message* m) {
         m->add_parameters()->set_key("timeout");
         m->mutable_parameters(0)->mutable_value()->set_string_param("x");
       }},
      {"a region of shared memory",
       [](Message* m) { InputOf(m, 4)->add_parameters()->set_key("shared_memory_region"); }},
      {"too few typed contents",
       [](Message* m) { InputOf(m, 0)->mutable_contents()->mutable_fp32_contents()->RemoveLast(); },
       false},
      {"an unknown type", [](Message* m) { InputOf(m, 0)->set_datatype("FP31"); }},
      {"no type", [](Message* m) { InputOf(m, 0)->clear_datatype(); }},
      {"keys as floats", [](Message* m) { InputOf(m, 1)->set_datatype("FP64"); }},
      {"texts instead of numbers", [](Message* m) { InputOf(m, 0)->set_datatype("BYTES"); }},
      {"an input twice",
       [](Message* m) {
         *m->add_inputs() = m->inputs(0);
         m->add_raw_input_contents(m->raw_input_contents(0));
       }},
      {"an input that the model lacks",
       [](Message* m) {
         m->add_inputs()->set_name("clicks");
         m->add_raw_input_contents("");
       }},
      {"an input without a name", [](Message* m) { InputOf(m, 0)->clear_name(); }},
      {"a name of a megabyte",
       [](Message* m) { InputOf(m, 0)->set_name(std::string(1 << 20, 'x')); }},
      {"100,000 inputs",
       [](Message* m) {
         m->clear_raw_input_contents();
         for (int i = 0; i < 100'000; ++i) m->add_inputs();
       }},
      {"100,000 outputs",
       [](Message* m) {
         for (int i = 0; i < 100'000; ++i) m->add_outputs();
       }},
      {"an unknown output", [](Message* m) { m->add_outputs()->set_name("x"); }},
      {"not a number",
       [](Message* m) {
         *m->mutable_raw_input_contents(0) = Floats({NAN, 1, 2, 3});
       }},
      {"an infinite number",
       [](Message* m) {
         *m->mutable_raw_input_contents(0) = Floats({1, 2, 3, -INFINITY});
       }},
      {"offsets that fall",
       [](Message* m) {
         *m->mutable_raw_input_contents(2) = Offsets({0, 3, 1, 3, 4});
       }},
      {"offsets that start late",
       [](Message* m) {
         *m->mutable_raw_input_contents(2) = Offsets({1, 1, 3, 3, 4});
       }},
      {"negative offsets",
       [](Message* m) {
         *m->mutable_raw_input_contents(2) = Offsets({0, -1, 3, 3, 4});
       }},
      {"offsets beyond the keys",
       [](Message* m) {
         *m->mutable_raw_input_contents(2) = Offsets({0, 1, 3, 3, INT32_MAX});
       }},
      {"offsets that leave keys out",
       [](Message* m) {
         *m->mutable_raw_input_contents(2) = Offsets({0, 1, 1, 1, 1});
       }},
      {"text without a recipe",
       [](Message* m) {
         m->clear_inputs();
         m->clear_raw_input_contents();
         auto* text = m->add_inputs();
         text->set_name("text");
         text->set_datatype("BYTES");
         text->add_shape(1);
         m->add_raw_input_contents(std::string("\xff\xff\xff\xff", 4));
       }},
      {"more samples than the limit",
       [](Message* m) {
         SetShape(m, 0, {101, 2});
         *m->mutable_raw_input_contents(0) = Floats(std::vector<float>(202));
       }},
      {"another model", [](Message* m) { m->set_model_name("adz"); }, true,
       grpc::StatusCode::NOT_FOUND},
      {"no model", [](Message* m) { m->clear_model_name(); }, true, grpc::StatusCode::NOT_FOUND},
      {"another version", [](Message* m) { m->set_model_version("8"); }, true,
       grpc::StatusCode::NOT_FOUND},
      {"a version below zero", [](Message* m) { m->set_model_version("-7"); }, true,
       grpc::StatusCode::NOT_FOUND},
      {"a version and blanks", [](Message* m) { m->set_model_version(" 7"); }, true,
       grpc::StatusCode::NOT_FOUND},
  };
  return lies;
}

TEST_F(HostileGrpcTest, LiesOverGrpcAreRefused) {
  Start();
  for (const GrpcLie& lie : GrpcLies()) {
    Message message = GrpcRequest(lie.raw);
    lie.tell(&message);
    const int before = predictor_.predicted();
    inference::ModelInferResponse response;
    const grpc::Status status = Infer(message, &response);
    EXPECT_EQ(status.error_code(), lie.code) << lie.what << ": " << status.error_message();
    EXPECT_GT(status.error_message().size(), 10u) << lie.what;
    EXPECT_LT(status.error_message().size(), 1000u) << lie.what;
    EXPECT_EQ(predictor_.predicted(), before) << lie.what;
  }
  ExpectServes("lies over gRPC");
}

TEST_F(HostileGrpcTest, BytesThatAreNoMessageAreRefused) {
  Start();
  const std::string good = GrpcRequest(true).SerializeAsString();
  std::string not_utf8 = good;
  not_utf8[2] = '\xff';  // in the model's name
  std::map<std::string, std::string> cases = {
      {"no message", std::string("\xff\xff\xff\xff", 4)},
      {"a length beyond the end", std::string("\x2a\xff\xff\xff\xff\x07", 6)},
      {"a varint without end", std::string(20, '\xff')},
      {"groups", std::string(5000, '\x0b')},
      {"a name that is not UTF-8", not_utf8},
      {"nothing", ""}};
  for (const auto& [what, bytes] : cases) {
    const grpc::Status status = InferBytes(bytes);
    EXPECT_TRUE(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT ||
                status.error_code() == grpc::StatusCode::NOT_FOUND)
        << what << ": " << status.error_code() << " " << status.error_message();
  }
  EXPECT_EQ(predictor_.predicted(), 0);
  for (size_t end = 1; end < good.size(); end += 3) InferBytes(good.substr(0, end));
  ExpectServes("bytes that are no message");
}

}  // namespace
}  // namespace cistern::serve
