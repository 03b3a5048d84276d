// A small HTTP client over a plain socket, for tests: it sends exactly the bytes that it is given.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace cistern {

struct HttpAnswer {
  int status = 0;                              // 0: the connection ended without an answer
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// Threads: one at a time.
class HttpClient {
 public:
  explicit HttpClient(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    const timeval patience = {20, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  ~HttpClient() { close(fd_); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  bool connected() const { return connected_; }
  bool Send(const std::string& bytes) {
    size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t some = send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (some <= 0) return false;
      sent += static_cast<size_t>(some);
    }
    return true;
  }

  HttpAnswer Receive() {
    HttpAnswer answer;
    size_t end = std::string::npos;
    while ((end = received_.find("\r\n\r\n")) == std::string::npos) {
      if (!ReadSome()) return answer;
    }
    const std::string head = received_.substr(0, end);
    received_.erase(0, end + 4);
    for (const absl::string_view line : absl::StrSplit(head, "\r\n")) {
      const std::pair<std::string, std::string> parts =
          absl::StrSplit(line, absl::MaxSplits(": ", 1));
      if (answer.status == 0) {
        if (!absl::SimpleAtoi(line.substr(9, 3), &answer.status)) return answer;
      } else {
        answer.headers[absl::AsciiStrToLower(parts.first)] = parts.second;
      }
    }
    size_t length = 0;
    if (!absl::SimpleAtoi(answer.headers["content-length"], &length)) return answer;
    while (received_.size() < length) {
      if (!ReadSome()) return answer;
    }
    answer.body = received_.substr(0, length);
    received_.erase(0, length);
    return answer;
  }

  HttpAnswer Get(const std::string& path) {
    Send(absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: x\r\n\r\n"));
    return Receive();
  }
  // headers: whole lines.
  HttpAnswer Post(const std::string& path, const std::string& body,
                  const std::string& headers = "") {
    Send(PostText(path, body, headers));
    return Receive();
  }
  static std::string PostText(const std::string& path, const std::string& body,
                              const std::string& headers = "") {
    return absl::StrCat("POST ", path, " HTTP/1.1\r\nHost: x\r\n", headers,
                        "Content-Length: ", body.size(), "\r\n\r\n", body);
  }

 private:
  bool ReadSome() {
    char buffer[65536];
    const ssize_t some = recv(fd_, buffer, sizeof(buffer), 0);
    if (some <= 0) return false;
    received_.append(buffer, static_cast<size_t>(some));
    return true;
  }

  const int fd_;
  bool connected_ = false;
  std::string received_;
};

}  // namespace cistern
