#include "common/base/host_address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace cistern {
namespace {

bool HasBrackets(absl::string_view host) {
  return host.size() > 1 && host.front() == '[' && host.back() == ']';
}

absl::Status BadAddress(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' ", why));
}

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(absl::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos || HasBrackets(text)) return BadAddress(text, "has no port");
  const absl::string_view host = text.substr(0, colon);
  if (WithoutBrackets(host).empty()) return BadAddress(text, "has no host");
  for (const unsigned char c : host) {
    if (absl::ascii_isgraph(c)) continue;
    return BadAddress(text, "has a host with a character that is not printable ASCII");
  }
  const bool has_colon = absl::StrContains(host, ":");
  if (HasBrackets(host) ? !has_colon : host.find_first_of(":/[]") != absl::string_view::npos) {
    return BadAddress(text, "is not host:port (an IPv6 host, and no other, needs brackets)");
  }
  uint32_t port = 0;
  if (!absl::SimpleAtoi(text.substr(colon + 1), &port) || port < 1 || port > 65535) {
    return BadAddress(text, "has a port that is not a number from 1 to 65535");
  }
  return HostPort{WithoutBrackets(host), static_cast<uint16_t>(port)};
}

std::string WithoutBrackets(absl::string_view host) {
  return std::string(HasBrackets(host) ? host.substr(1, host.size() - 2) : host);
}

std::string HostPortText(absl::string_view host, const absl::AlphaNum& port) {
  const std::string plain = WithoutBrackets(host);
  return absl::StrContains(plain, ":") ? absl::StrCat("[", plain, "]:", port)
                                       : absl::StrCat(plain, ":", port);
}

std::string WhyUnknown(const std::string& host) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int error = getaddrinfo(WithoutBrackets(host).c_str(), nullptr, &hints, &found);
  if (error != 0) return gai_strerror(error);
  freeaddrinfo(found);
  return "";
}

bool MayBeHostName(absl::string_view host) {
  bool has_letter = false;
  for (const unsigned char c : host) {
    if (!absl::ascii_isalnum(c) && c != '-' && c != '_' && c != '.') return false;
    has_letter |= absl::ascii_isalpha(c);
  }
  return has_letter;
}

bool IsLoopback(absl::string_view host) {
  const std::string plain = WithoutBrackets(host);
  if (absl::EqualsIgnoreCase(plain, "localhost")) return true;
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  if (plain.empty() || getaddrinfo(plain.c_str(), nullptr, &hints, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  if (found->ai_family == AF_INET) {
    const auto* address = reinterpret_cast<const sockaddr_in*>(found->ai_addr);
    return ntohl(address->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  if (found->ai_family != AF_INET6) return false;
  const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(found->ai_addr)->sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&address) ||
         (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == IN_LOOPBACKNET);
}

}  // namespace cistern
