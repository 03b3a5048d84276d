#include "common/http/metrics_endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "common/metrics/metric_text.h"
#include "test/serve/server/http_client.h"

namespace cistern {
namespace {

using testing::HasSubstr;

std::unique_ptr<MetricsEndpoint> StartOnPort(std::function<std::string()> page = [] {
  return std::string("x 1\n");
}) {
  MetricsPlace place;
  place.port = 0;
  absl::StatusOr<std::unique_ptr<MetricsEndpoint>> endpoint =
      MetricsEndpoint::Start(place, std::move(page));
  EXPECT_TRUE(endpoint.ok()) << endpoint.status();
  return *std::move(endpoint);
}

std::string GetText(const std::string& path) {
  return absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: x\r\n\r\n");
}

TEST(MetricsEndpoint, AnswersWithThePageOfThatMoment) {
  std::atomic<int> scrapes{0};
  const auto endpoint = StartOnPort([&] { return absl::StrCat("scrapes ", ++scrapes, "\n"); });
  EXPECT_EQ(endpoint->Where(), absl::StrCat("http://127.0.0.1:", endpoint->port(), "/metrics"));
  for (int i = 1; i <= 3; ++i) {
    HttpAnswer answer = HttpClient(endpoint->port()).Get("/metrics");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, absl::StrCat("scrapes ", i, "\n"));
    EXPECT_EQ(answer.headers["content-type"], MetricText::kContentType);
    EXPECT_EQ(answer.headers["connection"], "close");
  }
  EXPECT_EQ(HttpClient(endpoint->port()).Get("/metrics?name=x").status, 200);
  EXPECT_EQ(HttpClient(endpoint->port()).Get("http://proxied:9100/metrics").status, 200);
}

TEST(MetricsEndpoint, RefusesOtherPathsAndMethods) {
  const auto endpoint = StartOnPort();
  const int port = endpoint->port();
  EXPECT_EQ(HttpClient(port).Get("/").status, 404);
  EXPECT_EQ(HttpClient(port).Get("/metrics/../etc/passwd").status, 404);
  EXPECT_EQ(HttpClient(port).Get("/metrics%00.png").status, 404);
  EXPECT_EQ(HttpClient(port).Post("/metrics", "x").status, 405);
  HttpClient huge(port);
  huge.Send("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999999\r\n\r\n");
  EXPECT_EQ(huge.Receive().status, 405);  // without the body
}

// Each of these ends, and an honest scrape afterwards is answered.
TEST(MetricsEndpoint, SurvivesBytesThatAreNoRequest) {
  const auto endpoint = StartOnPort();
  const std::string long_line(10 << 20, 'a');
  std::string headers;
  for (int i = 0; i < 100000; ++i) absl::StrAppend(&headers, "h", i, ": x\r\n");
  for (const std::string& sent :
       {GetText("/" + long_line), "GET /metrics HTTP/1.1\r\n" + headers + "\r\n",
        "GET /metrics HTTP/1.1\r\nHost: " + long_line + "\r\n\r\n", long_line,
        std::string("\0\0\0\0\r\n\r\n", 8), std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 15)}) {
    HttpClient client(endpoint->port());
    client.Send(sent);
    EXPECT_NE(client.Receive().status, 200);
  }
  EXPECT_EQ(HttpClient(endpoint->port()).Get("/metrics").status, 200);
}

// Whoever holds all connections, and sends nothing or a byte now and then, locks nobody out.
TEST(MetricsEndpoint, ServesBesideConnectionsThatNeverAsk) {
  const auto endpoint = StartOnPort();
  std::vector<std::unique_ptr<HttpClient>> idle;
  for (int i = 0; i < 4 * MetricsEndpoint::kMaxConnections; ++i) {
    idle.push_back(std::make_unique<HttpClient>(endpoint->port()));
    ASSERT_TRUE(idle.back()->connected());
    idle.back()->Send("GET /met");
  }
  EXPECT_EQ(HttpClient(endpoint->port()).Get("/metrics").status, 200);
  // The oldest ones were ended for those that came later; the newest one is still open.
  EXPECT_EQ(idle.front()->Receive().status, 0);
  idle.back()->Send("rics HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(idle.back()->Receive().status, 200);
}

TEST(MetricsEndpoint, EndsAConnectionThatTakesTooLong) {
  const auto endpoint = StartOnPort();
  HttpClient slow(endpoint->port());
  slow.Send("GET /met");
  EXPECT_EQ(slow.Receive().status, 0);  // HttpClient itself waits longer, and then fails likewise
  EXPECT_FALSE(slow.Send("rics HTTP/1.1\r\n") && slow.Send("Host: x\r\n\r\n") &&
               slow.Receive().status == 200);
}

TEST(MetricsEndpoint, SaysThatThePageRanOutOfMemory) {
  const auto endpoint = StartOnPort([]() -> std::string { throw std::bad_alloc(); });
  EXPECT_EQ(HttpClient(endpoint->port()).Get("/metrics").status, 503);
}

TEST(MetricsEndpoint, NamesAPortThatIsTaken) {
  const auto first = StartOnPort();
  MetricsPlace place;
  place.port = first->port();
  const auto second = MetricsEndpoint::Start(place, [] { return std::string(); });
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(absl::StrCat(first->port())));
  EXPECT_THAT(OptionsOf(second.status()), testing::ElementsAre("metrics_port"));
}

TEST(MetricsEndpoint, ListensOnTheAddressThatIsNamed) {
  MetricsPlace place;
  place.port = 0;
  place.bind = "127.0.0.2";
  const auto elsewhere = MetricsEndpoint::Start(place, [] { return std::string("elsewhere 1\n"); });
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.status();
  EXPECT_EQ((*elsewhere)->Where(),
            absl::StrCat("http://127.0.0.2:", (*elsewhere)->port(), "/metrics"));
  // The port of 127.0.0.1 is free.
  place = MetricsPlace();
  place.port = (*elsewhere)->port();
  const auto here = MetricsEndpoint::Start(place, [] { return std::string("here 1\n"); });
  ASSERT_TRUE(here.ok()) << here.status();
  EXPECT_EQ(HttpClient((*here)->port()).Get("/metrics").body, "here 1\n");
}

TEST(MetricsEndpoint, NamesAnAddressThatThisMachineLacks) {
  MetricsPlace place;
  place.port = 0;
  place.bind = "192.0.2.1";  // for documentation, RFC 5737
  const auto endpoint = MetricsEndpoint::Start(place, [] { return std::string(); });
  ASSERT_FALSE(endpoint.ok());
  EXPECT_THAT(std::string(endpoint.status().message()), HasSubstr("192.0.2.1"));
  EXPECT_THAT(OptionsOf(endpoint.status()), testing::ElementsAre("metrics_bind"));
}

class MetricsSocketTest : public testing::Test {
 protected:
  MetricsSocketTest() { std::filesystem::create_directories(folder_); }
  ~MetricsSocketTest() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> Start(const std::string& path) {
    MetricsPlace place;
    place.socket = path;
    return MetricsEndpoint::Start(place, [] { return std::string("x 1\n"); });
  }
  // All that a scrape receives.
  static std::string Scrape(const std::string& path) {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    std::string received;
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
      const std::string sent = GetText("/metrics");
      EXPECT_EQ(send(fd, sent.data(), sent.size(), MSG_NOSIGNAL), static_cast<int>(sent.size()));
      char buffer[4096];
      for (ssize_t some; (some = recv(fd, buffer, sizeof(buffer), 0)) > 0;) {
        received.append(buffer, static_cast<size_t>(some));
      }
    }
    close(fd);
    return received;
  }

 private:
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / absl::StrCat("metrics_socket_", getpid());
};

TEST_F(MetricsSocketTest, AnswersAndRemovesItsFile) {
  const std::string path = Path("a.sock");
  {
    const auto endpoint = Start(path);
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    EXPECT_EQ((*endpoint)->port(), 0);
    EXPECT_EQ((*endpoint)->Where(), path);
    EXPECT_THAT(Scrape(path), HasSubstr("\r\n\r\nx 1\n"));
    struct stat file = {};
    ASSERT_EQ(stat(path.c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 0777, 0660u);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(MetricsSocketTest, ReplacesASocketOfAnEndedProcessAndNothingElse) {
  const std::string path = Path("b.sock");
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  close(fd);
  const auto endpoint = Start(path);
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  const auto second = Start(path);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition) << second.status();
  EXPECT_THAT(Scrape(path), HasSubstr("x 1\n"));  // the first one still listens

  std::ofstream(Path("file")) << "precious";
  EXPECT_EQ(Start(Path("file")).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::filesystem::file_size(Path("file")), 8u);
  EXPECT_EQ(Start(Path(std::string(120, 'x'))).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Start(Path("none/a.sock")).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace cistern
