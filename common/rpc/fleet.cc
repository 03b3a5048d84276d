#include "common/rpc/fleet.h"

#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "common/base/host_address.h"
#include "common/rpc/channel_security.h"

namespace cistern {
namespace {

absl::Status BadServers(absl::string_view why) {
  return WithOptions(absl::InvalidArgumentError(absl::StrCat(
                         "the list of servers: ", why,
                         "; write host:port,host:port, e.g. 127.0.0.1:7700,127.0.0.1:7701")),
                     {"servers"});
}

}  // namespace

std::vector<ServerLink> Fleet::links() const {
  std::vector<ServerLink> links;
  for (const auto& server : servers_) links.push_back(server->link());
  return links;
}

absl::StatusOr<std::unique_ptr<Fleet>> ConnectFleet(const std::string& servers,
                                                    const RemoteOptions& options) {
  RemoteOptions remote = options;
  CISTERN_ASSIGN_OR_RETURN(remote.security, SecureChannels(options.tls));
  std::vector<std::unique_ptr<RemoteServer>> made;
  std::set<std::string> seen;
  for (absl::string_view part : absl::StrSplit(servers, ',')) {
    const std::string address(absl::StripAsciiWhitespace(part));
    if (address.empty()) {
      return BadServers(absl::StrCat("'", servers, "' contains an empty address"));
    }
    const absl::StatusOr<HostPort> place = ParseHostPort(address);
    if (!place.ok()) return BadServers(place.status().message());
    const std::string written = HostPortText(place->host, place->port);
    if (!seen.insert(written).second) {
      return BadServers(absl::StrCat("'", address, "' is named twice"));
    }
    made.push_back(RemoteServer::Create(written, remote));
  }
  return std::make_unique<Fleet>(std::move(made));
}

}  // namespace cistern
