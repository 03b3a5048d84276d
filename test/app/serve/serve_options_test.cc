#include "app/serve/serve_options.h"

#include <gmock/gmock.h>

#include <limits>

#include "common/rpc/descriptor_limit.h"

namespace cistern::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ServeOptions, MustBeInTheirRanges) {
  const struct {
    const char* name;
    uint64_t ServeOptions::*member;
    uint64_t min, max;
  } cases[] = {{"port", &ServeOptions::port, 0, 65535},
               {"grpc_port", &ServeOptions::grpc_port, 0, 65535},
               {"max_samples", &ServeOptions::max_samples, 1, 1 << 24},
               {"max_message_mb", &ServeOptions::max_message_mb, 1, 1024},
               {"keep_alive_seconds", &ServeOptions::keep_alive_seconds, 1, 86400},
               {"drain_seconds", &ServeOptions::drain_seconds, 0, 3600},
               {"poll_ms", &ServeOptions::poll_ms, 0, 3600000}};
  for (const auto& one : cases) {
    ServeOptions options;
    for (const uint64_t good : {one.min, one.max}) {
      options.*one.member = good;
      EXPECT_TRUE(CheckServeOptions(options).ok()) << one.name << " " << good;
    }
    std::vector<uint64_t> bad = {one.max + 1, std::numeric_limits<uint64_t>::max()};
    if (one.min > 0) bad.push_back(0);
    for (const uint64_t value : bad) {
      options.*one.member = value;
      const absl::Status status = CheckServeOptions(options);
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << one.name << " " << value;
      EXPECT_THAT(OptionsOf(status), ElementsAre(one.name));
    }
  }
}

TEST(ServeOptions, ProtectWhatOtherMachinesCanReach) {
  ServeOptions options;
  for (const char* near : {"127.0.0.1", "localhost", "::1"}) {
    options.bind = near;
    EXPECT_TRUE(CheckServeOptions(options).ok()) << near;
  }
  options.bind = "0.0.0.0";
  const absl::Status status = CheckServeOptions(options);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(OptionsOf(status), ElementsAre("bind", "tls_cert", "insecure_remote"));
  ServeOptions insecure = options;
  insecure.insecure_remote = true;
  EXPECT_TRUE(CheckServeOptions(insecure).ok());
  ServeOptions with_tls = options;
  with_tls.tls.cert = "server.pem";
  EXPECT_TRUE(CheckServeOptions(with_tls).ok());
  options.bind = "[::1";
  EXPECT_THAT(CheckServeOptions(options).message(), HasSubstr("neither an address nor a host"));
}

TEST(ServeOptions, RefuseAModelsNameThatIsNone) {
  ServeOptions options;
  options.name = "a/b";
  EXPECT_THAT(OptionsOf(CheckServeOptions(options)), ElementsAre("name"));
}

TEST(ServeOptions, TakeNoMoreConnectionsThanFiles) {
  // As many of HTTP as of gRPC.
  const uint64_t most = ConnectionRoom(RaiseDescriptorLimit()) / 2;
  ServeOptions options;
  options.max_connections = most;
  EXPECT_TRUE(ServerOptionsOf(options).ok());
  options.max_connections = most + 1;
  EXPECT_THAT(OptionsOf(ServerOptionsOf(options).status()), ElementsAre("max_connections"));
}

TEST(ServeOptions, ReachTheServerAndThePredictor) {
  ServeOptions options;
  options.folder = "/a/../b";
  options.port = 11;
  options.grpc_port = 12;
  options.threads = 3;
  options.max_in_flight = 4;
  options.max_samples = 5;
  options.max_connections = 6;
  options.max_message_mb = 7;
  options.rpc_memory_mb = 8;
  options.keep_alive_seconds = 9;
  options.max_connection_age_seconds = 10;
  options.poll_ms = 13;
  options.name = "ctr";
  options.log_requests = "requests.jsonl";
  options.log_share = 0.25;
  options.log_max_mb = 14;
  const serve::InferenceServerOptions server = ServerOptionsOf(options).value();
  EXPECT_EQ(server.http_port, 11);
  EXPECT_EQ(server.grpc_port, 12);
  EXPECT_EQ(server.threads, 3);
  EXPECT_EQ(server.max_in_flight, 4u);
  EXPECT_EQ(server.limits.max_connections, 6);
  EXPECT_EQ(server.limits.max_message_bytes, 7u << 20);
  EXPECT_EQ(server.limits.memory_bytes, 8u << 20);
  EXPECT_EQ(server.limits.keep_alive_seconds, 9);
  EXPECT_EQ(server.limits.max_connection_age, absl::Seconds(10));
  EXPECT_EQ(server.log.path, "requests.jsonl");
  EXPECT_EQ(server.log.share, 0.25);
  EXPECT_EQ(server.log.max_bytes, uint64_t{14} << 20);
  EXPECT_EQ(server.log.serving, "/b");
  const serve::PredictorOptions predictor = PredictorOptionsOf(options);
  EXPECT_EQ(predictor.threads, 3);
  EXPECT_EQ(predictor.max_samples, 5u);
  EXPECT_EQ(predictor.poll_ms, 13);
  EXPECT_EQ(predictor.name, "ctr");
}

}  // namespace
}  // namespace cistern::app
