// Requests that lie over HTTP, on real sockets: each is refused with a reason, none is predicted,
// and the next honest request is answered.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "test/serve/server/server_fixture.h"

namespace cistern::serve {
namespace {

class HostileHttpTest : public ServerFixture {};

struct HttpLie {
  const char* what;
  std::string sent;
  std::vector<int> statuses = {400};  // 0: the connection ends without an answer
};

std::string PostLie(const std::string& body, const std::string& headers = "") {
  return HttpClient::PostText(kInfer, body, headers);
}
// kBody with a part replaced.
std::string With(const std::string& from, const std::string& to) {
  std::string body = kBody;
  const size_t at = body.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return body.replace(at, from.size(), to);
}
std::string Raw(const std::string& headers, const std::string& body) {
  return absl::StrCat("POST ", kInfer, " HTTP/1.1\r\nHost: x\r\n", headers, "\r\n", body);
}

std::vector<HttpLie> HttpLies() {
  const std::string body = kBody, length = absl::StrCat("Content-Length: ", body.size(), "\r\n");
  const std::string json = "Inference-Header-Content-Length: ";
  const std::string open(200'000, '['), objects = [] {
    std::string text;
    for (int i = 0; i < 50'000; ++i) text += "{\"a\":";
    return text;
  }();
  const std::string parameters = With(
      "{\"id\"", "{\"parameters\":{\"x\":" + objects + "1" + std::string(50'000, '}') + "},\"id\"");
  return {
      {"no JSON", PostLie("hello")},
      {"JSON that ends early", PostLie(body.substr(0, body.size() / 2))},
      {"JSON and more", PostLie(body + "x")},
      {"two requests in a body", PostLie(body + body)},
      {"a list", PostLie("[]")},
      {"null", PostLie("null")},
      {"deep lists", PostLie(open)},
      {"deep objects", PostLie(objects)},
      {"deep lists as data", PostLie(With("[[0.5,1],[2,3]]", open))},
      {"deep parameters", PostLie(parameters), {200, 400}},
      {"bad UTF-8", PostLie(With("\"42\"", "\"\xff\xfe\""))},
      {"a half of a surrogate", PostLie(With("\"42\"", "\"\\ud800\""))},
      {"a raw control character", PostLie(With("\"42\"", "\"\x01\""))},
      {"inputs twice", PostLie(With("\"id\":\"42\"", "\"inputs\":[]")), {400}},
      {"a member of an input twice",
       PostLie(With("\"name\":\"dense\"", "\"name\":\"wide.keys\",\"name\":\"dense\""))},
      {"a shape twice", PostLie(With("\"shape\":[2,2]", "\"shape\":[2],\"shape\":[2]"))},
      {"data twice", PostLie(With("[[0.5,1],[2,3]]", "[[0.5,1]],\"data\":[[2,3]]"))},
      {"a negative size", PostLie(With("[2,2]", "[-2,-2]"))},
      {"a product of 2^64", PostLie(With("[2,2]", "[4611686018427387904,4]"))},
      {"a size above 64 bits", PostLie(With("[2,2]", "[36893488147419103234,2]"))},
      {"a size that is a fraction", PostLie(With("[2,2]", "[2.0,2]"))},
      {"a number that is too large", PostLie(With("0.5", "1e39"))},
      {"a number beyond all", PostLie(With("0.5", "1e999"))},
      {"NaN", PostLie(With("0.5", "NaN"))},
      {"a key below zero", PostLie(With("[1,2,3,4]", "[1,2,3,-99999999999999999999]"))},
      {"an offset above 32 bits", PostLie(With("[0,1,3,3,4]", "[0,1,3,3,4294967300]"))},
      {"a text as data", PostLie(With("0.5", "\"0.5\""))},
      {"ragged data", PostLie(With("[[0.5,1],[2,3]]", "[[0.5,1,2],[3]]"))},
      {"a wrong type", PostLie(With("FP32", "FP99"))},
      {"shared memory", PostLie(With("\"data\":[[0.5,1],[2,3]]",
                                     "\"parameters\":{\"shared_memory_region\":\"/dev/shm/x\"}"))},
      {"binary bytes that are not there",
       PostLie(With("\"data\":[[0.5,1],[2,3]]", "\"parameters\":{\"binary_data_size\":16}"))},
      {"binary bytes without end",
       PostLie(With("\"data\":[[0.5,1],[2,3]]",
                    "\"parameters\":{\"binary_data_size\":18446744073709551615}"))},
      {"JSON longer than the body", PostLie(body, json + "99999999\r\n")},
      {"JSON shorter than itself", PostLie(body, json + "10\r\n")},
      {"JSON of no bytes", PostLie(body, json + "0\r\n")},
      {"JSON below zero", PostLie(body, json + "-5\r\n")},
      {"JSON of 2^64 bytes", PostLie(body, json + "18446744073709551616\r\n")},
      {"JSON of a word", PostLie(body, json + "many\r\n")},
      {"two lengths of JSON",
       PostLie(body, absl::StrCat(json, body.size(), "\r\n", json, "5\r\n"))},
      {"two lengths", Raw(length + "Content-Length: 5\r\n", body), {400, 0}},
      {"length and chunks", Raw(length + "Transfer-Encoding: chunked\r\n", body), {400, 0}},
      {"a length below zero", Raw("Content-Length: -1\r\n", ""), {400, 0}},
      {"a length of 2^64", Raw("Content-Length: 18446744073709551616\r\n", ""), {400, 413, 0}},
      {"a length above the limit", Raw("Content-Length: 99999999999\r\n", ""), {413}},
      {"a chunk of no size", Raw("Transfer-Encoding: chunked\r\n", "xyz\r\n"), {400, 0}},
      {"a chunk of 2^64",
       Raw("Transfer-Encoding: chunked\r\n", "10000000000000000\r\n"),
       {400, 413, 0}},
      {"an unknown coding", Raw("Transfer-Encoding: gzip\r\n", ""), {400, 501, 0}},
      {"many headers",
       PostLie(body,
               [] {
                 std::string lines;
                 for (int i = 0; i < 5000; ++i) lines += absl::StrCat("X-", i, ": y\r\n");
                 return lines;
               }()),
       {400, 413, 431, 0}},
      {"a long path",
       "GET /" + std::string(100'000, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n",
       {400, 404, 414, 431, 0}},
      {"a path outside", "GET /v2/../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", {404}},
      {"a model that is not UTF-8",
       "GET /v2/models/%ff%00%0d%0aX:y HTTP/1.1\r\nHost: x\r\n\r\n",
       {400, 404}},
      {"no host", "GET /v2 HTTP/1.1\r\n\r\n", {400}},
      {"another protocol", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400, 404, 405, 505, 0}},
      {"another method", "DELETE /v2/models/ads/infer HTTP/1.1\r\nHost: x\r\n\r\n", {405}},
  };
}

TEST_F(HostileHttpTest, LiesOverHttpAreRefused) {
  Start();
  for (const HttpLie& lie : HttpLies()) {
    const int before = predictor_.predicted();
    HttpClient client(server_->http_port());
    client.Send(lie.sent);
    const absl::Time start = absl::Now();
    const HttpAnswer answer = client.Receive();
    EXPECT_LT(absl::Now() - start, absl::Seconds(5)) << lie.what;
    EXPECT_NE(std::find(lie.statuses.begin(), lie.statuses.end(), answer.status),
              lie.statuses.end())
        << lie.what << ": " << answer.status << " " << answer.body.substr(0, 300);
    EXPECT_LT(answer.body.size(), 2000u) << lie.what;
    const bool ours = answer.headers.count("content-type") != 0 &&
                      absl::StrContains(answer.headers.at("content-type"), "json");
    EXPECT_TRUE(!ours || nlohmann::json::accept(answer.body)) << lie.what << ": " << answer.body;
    EXPECT_EQ(predictor_.predicted(), before + (answer.status == 200 ? 1 : 0)) << lie.what;
  }
  ExpectServes("lies over HTTP");
}

// Chunks without end, of bytes that nobody keeps once they are too many.
TEST_F(HostileHttpTest, AFloodOfChunksEnds) {
  InferenceServerOptions options;
  options.limits.max_message_bytes = 1 << 20;
  Start(options);
  HttpClient client(server_->http_port());
  client.Send(Raw("Transfer-Encoding: chunked\r\n", ""));
  const std::string chunk = absl::StrCat("10000\r\n", std::string(65536, ' '), "\r\n");
  int sent = 0;
  while (sent < 100 && client.Send(chunk)) ++sent;
  client.Send("0\r\n\r\n");
  const HttpAnswer answer = client.Receive();
  EXPECT_TRUE(answer.status == 413 || answer.status == 0) << answer.status;
  HttpClient tiny(server_->http_port());
  tiny.Send(Raw("Transfer-Encoding: chunked\r\n", ""));
  for (int i = 0; i < 20'000; ++i) tiny.Send("1\r\n \r\n");
  tiny.Send("0\r\n\r\n");
  EXPECT_EQ(tiny.Receive().status, 400);
  EXPECT_EQ(predictor_.predicted(), 0);
  ExpectServes("a flood");
}

// Streams that begin and never end, and clients that leave.
TEST_F(HostileHttpTest, HalfOpenCallsDelayNobody) {
  Start();
  std::vector<std::unique_ptr<HttpClient>> stalled;
  for (int i = 0; i < 50; ++i) {
    stalled.push_back(std::make_unique<HttpClient>(server_->http_port()));
    stalled.back()->Send(Raw("Content-Length: 1000\r\n", "{\"inputs\":["));
    // HTTP/2: preface, settings, and the head of a frame of headers.
    stalled.push_back(std::make_unique<HttpClient>(server_->grpc_port()));
    stalled.back()->Send(std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24) +
                         std::string("\0\0\0\4\0\0\0\0\0", 9) +
                         std::string("\0\1\0\1\0\0\0\0\1", 9));
  }
  ExpectServes("half-open calls");
  for (size_t i = 0; i < stalled.size(); i += 2) stalled[i] = nullptr;
  ExpectServes("clients that left");
}

}  // namespace
}  // namespace cistern::serve
