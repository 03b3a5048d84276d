// A server with a fake predictor on free ports, and its clients.
#pragma once

#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "proto/inference.grpc.pb.h"
#include "serve/server/inference_server.h"
#include "test/serve/server/fake_predictor.h"
#include "test/serve/server/grpc_request.h"
#include "test/serve/server/http_client.h"

namespace cistern::serve {

inline constexpr char kInfer[] = "/v2/models/ads/infer";
inline constexpr char kBody[] = R"({"id":"42","inputs":[
    {"name":"dense","shape":[2,2],"datatype":"FP32","data":[[0.5,1],[2,3]]},
    {"name":"wide.keys","shape":[4],"datatype":"INT64","data":[1,2,3,4]},
    {"name":"wide.offsets","shape":[5],"datatype":"INT32","data":[0,1,3,3,4]},
    {"name":"deep.keys","shape":[3],"datatype":"INT64","data":[5,6,7]},
    {"name":"deep.offsets","shape":[3],"datatype":"INT32","data":[0,1,3]}]})";

class ServerFixture : public testing::Test {
 protected:
  void Start(InferenceServerOptions options = {}) {
    options.http_port = options.grpc_port = 0;
    if (options.threads == 0) options.threads = 2;
    auto server = InferenceServer::Start(predictor_, options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    http_ = std::make_unique<HttpClient>(server_->http_port());
    ASSERT_TRUE(http_->connected());
    channel_ = grpc::CreateChannel(absl::StrCat("127.0.0.1:", server_->grpc_port()),
                                   grpc::InsecureChannelCredentials());
    stub_ = inference::GRPCInferenceService::NewStub(channel_);
  }

  grpc::Status Infer(const inference::ModelInferRequest& request,
                     inference::ModelInferResponse* response,
                     absl::Duration timeout = absl::Seconds(20)) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    return stub_->ModelInfer(&context, request, response);
  }
  grpc::StatusCode InferCode(const inference::ModelInferRequest& request) {
    inference::ModelInferResponse response;
    return Infer(request, &response).error_code();
  }
  bool GrpcReady() {
    grpc::ClientContext context;
    inference::ServerReadyResponse ready;
    EXPECT_TRUE(stub_->ServerReady(&context, {}, &ready).ok());
    return ready.ready();
  }
  // An honest request is answered, over both protocols.
  void ExpectServes(const std::string& after) {
    inference::ModelInferResponse response;
    const grpc::Status status = Infer(GrpcRequest(true), &response);
    EXPECT_TRUE(status.ok()) << after << ": " << status.error_message();
    EXPECT_EQ(HttpClient(server_->http_port()).Post(kInfer, kBody).status, 200) << after;
  }
  std::string Metrics() { return http_->Get("/metrics").body; }

  FakePredictor predictor_;
  std::unique_ptr<InferenceServer> server_;
  std::unique_ptr<HttpClient> http_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
};

}  // namespace cistern::serve
