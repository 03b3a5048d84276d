#include "common/rpc/fleet.h"

#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace cistern {
namespace {

absl::Status BadAddress(const std::string& address, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("--servers: '", address, "' ", why,
                   "; write host:port,host:port, e.g. 127.0.0.1:7700,127.0.0.1:7701"));
}

absl::Status CheckAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return BadAddress(address, "has no port");
  const std::string host = address.substr(0, colon);
  if (host.empty()) return BadAddress(address, "has no host");
  const bool bracketed = host.front() == '[' && host.back() == ']';
  if (!bracketed && host.find_first_of(":/[]") != std::string::npos) {
    return BadAddress(address, "is not host:port (an IPv6 host needs brackets)");
  }
  for (unsigned char c : host) {
    if (!absl::ascii_isgraph(c))
      return BadAddress(address, "has a host with a character that is not printable ASCII");
  }
  int port = 0;
  if (!absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 1 || port > 65535) {
    return BadAddress(address, "has a port that is not a number from 1 to 65535");
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<ServerLink> Fleet::links() const {
  std::vector<ServerLink> links;
  for (const auto& server : servers_) links.push_back(server->link());
  return links;
}

absl::StatusOr<std::unique_ptr<Fleet>> ConnectFleet(const std::string& servers,
                                                    const RemoteOptions& options) {
  std::vector<std::unique_ptr<RemoteServer>> made;
  std::set<std::string> seen;
  for (absl::string_view part : absl::StrSplit(servers, ',')) {
    const std::string address(absl::StripAsciiWhitespace(part));
    if (address.empty()) return BadAddress(servers, "contains an empty address");
    CISTERN_RETURN_IF_ERROR(CheckAddress(address));
    if (!seen.insert(address).second) return BadAddress(address, "is named twice");
    made.push_back(RemoteServer::Create(address, options));
  }
  return std::make_unique<Fleet>(std::move(made));
}

}  // namespace cistern
