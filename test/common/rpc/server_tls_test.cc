// A server behind TLS: who gets in, what each role may do, and what is written down about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "common/rpc/channel_security.h"
#include "common/rpc/fleet.h"
#include "common/tls/openssl.h"
#include "common/tls/tls_probe.h"
#include "test/common/rpc/loopback.h"
#include "test/support/certificates.h"

namespace cistern {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ServerTlsTest : public testing::Test {
 protected:
  ServerTlsTest() {
    options_.tls = authority_.Issue("server", {Role::kServer});
    options_.audit_log = folder_ / "audit.jsonl";
    options_.refused = [this](absl::string_view method, const absl::Status& status) {
      EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
      EXPECT_THAT(CallPeer::Current(), HasSubstr("ipv4:127.0.0.1"));
      absl::MutexLock lock(&mutex_);
      refused_.emplace_back(method);
    };
    data_.answer = [](FrameKind, const Frame&, absl::Duration, const DataPlane::Done& done) {
      done(absl::OutOfRangeError("reached"));
    };
    absl::StatusOr<std::unique_ptr<ServerHost>> host =
        ServerHost::Start("127.0.0.1", 0, &control_, &data_, options_);
    EXPECT_TRUE(host.ok()) << host.status();
    host_ = *std::move(host);
  }

  std::unique_ptr<RemoteServer> Connect(const TlsFiles& files,
                                        absl::Duration timeout = absl::Seconds(20)) {
    RemoteOptions options;
    options.call_timeout = timeout;
    absl::StatusOr<std::shared_ptr<const ChannelSecurity>> security = SecureChannels(files);
    EXPECT_TRUE(security.ok()) << security.status();
    options.security = *security;
    return RemoteServer::Create(absl::StrCat("127.0.0.1:", host_->port()), options);
  }
  static absl::Status Hello(RemoteServer& server, std::string* who = nullptr) {
    v1::HelloRequest request;
    request.set_client("who");
    v1::HelloReply reply;
    const absl::Status status = server.Hello(request, &reply);
    if (who != nullptr) *who = reply.cluster();
    return status;
  }
  // The code of a call of each kind: Hello, Meet, Clear.
  std::vector<absl::StatusCode> Codes(RemoteServer& server) {
    v1::MeetReply met;
    v1::PassReply cleared;
    return {Hello(server).code(), server.Meet({}, &met).code(), server.Clear({}, &cleared).code()};
  }
  // A figure of the host's page.
  uint64_t Figure(absl::string_view name) const {
    const std::string page = host_->MetricsText(),
                      line = absl::StrCat("\ncistern_server_", name, " ");
    const size_t found = page.find(line);
    EXPECT_NE(found, std::string::npos) << page;
    return std::strtoull(page.c_str() + found + line.size(), nullptr, 10);
  }
  // Waits until a figure is in [least, most]; returns it.
  uint64_t AwaitFigure(absl::string_view name, uint64_t least, uint64_t most) const {
    const absl::Time end = absl::Now() + absl::Seconds(20);
    uint64_t value = Figure(name);
    while ((value < least || value > most) && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(10));
      value = Figure(name);
    }
    return value;
  }
  std::vector<nlohmann::json> AuditLines() const {
    std::vector<nlohmann::json> lines;
    std::ifstream file(options_.audit_log);
    for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  const TestAuthority authority_;
  TempFolder folder_;
  HostOptions options_;
  NamingControl control_;
  ScriptedData data_;
  std::unique_ptr<ServerHost> host_;
  absl::Mutex mutex_;
  std::vector<std::string> refused_ ABSL_GUARDED_BY(mutex_);
};

constexpr auto kOk = absl::StatusCode::kOk;
constexpr auto kDenied = absl::StatusCode::kPermissionDenied;
// What the planes answer to calls that reach them.
constexpr auto kReached = absl::StatusCode::kOutOfRange;
constexpr auto kMet = absl::StatusCode::kInvalidArgument, kCleared = absl::StatusCode::kInternal;

TEST_F(ServerTlsTest, EachRoleMayDoWhatItNeeds) {
  const auto codes = [&](Role role) {
    return Codes(*Connect(authority_.Issue(std::string(NameOf(role)), {role})));
  };
  EXPECT_THAT(codes(Role::kServer), ElementsAre(kDenied, kDenied, kDenied));
  EXPECT_THAT(codes(Role::kReader), ElementsAre(kOk, kDenied, kDenied));
  EXPECT_THAT(codes(Role::kWorker), ElementsAre(kOk, kMet, kDenied));
  EXPECT_THAT(codes(Role::kAdmin), ElementsAre(kOk, kMet, kCleared));
  EXPECT_THAT(Codes(*Connect(authority_.Issue("other", {Role::kAdmin}, "another-cluster"))),
              ElementsAre(kDenied, kDenied, kDenied));
  EXPECT_THAT(Codes(*Connect(authority_.Issue("all", {Role::kAdmin}, "*"))),
              ElementsAre(kOk, kMet, kCleared));
}

TEST_F(ServerTlsTest, DataCallsNeedRolesToo) {
  const auto call = [&](Role role, FrameKind kind) {
    const std::unique_ptr<RemoteServer> server =
        Connect(authority_.Issue(std::string(NameOf(role)), {role}));
    absl::Notification done;
    absl::Status status;
    server->Call(kind, DenseFrame(kind, 2, true), absl::Seconds(20),
                 [&](const absl::StatusOr<Frame>& reply) {
                   status = reply.status();
                   done.Notify();
                 });
    done.WaitForNotification();
    return status.code();
  };
  for (const FrameKind kind : {FrameKind::kPull, FrameKind::kPullDense, FrameKind::kScan}) {
    EXPECT_EQ(call(Role::kReader, kind), kReached) << FrameKindName(kind);
    EXPECT_EQ(call(Role::kServer, kind), kDenied) << FrameKindName(kind);
  }
  for (const FrameKind kind : {FrameKind::kPush, FrameKind::kPushDense}) {
    EXPECT_EQ(call(Role::kReader, kind), kDenied) << FrameKindName(kind);
    EXPECT_EQ(call(Role::kWorker, kind), kReached) << FrameKindName(kind);
  }
}

TEST_F(ServerTlsTest, ARefusalNamesWhoWhatAndTheMissingRole) {
  v1::PassReply reply;
  const absl::Status status = Connect(authority_.Issue("bob", {Role::kReader}))->Clear({}, &reply);
  EXPECT_THAT(std::string(status.message()), HasSubstr("Clear needs the role admin"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("'bob' gives reader"));
  EXPECT_THAT(OptionsOf(status), ElementsAre("certs.issue.role=admin"));
  absl::MutexLock lock(&mutex_);
  EXPECT_THAT(refused_, ElementsAre("Clear"));
}

TEST_F(ServerTlsTest, CallersAreNamedAndTheirChangesWrittenDown) {
  const std::unique_ptr<RemoteServer> server = Connect(authority_.Issue("ops", {Role::kAdmin}));
  std::string who;
  EXPECT_TRUE(Hello(*server, &who).ok());
  EXPECT_THAT(who, HasSubstr("'ops' at ipv4:127.0.0.1"));
  v1::SaveRequest save;
  save.set_name("monday");
  save.mutable_identity()->set_epoch(7);
  save.mutable_identity()->set_secret(4711);
  v1::SaveReply saved;
  EXPECT_TRUE(absl::IsResourceExhausted(server->Save(save, &saved)));
  v1::PassReply cleared;
  Connect(authority_.Issue("bob", {Role::kReader}))->Clear({}, &cleared).IgnoreError();
  const std::vector<nlohmann::json> lines = AuditLines();
  ASSERT_EQ(lines.size(), 2u);  // Hello only reads
  EXPECT_EQ(lines[0]["caller"], "ops");
  EXPECT_EQ(lines[0]["roles"], "admin");
  EXPECT_EQ(lines[0]["method"], "Save");
  EXPECT_EQ(lines[0]["request"], nlohmann::json({{"term", 7}, {"name", "monday"}}));
  EXPECT_EQ(lines[0]["outcome"], "RESOURCE_EXHAUSTED");
  EXPECT_EQ(lines[1]["caller"], "bob");
  EXPECT_EQ(lines[1]["outcome"], "PERMISSION_DENIED");
  EXPECT_THAT(lines[0].dump(), testing::Not(HasSubstr("4711")));
}

TEST_F(ServerTlsTest, StrangersDoNotGetIn) {
  const auto expect_out = [&](const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                              const char* what) {
    RemoteOptions options;
    options.call_timeout = absl::Seconds(2);
    if (credentials != nullptr) {
      options.security = std::make_shared<const ChannelSecurity>(ChannelSecurity{credentials});
    }
    const std::unique_ptr<RemoteServer> server =
        RemoteServer::Create(absl::StrCat("127.0.0.1:", host_->port()), options);
    const absl::Status status = Hello(*server);
    EXPECT_TRUE(absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status))
        << what << ": " << status;
  };
  const auto ssl = [&](const TlsFiles& own) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = authority_.pair().cert;
    const absl::StatusOr<TlsPem> pem = ReadTls(own);
    EXPECT_TRUE(pem.ok()) << pem.status();
    options.pem_cert_chain = pem->cert;
    options.pem_private_key = pem->key;
    return grpc::SslCredentials(options);
  };
  const TestAuthority stranger;
  expect_out(nullptr, "plain text");
  expect_out(ssl({}), "no certificate");
  expect_out(ssl(stranger.Issue("admin", {Role::kAdmin})), "another authority");
  expect_out(ssl(authority_.IssueExpired("expired", {Role::kAdmin})), "expired");
  EXPECT_EQ(control_.hellos(), 0);
  // They are counted, once their connections are closed.
  EXPECT_GE(AwaitFigure("connections_without_call_total", 4, UINT64_MAX), 4u);
  const auto reader = Connect(authority_.Issue("reader", {Role::kReader}));
  EXPECT_TRUE(Hello(*reader).ok());
  EXPECT_EQ(AwaitFigure("connections", 1, 1), 1u);  // theirs are closed
}

// Behind TLS the same as in plain text (connection_test.cc).
TEST_F(ServerTlsTest, ClosesConnectionsWhoseHeadersDoNotEnd) {
  signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to the socket that the server has closed
  const TlsPem own = *ReadTls(authority_.Issue("reader", {Role::kReader}));
  const OpenSslPtr<SSL_CTX> context(SSL_CTX_new(TLS_client_method()));
  static const unsigned char kH2[] = {2, 'h', '2'};
  SSL_CTX_set_alpn_protos(context.get(), kH2, sizeof(kH2));
  SSL_CTX_use_certificate(context.get(), ReadCertificate(own.cert).get());
  SSL_CTX_use_PrivateKey(context.get(), ReadKey(own.key).get());
  const OpenSslPtr<SSL> ssl(SSL_new(context.get()));
  const OpenSslPtr<BIO> server(BIO_new_connect(absl::StrCat("127.0.0.1:", host_->port()).c_str()));
  ASSERT_EQ(BIO_do_connect(server.get()), 1);
  BIO_up_ref(server.get());
  SSL_set_bio(ssl.get(), server.get(), server.get());
  ASSERT_EQ(SSL_connect(ssl.get()), 1) << OpenSslError();
  // HEADERS without END_HEADERS, then CONTINUATIONs.
  std::string bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string("\0\0\0\4\0\0\0\0\0", 9) +
                      std::string("\0\0\5\1\0\0\0\0\1\x40\1x\1y", 14);
  size_t sent = 0;
  constexpr size_t kMost = 64 << 20;
  while (sent < kMost && SSL_write(ssl.get(), bytes.data(), static_cast<int>(bytes.size())) > 0) {
    sent += bytes.size();
    bytes = std::string("\0\x3e\x80\x9\0\0\0\0\1", 9) + std::string(16000, '\xbe');
  }
  EXPECT_LT(sent, kMost / 2);
  EXPECT_TRUE(Hello(*Connect(authority_.Issue("other", {Role::kReader}))).ok());
}

TEST_F(ServerTlsTest, AClientRefusesServersThatAreNoneOfItsFleet) {
  const auto outcome = [&](const TlsFiles& of_server) {
    HostOptions options = options_;
    options.tls = of_server;
    options.audit_log = "";
    host_ = nullptr;
    host_ = *ServerHost::Start("127.0.0.1", 0, &control_, &data_, options);
    return Hello(*Connect(authority_.Issue("reader", {Role::kReader}), absl::Seconds(2)));
  };
  EXPECT_TRUE(outcome(authority_.Issue("server", {Role::kServer})).ok());
  EXPECT_FALSE(outcome(TestAuthority().Issue("server", {Role::kServer})).ok());
  EXPECT_FALSE(outcome(authority_.Issue("elsewhere", {Role::kServer}, "cistern", absl::Hours(1),
                                        {"10.9.8.7"}))
                   .ok());
  // A worker's certificate does not make its holder a server.
  EXPECT_FALSE(outcome(authority_.Issue("worker", {Role::kWorker})).ok());
}

TEST_F(ServerTlsTest, AProbeSaysWhyTheyDoNotAcceptEachOther) {
  const auto probe = [&](const TlsFiles& files) {
    return ProbeTls({"127.0.0.1", static_cast<uint16_t>(host_->port())}, files, absl::Seconds(5));
  };
  const TlsFiles reader = authority_.Issue("reader", {Role::kReader});
  EXPECT_TRUE(probe(reader).ok()) << probe(reader);
  const auto expect = [](const absl::Status& status, absl::StatusCode code, const char* words) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
    EXPECT_FALSE(FixOf(status).empty());
  };
  expect(probe({}), absl::StatusCode::kFailedPrecondition, "the server requires TLS");
  const TestAuthority other;
  const TlsFiles foreign = other.Issue("reader", {Role::kReader});
  expect(probe(foreign), kDenied, "the server's certificate is not accepted");
  expect(probe({foreign.cert, foreign.key, reader.ca}), kDenied,
         "the server does not accept this program's certificate");
  expect(probe(authority_.IssueExpired("expired", {Role::kReader})), kDenied,
         "the server does not accept this program's certificate");
  HostOptions elsewhere;
  elsewhere.tls =
      authority_.Issue("elsewhere", {Role::kServer}, "cistern", absl::Hours(1), {"10.9.8.7"});
  host_ = *ServerHost::Start("127.0.0.1", 0, &control_, &data_, elsewhere);
  expect(probe(reader), kDenied, "does not name this host");
  Loopback plain;
  expect(
      ProbeTls({"127.0.0.1", static_cast<uint16_t>(plain.host->port())}, reader, absl::Seconds(5)),
      absl::StatusCode::kFailedPrecondition, "plain text");
  EXPECT_TRUE(ProbeTls({"127.0.0.1", 1}, reader, absl::Seconds(5)).ok());
}

TEST_F(ServerTlsTest, RenewedFilesServeNewConnections) {
  const TlsFiles reader = authority_.Issue("reader", {Role::kReader});
  EXPECT_TRUE(Hello(*Connect(reader)).ok());
  const TestAuthority next;
  // Both authorities are trusted while certificates are exchanged one by one.
  WriteBytes(options_.tls.ca, authority_.pair().cert + next.pair().cert);
  const TlsFiles of_next = next.Issue("reader", {Role::kReader});
  WriteBytes(of_next.ca, next.pair().cert + authority_.pair().cert);
  const std::unique_ptr<RemoteServer> server = Connect(of_next);
  absl::Status status;
  for (int i = 0; i < 100 && !(status = Hello(*server)).ok(); ++i) {
    absl::SleepFor(absl::Milliseconds(100));
  }
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(ServerTlsTest, AFleetNeedsCertificatesThatCanBeUsed) {
  RemoteOptions options;
  options.tls = authority_.Issue("reader", {Role::kReader});
  absl::StatusOr<std::unique_ptr<Fleet>> fleet =
      ConnectFleet(absl::StrCat("127.0.0.1:", host_->port()), options);
  ASSERT_TRUE(fleet.ok()) << fleet.status();
  v1::HelloReply reply;
  EXPECT_TRUE((*fleet)->links()[0].control->Hello({}, &reply).ok());
  options.tls.ca = "";
  EXPECT_TRUE(absl::IsInvalidArgument(ConnectFleet("127.0.0.1:1", options).status()));
  HostOptions broken = options_;
  broken.tls.key = authority_.Issue("x", {Role::kServer}).key;
  EXPECT_TRUE(absl::IsInvalidArgument(
      ServerHost::Start("127.0.0.1", 0, &control_, &data_, broken).status()));
}

}  // namespace
}  // namespace cistern
