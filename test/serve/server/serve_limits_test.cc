// What callers can take, and what they get when they take too much, or the server stops.
#include "serve/server/serve_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "test/serve/server/server_fixture.h"

namespace cistern::serve {
namespace {

using nlohmann::json;
using testing::HasSubstr;

using ServeLimitsTest = ServerFixture;

TEST_F(ServeLimitsTest, BoundsMessagesAndHeaders) {
  InferenceServerOptions options;
  options.limits.max_message_bytes = 1 << 20;
  Start(options);
  inference::ModelInferRequest large = GrpcRequest(true);
  large.mutable_raw_input_contents(0)->resize(2 << 20);
  EXPECT_EQ(InferCode(large), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(InferCode(GrpcRequest(true)), grpc::StatusCode::OK);

  HttpClient announced(server_->http_port());
  announced.Send(absl::StrCat(
      "POST ", kInfer, " HTTP/1.1\r\nHost: x\r\nContent-Length: ", int64_t{1} << 60, "\r\n\r\n"));
  EXPECT_EQ(announced.Receive().status, 413);
  HttpClient chunked(server_->http_port());
  chunked.Send(absl::StrCat("POST ", kInfer,
                            " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n200000\r\n",
                            std::string(2 << 20, '1'), "\r\n0\r\n\r\n"));
  EXPECT_EQ(chunked.Receive().status, 413);
  EXPECT_EQ(chunked.Post(kInfer, kBody).status, 200);  // the body was read and dropped
  HttpClient header(server_->http_port());
  header.Send(absl::StrCat("GET /v2 HTTP/1.1\r\nHost: x\r\nX: ", std::string(1 << 20, 'x')));
  const int status = header.Receive().status;
  EXPECT_TRUE(status == 431 || status == 0) << status;  // 0: reset before the answer was read
  EXPECT_EQ(http_->Post(kInfer, kBody).status, 200);
}

TEST_F(ServeLimitsTest, AnswersBesideClientsThatStall) {
  Start();
  const std::string request = HttpClient::PostText(kInfer, kBody);
  std::vector<std::unique_ptr<HttpClient>> stalled;
  for (size_t i = 0; i < 100; ++i) {
    stalled.push_back(std::make_unique<HttpClient>(server_->http_port()));
    stalled.back()->Send(request.substr(0, i * request.size() / 100));
  }
  for (int i = 0; i < 10; ++i) EXPECT_EQ(http_->Post(kInfer, kBody).status, 200);
  EXPECT_EQ(InferCode(GrpcRequest(true)), grpc::StatusCode::OK);
  stalled[50]->Send(request.substr(50 * request.size() / 100));
  EXPECT_EQ(stalled[50]->Receive().status, 200);
}

TEST_F(ServeLimitsTest, SurvivesGarbageOnItsPorts) {
  Start();
  std::mt19937 random(18);
  const std::string request = HttpClient::PostText(kInfer, kBody, "Connection: close\r\n");
  for (int round = 0; round < 300; ++round) {
    std::string bytes = request;
    for (int change = 0; change < 1 + round % 5; ++change) {
      bytes[random() % (round % 2 == 0 ? 120 : bytes.size())] = static_cast<char>(random());
    }
    HttpClient client(round % 3 == 0 ? server_->grpc_port() : server_->http_port());
    client.Send(bytes);
  }
  EXPECT_EQ(http_->Post(kInfer, kBody).status, 200);
  EXPECT_EQ(InferCode(GrpcRequest(true)), grpc::StatusCode::OK);
}

TEST_F(ServeLimitsTest, RefusesAtOnceUnderOverload) {
  InferenceServerOptions options;
  options.threads = 1;
  options.max_in_flight = 3;
  Start(options);
  predictor_.Hold();
  std::vector<std::unique_ptr<HttpClient>> waiting;
  for (int i = 0; i < 3; ++i) {
    waiting.push_back(std::make_unique<HttpClient>(server_->http_port()));
    waiting.back()->Send(HttpClient::PostText(kInfer, kBody));
  }
  predictor_.AwaitInside(1);
  while (Metrics().find("cistern_serve_in_flight 3\n") == std::string::npos) {
  }
  const absl::Time start = absl::Now();
  const HttpAnswer refused = http_->Post(kInfer, kBody);
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  EXPECT_EQ(InferCode(GrpcRequest(true)), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
  EXPECT_EQ(http_->Get("/v2/health/ready").status, 200);  // answered meanwhile
  EXPECT_THAT(Metrics(), HasSubstr("cistern_serve_refused_total 2\n"));
  predictor_.Release();
  for (const auto& client : waiting) EXPECT_EQ(client->Receive().status, 200);
  EXPECT_EQ(http_->Post(kInfer, kBody).status, 200);
}

TEST_F(ServeLimitsTest, AnswersHealthWhenNoMemoryIsLeft) {
  InferenceServerOptions options;
  options.limits.memory_bytes = 8 << 10;  // less than one request takes
  Start(options);
  const auto answer = [&](const std::string& request) {
    HttpAnswer answered;
    // A sweep may close the connection during the call, so try more than once.
    for (int i = 0; i < 10 && answered.status == 0; ++i) {
      HttpClient client(server_->http_port());
      client.Send(request);
      answered = client.Receive();
    }
    return answered.status;
  };
  EXPECT_EQ(answer(HttpClient::PostText(kInfer, kBody)), 503);
  EXPECT_EQ(answer("GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
  EXPECT_EQ(answer("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
}

TEST_F(ServeLimitsTest, DoesNotComputeWhatNobodyWaitsFor) {
  InferenceServerOptions options;
  options.threads = 1;
  Start(options);
  predictor_.Hold();
  HttpClient first(server_->http_port());
  first.Send(HttpClient::PostText(kInfer, kBody));
  predictor_.AwaitInside(1);
  inference::ModelInferResponse response;
  EXPECT_EQ(Infer(GrpcRequest(true), &response, absl::Milliseconds(50)).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  std::string body = kBody;
  body.insert(1, R"("parameters":{"timeout":1000},)");  // microseconds
  http_->Send(HttpClient::PostText(kInfer, body));
  HttpClient watcher(server_->http_port());
  while (watcher.Get("/metrics").body.find("cistern_serve_in_flight 3\n") == std::string::npos) {
  }
  absl::SleepFor(absl::Milliseconds(5));
  predictor_.Release();
  EXPECT_EQ(first.Receive().status, 200);
  EXPECT_EQ(http_->Receive().status, 504);
  EXPECT_TRUE(server_->Stop(absl::Seconds(20)));
  EXPECT_EQ(predictor_.predicted(), 1);
}

TEST_F(ServeLimitsTest, AnswersWhatIsInFlightWhenItStops) {
  Start();
  predictor_.Hold();
  HttpClient pending(server_->http_port()), idle(server_->http_port());
  pending.Send(HttpClient::PostText(kInfer, kBody));
  grpc::Status grpc_status = grpc::Status::CANCELLED;
  std::thread caller([&] {
    inference::ModelInferResponse response;
    grpc_status = Infer(GrpcRequest(true), &response);
  });
  predictor_.AwaitInside(2);
  EXPECT_FALSE(server_->Stop(absl::Milliseconds(20)));
  // Connections that are open get refusals; there are no new ones.
  EXPECT_EQ(idle.Get("/v2/health/ready").status, 503);
  const HttpAnswer refused = http_->Post(kInfer, kBody);
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.at("connection"), "close");
  EXPECT_FALSE(HttpClient(server_->http_port()).connected());
  predictor_.Release();
  EXPECT_TRUE(server_->Stop(absl::Seconds(20)));
  EXPECT_EQ(pending.Receive().status, 200);
  caller.join();
  EXPECT_TRUE(grpc_status.ok()) << grpc_status.error_message();
}

TEST_F(ServeLimitsTest, AnswersARequestThatIsStillArrivingWhenItStops) {
  Start();
  HttpClient slow(server_->http_port());
  const std::string body = kBody,
                    request = HttpClient::PostText(kInfer, body, "Expect: 100-continue\r\n");
  slow.Send(request.substr(0, request.size() - body.size()));
  ASSERT_EQ(slow.Receive().status, 100);  // the server has read the headers
  std::thread stopping([this] { EXPECT_TRUE(server_->Stop(absl::Seconds(60))); });
  while (HttpClient(server_->http_port()).connected()) {
  }
  slow.Send(body);
  EXPECT_EQ(slow.Receive().status, 200);
  stopping.join();
}

TEST_F(ServeLimitsTest, ManyClientsGetTheirOwnAnswers) {
  Start();
  std::vector<std::thread> clients;
  std::atomic<int> good{0};
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&, c] {
      HttpClient client(server_->http_port());
      for (int i = 0; i < 50; ++i) {
        std::vector<InferTensor> tensors = TwoSamples();
        const int64_t key = c * 100 + i;
        tensors[3] = TensorFrom<int64_t>("deep.keys", "INT64", {3}, {key, 6, 7});
        const auto expected = static_cast<float>(1 / (8.5 + 2.0 * static_cast<double>(key)));
        if (c % 2 == 0) {
          inference::ModelInferResponse response;
          const bool ok = Infer(GrpcRequest(false, tensors), &response).ok();
          good += ok && response.outputs(0).contents().fp32_contents(0) == expected;
        } else {
          std::string body = kBody;
          body.replace(body.find("[5,6,7]"), 7, absl::StrCat("[", key, ",6,7]"));
          const HttpAnswer answer = client.Post(kInfer, body);
          good += answer.status == 200 &&
                  json::parse(answer.body)["outputs"][0]["data"][0].get<float>() == expected;
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(good, 400);
}

}  // namespace
}  // namespace cistern::serve
