// The time that the protocols add to a prediction: one client, one request at a time, a predictor
// that takes a few microseconds. Client and server share the machine's cores.
#include <benchmark/benchmark.h>
#include <grpcpp/create_channel.h>

#include "proto/inference.grpc.pb.h"
#include "serve/server/inference_server.h"
#include "test/serve/server/fake_predictor.h"
#include "test/serve/server/grpc_request.h"
#include "test/serve/server/http_client.h"

namespace cistern::serve {
namespace {

constexpr size_t kSlots = 26, kDense = 13;

// Candidates of a DeepFM on Criteo's columns.
std::vector<InferTensor> Candidates(size_t samples) {
  std::vector<int64_t> keys(samples * kSlots);
  std::vector<int32_t> offsets(keys.size() + 1);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i * 7919);
  for (size_t i = 0; i < offsets.size(); ++i) offsets[i] = static_cast<int32_t>(i);
  const auto n = static_cast<int64_t>(samples);
  return {
      TensorFrom<float>("dense", "FP32", {n, kDense}, std::vector<float>(samples * kDense, 0.5)),
      TensorFrom<int64_t>("deep.keys", "INT64", {n * static_cast<int64_t>(kSlots)}, keys),
      TensorFrom<int32_t>("deep.offsets", "INT32", {static_cast<int64_t>(offsets.size())},
                          offsets)};
}

PredictorShape Shape() {
  PredictorShape shape;
  shape.dense_dim = kDense;
  shape.inputs = {{"deep", kSlots}};
  return shape;
}

struct Served {
  Served() : predictor(Shape()) {
    InferenceServerOptions options;
    options.http_port = options.grpc_port = 0;
    options.threads = 1;
    server = *InferenceServer::Start(predictor, options);
  }
  FakePredictor predictor;
  std::unique_ptr<InferenceServer> server;
};

void BM_Grpc(benchmark::State& state) {
  Served served;
  const auto stub = inference::GRPCInferenceService::NewStub(grpc::CreateChannel(
      absl::StrCat("127.0.0.1:", served.server->grpc_port()), grpc::InsecureChannelCredentials()));
  const auto request = GrpcRequest(true, Candidates(static_cast<size_t>(state.range(0))));
  for (auto _ : state) {
    grpc::ClientContext context;
    inference::ModelInferResponse response;
    if (!stub->ModelInfer(&context, request, &response).ok()) state.SkipWithError("refused");
  }
}
BENCHMARK(BM_Grpc)->Arg(1)->Arg(100)->UseRealTime()->Unit(benchmark::kMicrosecond);

void RunHttp(benchmark::State& state, const std::string& body, const std::string& headers) {
  Served served;
  HttpClient client(served.server->http_port());
  for (auto _ : state) {
    if (client.Post("/v2/models/ads/infer", body, headers).status != 200) {
      state.SkipWithError("refused");
    }
  }
}

void BM_HttpBinary(benchmark::State& state) {
  std::string json = R"({"parameters":{"binary_data_output":true},"inputs":[)", data;
  for (const InferTensor& tensor : Candidates(static_cast<size_t>(state.range(0)))) {
    absl::StrAppend(&json, data.empty() ? "" : ",", R"({"name":")", tensor.name,
                    R"(","datatype":")", tensor.datatype, R"(","shape":)", ShapeText(tensor.shape),
                    R"(,"parameters":{"binary_data_size":)", tensor.bytes().size(), "}}");
    absl::StrAppend(&data, tensor.bytes());
  }
  json += "]}";
  RunHttp(state, json + data,
          absl::StrCat("Inference-Header-Content-Length: ", json.size(), "\r\n"));
}
BENCHMARK(BM_HttpBinary)->Arg(1)->Arg(100)->UseRealTime()->Unit(benchmark::kMicrosecond);

void BM_HttpJson(benchmark::State& state) {
  const auto samples = static_cast<size_t>(state.range(0));
  const auto list = [](size_t count, const auto& value) {
    std::string text = "[";
    for (size_t i = 0; i < count; ++i) absl::StrAppend(&text, i > 0 ? "," : "", value(i));
    return text + "]";
  };
  const size_t keys = samples * kSlots;
  const std::string body =
      absl::StrCat(R"({"inputs":[{"name":"dense","datatype":"FP32","shape":[)", samples, ",",
                   kDense, R"(],"data":)", list(samples * kDense, [](size_t) { return "0.5"; }),
                   R"(},{"name":"deep.keys","datatype":"INT64","shape":[)", keys, R"(],"data":)",
                   list(keys, [](size_t i) { return i * 7919; }),
                   R"(},{"name":"deep.offsets","datatype":"INT32","shape":[)", keys + 1,
                   R"(],"data":)", list(keys + 1, [](size_t i) { return i; }), "}]}");
  RunHttp(state, body, "");
}
BENCHMARK(BM_HttpJson)->Arg(1)->Arg(100)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace cistern::serve

BENCHMARK_MAIN();
