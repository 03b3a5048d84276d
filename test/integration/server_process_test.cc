// The program cistern-server: start, service, stop and failures.
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include "absl/synchronization/notification.h"
#include "test/integration/server_process.h"
#include "test/support/temp_folder.h"
#include "test/worker/client/embedded_fleet.h"

namespace cistern {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;

// Calls grpc.health.v1.Health/Check for the whole server and returns the status number; 1 =
// SERVING.
int HealthOf(const std::string& address) {
  grpc::GenericStub stub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  grpc::ByteBuffer request, reply;
  grpc::Slice empty;  // HealthCheckRequest with no service name
  request = grpc::ByteBuffer(&empty, 1);
  absl::Notification done;
  grpc::Status status;
  stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::StubOptions(), &request, &reply,
                 [&](grpc::Status s) {
                   status = s;
                   done.Notify();
                 });
  done.WaitForNotification();
  if (!status.ok()) return -1;
  grpc::Slice bytes;
  EXPECT_TRUE(reply.DumpToSingleSlice(&bytes).ok());
  EXPECT_EQ(bytes.size(), 2u);  // HealthCheckResponse{status}: tag 1, varint
  EXPECT_EQ(bytes.begin()[0], 8);
  return bytes.begin()[1];
}

TEST(ServerProcess, PrintsAReadyLineAndAnswersHealthChecks) {
  ServerProcess server(1, 3);
  EXPECT_THAT(server.ready_line(), MatchesRegex("cistern-server rank=1 port=[0-9]+ ready"));
  EXPECT_EQ(HealthOf(server.address()), 1);
}

TEST(ServerProcess, ExitsWithZeroOnSigtermAndSigint) {
  for (const int signal : {SIGTERM, SIGINT}) {
    ServerProcess server(0, 1);
    server.process().Signal(signal);
    EXPECT_EQ(server.ExitCode(), 0);
    EXPECT_THAT(server.process().LogEnd(), HasSubstr("stopped"));
  }
}

TEST(ServerProcess, RefusesAPortThatIsTaken) {
  ServerProcess first(0, 1);
  ServerProcess second(0, 1, first.port());
  EXPECT_EQ(second.ready_line(), "");
  EXPECT_EQ(second.ExitCode(), 1);  // the port may be free at the next start
  EXPECT_THAT(second.process().LogEnd(),
              AllOf(HasSubstr(absl::StrCat("port ", first.port(), " on 127.0.0.1 is taken")),
                    HasSubstr("(--port)")));
}

// A supervisor starts the server again after these.
TEST(ServerProcess, EndsWithOneIfTheCauseMayPass) {
  TempFolder folder;
  ServerProcess holder(0, 1, 0, {"--data_dir=" + folder.path()});
  ASSERT_NE(holder.ready_line(), "");
  struct Case {
    std::vector<std::string> flags;
    std::string message;
  };
  const std::vector<Case> cases = {
      {{"--data_dir=" + folder.path()}, "another process is server 0"},
      {{"--bind=192.0.2.1", "--insecure-remote"}, "no network interface of this machine"},
      {{"--data_dir=/proc/nowhere"}, "/proc/nowhere"},
  };
  for (const Case& c : cases) {
    ServerProcess server(0, 1, 0, c.flags);
    EXPECT_EQ(server.ready_line(), "");
    EXPECT_EQ(server.ExitCode(), 1) << c.flags[0];
    EXPECT_THAT(server.process().LogEnd(), HasSubstr(c.message));
  }
}

TEST(ServerProcess, ListensOnTheLoopbackOfIpv6InAnySpelling) {
  for (const char* bind : {"::1", "[::1]", "0:0:0:0:0:0:0:1"}) {
    ServerProcess server(0, 1, 0, {absl::StrCat("--bind=", bind)});
    if (absl::StrContains(server.process().LogEnd(), "cannot be bound")) GTEST_SKIP();  // no IPv6
    ASSERT_NE(server.ready_line(), "") << bind << ": " << server.process().LogEnd();
    EXPECT_TRUE(ConnectFleet(absl::StrCat("[::1]:", server.port())).ok());
  }
}

TEST(ServerProcess, RefusesBadFlags) {
  struct Case {
    std::vector<std::string> flags;
    std::string message;
  };
  const std::vector<Case> cases = {
      {{"--bind=0.0.0.0"}, "--insecure-remote"},
      {{"--bind=no such host", "--insecure-remote"}, "is neither an address nor"},
      {{"--prot=1"}, "--prot"},
      {{"--shard_num=0"}, "shard_num"},
      {{"--data_dir=/dev/null/a"}, "/dev/null"},
  };
  for (const Case& c : cases) {
    ServerProcess server(0, 1, 0, c.flags);
    EXPECT_EQ(server.ready_line(), "");
    EXPECT_EQ(server.ExitCode(), 2) << c.flags[0];
    EXPECT_THAT(server.process().LogEnd(), HasSubstr(c.message));
  }
  ServerProcess rank(3, 3);
  EXPECT_EQ(rank.ExitCode(), 2);
  EXPECT_THAT(rank.process().LogEnd(), HasSubstr("ranks are 0 to 2"));
}

TEST(ProcessFleet, PassesGiveTheSameRowsOnAnyNumberOfServers) {
  const std::vector<Key> keys = TestKeys(20'000), absent = TestKeys(1000, 3);
  std::vector<float> initial;
  for (uint32_t server_num : {1u, 2u, 3u}) {
    ProcessFleet processes(server_num);
    auto client = Writer(processes.fleet->links());
    const Pulled before = PullKeys(*client, kDeep, absent);
    ASSERT_TRUE(before.status.ok()) << before.status;
    if (initial.empty()) initial = before.values;
    EXPECT_EQ(before.values, initial);
    ASSERT_EQ(CommitKeys(*client, keys), absl::OkStatus());
    const Pulled pulled = PullKeys(*client, kDeep, keys);
    ASSERT_TRUE(pulled.status.ok()) << pulled.status;
    EXPECT_EQ(pulled.values, ValuesOf(keys, client->layout(kDeep).full_floats()));

    std::vector<float> dense(3000, 0.25f), read(3000);
    ASSERT_EQ(client->BeginPass(), absl::OkStatus());
    ASSERT_EQ(client->PushDense(kMlp, dense.data()), absl::OkStatus());
    ASSERT_EQ(client->CommitPass(), absl::OkStatus());
    ASSERT_EQ(client->PullDense(kMlp, read.data()), absl::OkStatus());
    EXPECT_EQ(read, dense);

    size_t rows = 0;
    ASSERT_EQ(client->Scan(kDeep,
                           [&](uint32_t, Key, const float*, bool) {
                             ++rows;
                             return absl::OkStatus();
                           }),
              absl::OkStatus());
    EXPECT_EQ(rows, keys.size());
  }
}

TEST(ProcessFleet, ErrorsKeepTheirCodeAndTextOverTheWire) {
  ProcessFleet processes(1);
  auto client = Writer(processes.fleet->links());
  const Pulled pulled = PullKeys(*client, kDeep, {kReservedKey64});
  EXPECT_EQ(pulled.status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(pulled.status.message()),
              AllOf(HasSubstr(processes.servers[0]->address()), HasSubstr("9223372036854775807")));
  v1::Schema other = TestSchema();
  other.mutable_tables(kDeep)->set_dim(8);
  const absl::Status status = client->CreateTables(other);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("dim is 6 here and 8 there"));
}

TEST(ProcessFleet, ReportsAServerThatIsDownAtTheStart) {
  int port;
  {
    ServerProcess gone(1, 2);
    port = gone.port();
  }
  ServerProcess up(0, 2);
  const std::string down = absl::StrCat("127.0.0.1:", port);
  auto fleet = ConnectFleet(absl::StrCat(up.address(), ",", down)).value();
  ClientOptions options;
  options.retry_limit = absl::Milliseconds(300);
  const absl::Status status = ParameterClient::Connect(fleet->links(), options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(down), HasSubstr("no answer for")));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr(up.address())));
}

TEST(ProcessFleet, ReportsAServerKilledDuringAPassAndItsLostStateAfterRestart) {
  ProcessFleet processes(2);
  ClientOptions options;
  options.retry_limit = absl::Seconds(3);  // longer than the reconnect delay of a connection
  auto client = Writer(processes.fleet->links(), options);
  const std::vector<Key> keys = TestKeys(1000);
  ASSERT_EQ(CommitKeys(*client, keys), absl::OkStatus());

  ASSERT_EQ(client->BeginPass(), absl::OkStatus());
  const int port = processes.servers[1]->port();
  processes.servers[1]->Kill();
  const std::vector<float> values = ValuesOf(keys, client->layout(kDeep).full_floats());
  const std::vector<uint8_t> has_embedx(keys.size(), 1);
  const absl::Status lost = client->Push(kDeep, keys, values.data(), has_embedx.data());
  EXPECT_EQ(lost.code(), absl::StatusCode::kUnavailable) << lost;
  EXPECT_THAT(std::string(lost.message()),
              HasSubstr(absl::StrCat("server 1 (127.0.0.1:", port, ")")));

  // The same server, restarted on its port, has lost its state.
  ServerProcess again(1, 2, port);
  ASSERT_NE(again.ready_line(), "");
  const absl::Status stale = client->CommitPass();
  EXPECT_EQ(stale.code(), absl::StatusCode::kFailedPrecondition) << stale;
  EXPECT_THAT(std::string(stale.message()), HasSubstr("has lost its state"));
  const absl::Status anew = ParameterClient::Connect(processes.fleet->links(), options).status();
  EXPECT_EQ(anew.code(), absl::StatusCode::kFailedPrecondition) << anew;
  EXPECT_THAT(std::string(anew.message()), HasSubstr("restarted and has lost its state"));
}

TEST(ProcessFleet, ASuspendedServerDoesNotBlockCallersForever) {
  RemoteOptions remote;
  remote.call_timeout = absl::Milliseconds(300);
  ProcessFleet processes(2, remote);
  ClientOptions options;
  options.call_timeout = absl::Milliseconds(300);
  options.retry_limit = absl::Milliseconds(200);
  auto client = Writer(processes.fleet->links(), options);
  processes.servers[0]->Freeze();
  const Pulled pulled = PullKeys(*client, kDeep, TestKeys(100));
  EXPECT_EQ(pulled.status.code(), absl::StatusCode::kDeadlineExceeded) << pulled.status;
  EXPECT_THAT(std::string(pulled.status.message()), HasSubstr("server 0"));
  EXPECT_EQ(client->BeginPass().code(), absl::StatusCode::kDeadlineExceeded);
  processes.servers[0]->process().Signal(SIGCONT);
}

TEST(ProcessFleet, SavesAndLoadsOntoAnotherNumberOfServers) {
  const TempFolder folder;
  const std::string data_dir = "--data_dir=" + folder.path();
  const std::vector<Key> keys = TestKeys(5000);
  std::vector<float> dense(3000);
  for (size_t i = 0; i < dense.size(); ++i) dense[i] = 0.1f * static_cast<float>(i);
  Pulled saved;
  for (const uint32_t server_num : {2u, 3u, 1u}) {
    ProcessFleet processes(server_num, {}, {data_dir, "--durability=none"});
    auto client = Connected(processes.fleet->links());
    ASSERT_EQ(client->ClaimTerm(), absl::OkStatus());
    if (server_num == 2) {
      ASSERT_EQ(client->CreateTables(TestSchema()), absl::OkStatus());
      ASSERT_EQ(CommitKeys(*client, keys), absl::OkStatus());
      ASSERT_EQ(client->BeginPass(), absl::OkStatus());
      ASSERT_EQ(client->PushDense(kMlp, dense.data()), absl::OkStatus());
      ASSERT_EQ(client->CommitPass(), absl::OkStatus());
      saved = PullKeys(*client, kDeep, keys);
      v1::SaveRequest save;
      save.set_name("model");
      *save.mutable_identity() = client->identity();
      ASSERT_EQ(client->ForEachServer([&](size_t, ControlPlane& server) {
        v1::SaveReply reply;
        return server.Save(save, &reply);
      }),
                absl::OkStatus());
      continue;
    }
    v1::LoadRequest load;
    load.set_name("model");
    *load.mutable_identity() = client->identity();
    ASSERT_EQ(client->ForEachServer([&](size_t, ControlPlane& server) {
      v1::LoadReply reply;
      return server.Load(load, &reply);
    }),
              absl::OkStatus());
    client = Connected(processes.fleet->links());
    EXPECT_EQ(client->committed_pass(), 2u);
    const Pulled loaded = PullKeys(*client, kDeep, keys);
    EXPECT_EQ(loaded.values, saved.values);
    EXPECT_EQ(loaded.has_embedx, saved.has_embedx);
    std::vector<float> read(3000);
    ASSERT_EQ(client->PullDense(kMlp, read.data()), absl::OkStatus());
    EXPECT_EQ(read, dense);
  }
}

TEST(ProcessFleet, SaveNeedsADataDirAndASafeName) {
  const TempFolder folder;
  const std::string data_dir = "--data_dir=" + folder.path();
  for (const bool with_dir : {false, true}) {
    ProcessFleet processes(
        1, {}, with_dir ? std::vector<std::string>{data_dir} : std::vector<std::string>{});
    auto client = Writer(processes.fleet->links());
    v1::SaveRequest save;
    save.set_name("../outside");
    *save.mutable_identity() = client->identity();
    v1::SaveReply reply;
    const absl::Status status = client->servers()[0].control->Save(save, &reply);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(with_dir ? "cannot be a name" : "data_dir"));
    EXPECT_EQ(status.code(), with_dir ? absl::StatusCode::kInvalidArgument
                                      : absl::StatusCode::kFailedPrecondition);
  }
}

TEST(ConnectFleet, RefusesMalformedAddresses) {
  for (const char* bad :
       {"", "localhost", "localhost:", ":7700", "localhost:0", "localhost:65536", "localhost:77x",
        "a:1,,b:2", "a:1,a:1", "::1:7700", "a b:1", "http://a:1"}) {
    EXPECT_EQ(ConnectFleet(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_EQ(ConnectFleet("a:1, b:2,[::1]:3").value()->links().size(), 3u);
}

}  // namespace
}  // namespace cistern
