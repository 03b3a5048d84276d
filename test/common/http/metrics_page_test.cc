#include "common/http/metrics_page.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "common/http/metrics_endpoint.h"
#include "test/support/temp_folder.h"

namespace cistern {
namespace {

constexpr absl::Duration kLong = absl::Seconds(30);

// Answers one connection with `bytes`, and closes it; or holds it open until it is destroyed.
class OneAnswer {
 public:
  OneAnswer(std::string bytes, bool closes) : bytes_(std::move(bytes)), closes_(closes) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Answer(); });
  }
  ~OneAnswer() {
    thread_.join();
    if (open_ >= 0) close(open_);
    close(listener_);
  }
  std::string place() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  void Answer() {
    open_ = accept(listener_, nullptr, nullptr);
    char request[4096];
    EXPECT_GT(recv(open_, request, sizeof(request), 0), 0);
    for (size_t sent = 0; sent < bytes_.size();) {
      const ssize_t more = send(open_, bytes_.data() + sent, bytes_.size() - sent, MSG_NOSIGNAL);
      if (more <= 0) break;  // the reader has had enough
      sent += static_cast<size_t>(more);
    }
    if (closes_) {
      close(open_);
      open_ = -1;
    }
  }

  const std::string bytes_;
  const bool closes_;
  int listener_ = -1, open_ = -1;
  uint16_t port_ = 0;
  std::thread thread_;
};

TEST(ReadMetricsPage, ReadsAnEndpointByPortAndBySocket) {
  TempFolder folder;
  MetricsPlace place;
  place.port = 0;
  place.socket = folder.path() + "/metrics.sock";
  const auto endpoint = MetricsEndpoint::Start(place, [] { return std::string("rows 3\n"); });
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  const std::string host = "127.0.0.1:" + std::to_string((*endpoint)->port());
  for (const std::string& where : {host, "http://" + host + "/metrics", place.socket}) {
    const absl::StatusOr<std::string> page = ReadMetricsPage(where, kLong);
    ASSERT_TRUE(page.ok()) << where << ": " << page.status();
    EXPECT_EQ(*page, "rows 3\n");
  }
}

TEST(ReadMetricsPage, RefusesWhatIsNone) {
  using Code = absl::StatusCode;
  const std::string full = "HTTP/1.1 200 OK\r\n\r\n" + std::string((16 << 20) + 1, 'x');
  for (const std::string& answer :
       {std::string("HTTP/1.1 404 Not Found\r\n\r\nno"), std::string("SSH-2.0\r\n"),
        std::string("HTTP/1.1 200 OK\r\n"), std::string(), full}) {
    OneAnswer server(answer, /*closes=*/true);
    const absl::Status read = ReadMetricsPage(server.place(), kLong).status();
    EXPECT_TRUE(read.code() == Code::kFailedPrecondition) << read;
  }
  EXPECT_EQ(ReadMetricsPage("127.0.0.1", kLong).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(ReadMetricsPage("/" + std::string(200, 'x'), kLong).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(ReadMetricsPage("/nowhere/x.sock", kLong).status().code(), Code::kUnavailable);
}

TEST(ReadMetricsPage, DoesNotWaitForEver) {
  OneAnswer silent("HTTP/1.1 200 OK\r\n", /*closes=*/false);
  EXPECT_EQ(ReadMetricsPage(silent.place(), absl::Milliseconds(50)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace cistern
