// Real sockets on free ports, with a fake predictor. Independent clients: tritonclient_test.py.
#include "serve/server/inference_server.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "test/serve/server/server_fixture.h"
#include "test/support/temp_folder.h"

namespace cistern::serve {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

using InferenceServerTest = ServerFixture;

TEST_F(InferenceServerTest, PredictsOverGrpc) {
  Start();
  for (const bool raw : {true, false}) {
    inference::ModelInferRequest request = GrpcRequest(raw);
    request.set_id("9");
    inference::ModelInferResponse response;
    const grpc::Status status = Infer(request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.model_name(), "ads");
    EXPECT_EQ(response.model_version(), "7");
    EXPECT_EQ(response.id(), "9");
    ASSERT_EQ(response.outputs_size(), 2);
    EXPECT_EQ(response.outputs(0).name(), "probability");
    EXPECT_THAT(response.outputs(0).shape(), ElementsAre(2, 1));
    EXPECT_EQ(response.outputs(1).name(), "commit");
    if (raw) {
      float values[2];
      ASSERT_EQ(response.raw_output_contents(0).size(), sizeof(values));
      std::memcpy(values, response.raw_output_contents(0).data(), sizeof(values));
      EXPECT_THAT(values, ElementsAre(kFirst, kSecond));
    } else {
      EXPECT_THAT(response.outputs(0).contents().fp32_contents(), ElementsAre(kFirst, kSecond));
      EXPECT_THAT(response.outputs(1).contents().int64_contents(), ElementsAre(7));
    }
  }
}

TEST_F(InferenceServerTest, PredictsOverHttp) {
  Start();
  for (const std::string path : {kInfer, "/v2/models/ads/versions/7/infer"}) {
    const HttpAnswer answer = http_->Post(path, kBody);
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.headers.at("content-type"), "application/json");
    const json reply = json::parse(answer.body);
    EXPECT_EQ(reply["model_version"], "7");
    EXPECT_EQ(reply["id"], "42");
    EXPECT_EQ(reply["outputs"][0]["data"][0].get<float>(), kFirst);
    EXPECT_EQ(reply["outputs"][0]["data"][1].get<float>(), kSecond);
    EXPECT_EQ(reply["outputs"][1]["data"], json::parse("[7]"));
  }
}

TEST_F(InferenceServerTest, PredictsHugeCtrRequestsAndNamesUnseenKeys) {
  Start();
  std::vector<InferTensor> tensors = TwoHugeCtrSamples();
  tensors[1] = TensorFrom<int64_t>("CATCOLUMN", "INT64", {1, 7}, {1, 2, 3, 1005, 4, 6, 7});
  inference::ModelInferRequest request = GrpcRequest(false, tensors);
  request.add_outputs()->set_name("OUTPUT0");
  request.add_outputs()->set_name("unseen_keys");
  inference::ModelInferResponse response;
  const grpc::Status status = Infer(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_THAT(response.outputs(0).shape(), ElementsAre(2));
  EXPECT_THAT(response.outputs(0).contents().fp32_contents(),
              ElementsAre(static_cast<float>(1 / 2018.5), kSecond));
  EXPECT_THAT(response.outputs(1).contents().int64_contents(), ElementsAre(1));
}

TEST_F(InferenceServerTest, ChunkedAndPipelinedHttpRequestsAreAnsweredInOrder) {
  Start();
  std::string chunked =
      absl::StrCat("POST ", kInfer, " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string body = kBody;
  for (size_t at = 0; at < body.size(); at += 100) {
    const std::string piece = body.substr(at, 100);
    absl::StrAppend(&chunked, absl::Hex(piece.size()), "\r\n", piece, "\r\n");
  }
  absl::StrAppend(&chunked, "0\r\n\r\n", HttpClient::PostText(kInfer, "{}"),
                  "GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(http_->Send(chunked));
  EXPECT_EQ(http_->Receive().status, 200);
  EXPECT_EQ(http_->Receive().status, 400);
  EXPECT_EQ(http_->Receive().body, "{}");
}

TEST_F(InferenceServerTest, ConnectionsOfACertainAgeAreAskedToEnd) {
  InferenceServerOptions options;
  options.limits.max_connection_age = absl::Seconds(1);
  Start(options);
  ExpectServes("a fresh connection");
  EXPECT_EQ(http_->Get("/v2/health/live").headers.count("connection"), 0u);
  const auto patience = absl::ToChronoTime(absl::Now() + absl::Seconds(20));
  while (channel_->GetState(true) == GRPC_CHANNEL_READY) {
    ASSERT_TRUE(channel_->WaitForStateChange(GRPC_CHANNEL_READY, patience));
  }
  HttpAnswer answer;
  do {
    answer = http_->Get("/v2/health/live");
    ASSERT_EQ(answer.status, 200);
  } while (answer.headers.count("connection") == 0);
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_EQ(http_->Get("/v2/health/live").status, 0);
  ExpectServes("connections that have ended");
}

TEST_F(InferenceServerTest, DescribesItselfAndItsModel) {
  Start();
  EXPECT_EQ(json::parse(http_->Get("/v2").body)["name"], "cistern");
  EXPECT_EQ(http_->Get("/v2/health/live").status, 200);
  EXPECT_EQ(http_->Get("/v2/health/ready").status, 200);
  EXPECT_EQ(http_->Get("/v2/models/ads/ready").status, 200);
  const json model = json::parse(http_->Get("/v2/models/ads/versions/7").body);
  EXPECT_EQ(model["versions"], json::parse(R"(["7"])"));
  EXPECT_EQ(model["inputs"], json::parse(R"([
      {"name":"dense","datatype":"FP32","shape":[-1,2]},
      {"name":"wide.keys","datatype":"INT64","shape":[-1]},
      {"name":"wide.offsets","datatype":"INT32","shape":[-1]},
      {"name":"deep.keys","datatype":"INT64","shape":[-1]},
      {"name":"deep.offsets","datatype":"INT32","shape":[-1]}])"));
  EXPECT_EQ(model["outputs"][0], json::parse(R"(
      {"name":"probability","datatype":"FP32","shape":[-1,1]})"));
  EXPECT_EQ(json::parse(http_->Get("/v2/models/ads/config").body)["input"][0]["data_type"],
            "TYPE_FP32");

  grpc::ClientContext contexts[4];
  inference::ServerReadyResponse ready;
  EXPECT_TRUE(stub_->ServerReady(&contexts[0], {}, &ready).ok());
  EXPECT_TRUE(ready.ready());
  inference::ServerMetadataResponse server;
  EXPECT_TRUE(stub_->ServerMetadata(&contexts[1], {}, &server).ok());
  EXPECT_EQ(server.name(), "cistern");
  inference::ModelMetadataRequest request;
  request.set_name("ads");
  inference::ModelMetadataResponse metadata;
  EXPECT_TRUE(stub_->ModelMetadata(&contexts[2], request, &metadata).ok());
  EXPECT_EQ(metadata.inputs_size(), 5);
  EXPECT_THAT(metadata.versions(), ElementsAre("7"));
  inference::ServerLiveResponse live;
  EXPECT_TRUE(stub_->ServerLive(&contexts[3], {}, &live).ok());
  EXPECT_TRUE(live.live());
}

TEST_F(InferenceServerTest, ServesOneModelAtOneVersion) {
  Start();
  const HttpAnswer model = http_->Post("/v2/models/other/infer", kBody);
  EXPECT_EQ(model.status, 404);
  EXPECT_THAT(model.body, HasSubstr("it serves 'ads'"));
  const HttpAnswer version = http_->Post("/v2/models/ads/versions/6/infer", kBody);
  EXPECT_EQ(version.status, 404);
  EXPECT_THAT(version.body, HasSubstr("serves commit 7"));
  EXPECT_EQ(http_->Get("/v2/models/ads/versions/6/ready").status, 404);
  EXPECT_EQ(http_->Get("/v2/models/other").status, 404);
  EXPECT_EQ(http_->Get("/v2/modules").status, 404);
  const HttpAnswer method = http_->Get(kInfer);
  EXPECT_EQ(method.status, 405);
  EXPECT_EQ(method.headers.at("allow"), "POST");

  inference::ModelInferRequest request = GrpcRequest(true);
  request.set_model_name("other");
  EXPECT_EQ(InferCode(request), grpc::StatusCode::NOT_FOUND);
  request = GrpcRequest(true);
  request.set_model_version("8");
  EXPECT_EQ(InferCode(request), grpc::StatusCode::NOT_FOUND);
  predictor_.set_commit(8);
  inference::ModelInferResponse response;
  ASSERT_TRUE(Infer(request, &response).ok());
  EXPECT_EQ(response.model_version(), "8");
}

TEST_F(InferenceServerTest, ExplainsBadRequests) {
  Start();
  const HttpAnswer answer = http_->Post(kInfer, R"({"inputs":[]})");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(json::parse(answer.body)["error"],
            "input 'dense' is missing; the model's metadata lists its inputs");
  EXPECT_EQ(http_->Post(kInfer, kBody, "Inference-Header-Content-Length: -1\r\n").status, 400);
  EXPECT_EQ(http_->Post(kInfer, kBody, "Content-Encoding: gzip\r\n").status, 415);
  EXPECT_EQ(http_->Post(kInfer, "").status, 400);
  inference::ModelInferRequest request = GrpcRequest(true);
  request.add_outputs()->set_name("clicks");
  EXPECT_EQ(InferCode(request), grpc::StatusCode::INVALID_ARGUMENT);
  request = GrpcRequest(true);
  request.mutable_raw_input_contents(4)->back() = '\x7f';
  EXPECT_EQ(InferCode(request), grpc::StatusCode::INVALID_ARGUMENT);
  predictor_.set_failure(absl::InternalError("torn file"));
  EXPECT_EQ(http_->Post(kInfer, kBody).status, 500);
  EXPECT_EQ(InferCode(GrpcRequest(true)), grpc::StatusCode::INTERNAL);
}

TEST_F(InferenceServerTest, CountsAndLogs) {
  TempFolder folder;
  InferenceServerOptions options;
  options.log.path = folder / "log";
  options.log.share = 0.5;
  Start(options);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(http_->Post(kInfer, kBody).status, 200);
  EXPECT_EQ(InferCode(GrpcRequest(true)), grpc::StatusCode::OK);
  EXPECT_EQ(http_->Post(kInfer, "x").status, 400);
  const std::string metrics = Metrics();
  EXPECT_THAT(metrics, HasSubstr("{protocol=\"http\",method=\"infer\",outcome=\"OK\"} 3\n"));
  EXPECT_THAT(metrics, HasSubstr("{protocol=\"grpc\",method=\"infer\",outcome=\"OK\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("outcome=\"INVALID_ARGUMENT\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("cistern_serve_samples_total 8\n"));
  EXPECT_THAT(metrics, HasSubstr("cistern_serve_keys_total 28\n"));
  server_ = nullptr;
  const std::string log = ReadBytes(folder / "log");
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2);
  const json line = json::parse(log.substr(0, log.find('\n')));
  EXPECT_EQ(line["probability"][1].get<float>(), kSecond);
}

TEST(InferenceServer, ExplainsOptionsThatDoNotFit) {
  FakePredictor predictor;
  InferenceServerOptions options;
  options.http_port = options.grpc_port = kNoPort;
  EXPECT_FALSE(InferenceServer::Start(predictor, options).ok());
  options.http_port = 70000;
  EXPECT_FALSE(InferenceServer::Start(predictor, options).ok());
  options.http_port = 0;
  const auto server = InferenceServer::Start(predictor, options);
  ASSERT_TRUE(server.ok());
  EXPECT_EQ((*server)->grpc_port(), kNoPort);
  options.http_port = (*server)->http_port();
  EXPECT_TRUE(absl::IsFailedPrecondition(InferenceServer::Start(predictor, options).status()));
}

TEST_F(InferenceServerTest, IsLiveButNotReadyWithoutAModel) {
  InferenceServerOptions options;
  options.http_port = options.grpc_port = 0;
  options.threads = 1;
  auto server = InferenceServer::Start(options);
  ASSERT_TRUE(server.ok()) << server.status();
  HttpClient client((*server)->http_port());
  EXPECT_EQ(client.Get("/v2/health/live").status, 200);
  for (const char* const path : {"/v2/health/ready", "/v2/models/ads", "/v2/models/ads/ready"}) {
    const HttpAnswer answer = client.Get(path);
    EXPECT_EQ(answer.status, 503) << path;
    EXPECT_THAT(answer.body, HasSubstr("no model yet"));
  }
  EXPECT_EQ(client.Post(kInfer, kBody).status, 503);
  (*server)->CountFirstOpen(false);
  EXPECT_THAT(client.Get("/metrics").body, HasSubstr("cistern_serve_open_failing 1\n"));
  channel_ = grpc::CreateChannel(absl::StrCat("127.0.0.1:", (*server)->grpc_port()),
                                 grpc::InsecureChannelCredentials());
  stub_ = inference::GRPCInferenceService::NewStub(channel_);
  EXPECT_FALSE(GrpcReady());
  EXPECT_EQ(InferCode(GrpcRequest(true)), grpc::StatusCode::UNAVAILABLE);

  (*server)->CountFirstOpen(true);
  (*server)->Serve(predictor_);
  EXPECT_EQ(client.Get("/v2/health/ready").status, 200);
  EXPECT_EQ(client.Post(kInfer, kBody).status, 200);
  EXPECT_THAT(client.Get("/metrics").body, HasSubstr("cistern_serve_open_failing 0\n"));
  EXPECT_TRUE(GrpcReady());
  EXPECT_EQ(InferCode(GrpcRequest(true)), grpc::StatusCode::OK);
}

TEST_F(InferenceServerTest, AnswersWhileItDrainsButIsNotReady) {
  Start();
  EXPECT_TRUE(GrpcReady());
  server_->BeginDrain();
  EXPECT_EQ(http_->Get("/v2/health/live").status, 200);
  HttpClient client(server_->http_port());  // load balancers have not seen it yet
  const HttpAnswer ready = client.Get("/v2/health/ready");
  EXPECT_EQ(ready.status, 503);
  EXPECT_EQ(ready.headers.at("connection"), "close");
  const HttpAnswer answer = HttpClient(server_->http_port()).Post(kInfer, kBody);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_FALSE(GrpcReady());
  EXPECT_EQ(InferCode(GrpcRequest(true)), grpc::StatusCode::OK);
  EXPECT_THAT(HttpClient(server_->http_port()).Get("/metrics").body,
              HasSubstr("cistern_serve_ready 0\n"));
  EXPECT_TRUE(server_->Stop(absl::Seconds(20)));
}

TEST_F(InferenceServerTest, IsNotReadyOnceItsOwnerStops) {
  std::atomic<bool> stopping{false};
  InferenceServerOptions options;
  options.stopping = &stopping;
  Start(options);
  EXPECT_EQ(http_->Get("/v2/health/ready").status, 200);
  stopping = true;
  const HttpAnswer ready = http_->Get("/v2/health/ready");
  EXPECT_EQ(ready.status, 503);
  EXPECT_EQ(ready.headers.at("connection"), "close");
  EXPECT_EQ(HttpClient(server_->http_port()).Post(kInfer, kBody).status, 200);
}

TEST_F(InferenceServerTest, FollowsTheNameOfTheServedVersion) {
  Start();
  EXPECT_EQ(http_->Post(kInfer, kBody).status, 200);
  predictor_.set_name("bids");
  const HttpAnswer refused = http_->Post(kInfer, kBody);
  EXPECT_EQ(refused.status, 404);
  EXPECT_THAT(refused.body, HasSubstr("it serves 'bids'"));
  EXPECT_EQ(json::parse(http_->Post("/v2/models/bids/infer", kBody).body)["model_name"], "bids");
  predictor_.set_follow_failures(4);
  EXPECT_THAT(Metrics(), HasSubstr("cistern_serve_open_failures_total 4\n"));
}

TEST_F(InferenceServerTest, AnswersWithJsonWhatTheLibraryWouldAnswerWithHtml) {
  Start();
  const auto ask = [this](const std::string& request) {
    HttpClient client(server_->http_port());
    client.Send(request);
    return client.Receive();
  };
  const std::string many(40'000, 'x');
  const std::pair<int, std::string> cases[] = {
      {400, "GET /v2 HTTP/1.1\r\n\r\n"},
      {400, "GET /v2 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"},
      {400, "GET /v2 HTTP/1.1\r\nHost: a b\r\n\r\n"},
      {400, "GET /v2 HTTP/1.1\r\nHost: a/b@c:xx\r\n\r\n"},
      {400, "GET /v2 HTTP/1.1\r\nHost: x:8a\r\n\r\n"},
      {400, "GET /v2 HTTP/1.1\r\nHost: [::1\r\n\r\n"},
      {404, "GET /v2%00x HTTP/1.1\r\nHost: x\r\n\r\n"},
      {431, absl::StrCat("GET /v2 HTTP/1.1\r\nHost: x\r\nX: ", many, "\r\n\r\n")},
      {431, absl::StrCat("GET /v2 HTTP/1.1\r\nHost: x\r\nCookie: a=", many, "\r\n\r\n")},
      {431, absl::StrCat("GET /v2 HTTP/1.1\r\nHost: x\r\nX: ", many, many, "\r\n\r\n")},
      {414, absl::StrCat("GET /v2/", many, " HTTP/1.1\r\nHost: x\r\n\r\n")},
      {414, absl::StrCat("GET /v2?", many, " HTTP/1.1\r\nHost: x\r\n\r\n")},
  };
  for (const auto& [status, request] : cases) {
    const HttpAnswer answer = ask(request);
    EXPECT_EQ(answer.status, status) << request.substr(0, 60);
    // libmicrohttpd 1.0 answers a request without a host itself.
    const bool by_library =
        answer.body.find("&quot;Host:&quot; header required") != std::string::npos;
    EXPECT_TRUE(json::accept(answer.body) || by_library) << answer.body;
  }
  EXPECT_EQ(ask("GET /v2 HTTP/1.0\r\n\r\n").status, 200);
  for (const char* host :
       {"", "x", "x:", "x:8000", "127.0.0.1:1", "[::1]", "[::1]:8000", "a_b.c-d"}) {
    EXPECT_EQ(ask(absl::StrCat("GET /v2 HTTP/1.1\r\nHost: ", host, "\r\n\r\n")).status, 200)
        << host;
  }
  EXPECT_EQ(ask("GET http://proxied/v2/health/ready HTTP/1.1\r\nHost: x\r\n\r\n").status, 200);
  const HttpAnswer options = ask("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(options.status, 204);
  EXPECT_EQ(options.headers.at("allow"), "GET, HEAD, POST, OPTIONS");
}

// Otherwise the server would take the body for another request, which its author could choose.
TEST_F(InferenceServerTest, EndsAConnectionWhoseHeadersHideTheLengthOfTheBody) {
  Start();
  const std::string hidden = "GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n";
  for (const char* header : {"Content-Length : 45", "Content-Length\t: 45",
                             "Transfer-Encoding : chunked", "Content Length: 45"}) {
    HttpClient client(server_->http_port());
    client.Send(
        absl::StrCat("POST ", kInfer, " HTTP/1.1\r\nHost: x\r\n", header, "\r\n\r\n", hidden));
    EXPECT_EQ(client.Receive().status, 400) << header;
    EXPECT_EQ(client.Receive().status, 0) << header;  // closed
  }
}

TEST_F(InferenceServerTest, RefusesForGoodWhatCanNeverFit) {
  InferenceServerOptions options;
  options.limits.memory_bytes = 1 << 20;
  Start(options);
  const std::string body(100'000, ' ');  // 16 times its length is more
  const HttpAnswer answer = http_->Post(kInfer, body);
  EXPECT_EQ(answer.status, 413);
  EXPECT_EQ(answer.headers.count("retry-after"), 0);
  EXPECT_THAT(answer.body, HasSubstr("binary form"));
  EXPECT_EQ(http_->Get("/v2/health/ready").status, 200);  // on the same connection
  const HttpAnswer chunked = [&] {
    HttpClient client(server_->http_port());
    client.Send(absl::StrCat("POST ", kInfer,
                             " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
                             absl::Hex(body.size()), "\r\n", body, "\r\n0\r\n\r\n"));
    return client.Receive();
  }();
  EXPECT_EQ(chunked.status, 413);
  inference::ModelInferRequest typed = GrpcRequest(false);
  for (int i = 0; i < 100'000; ++i)
    typed.mutable_inputs(1)->mutable_contents()->add_int64_contents(1);
  EXPECT_EQ(InferCode(typed), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(Metrics(), HasSubstr("cistern_serve_refused_total 0\n"));  // no overload
}

TEST_F(InferenceServerTest, DoesNotKnowOtherGrpcMethods) {
  Start();
  grpc::GenericStub generic(channel_);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  grpc::ByteBuffer request, reply;
  grpc::Status status;
  const auto call = generic.PrepareUnaryCall(
      &context, "/inference.GRPCInferenceService/ModelStreamInfer", request, &queue);
  call->StartCall();
  call->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(status.error_message(), HasSubstr("ModelStreamInfer"));
  EXPECT_THAT(status.error_message(), HasSubstr("ModelInfer of"));
}

}  // namespace
}  // namespace cistern::serve
