#include "app/fleet/fleet_files.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "server/checkpoint/state_folder.h"

namespace cistern::app {
namespace {

absl::StatusOr<v1::ReadStateReply> ReadState(const ServerLink& server, const v1::Identity& identity,
                                             const std::string& name, uint64_t offset,
                                             uint64_t size) {
  v1::ReadStateRequest request;
  *request.mutable_identity() = identity;
  request.set_name(name);
  request.set_offset(offset);
  request.set_size(size);
  v1::ReadStateReply reply;
  const absl::Status status = server.control->ReadState(request, &reply);
  if (status.ok()) return reply;
  const absl::Status named = AddContext(status, absl::StrCat("server ", server.name, ", ", name));
  return absl::IsUnimplemented(status)
             ? WithFix(named, "upgrade the servers: older ones do not send files of commits")
             : named;
}

class FleetFile : public ReadableFile {
 public:
  FleetFile(ServerLink server, const v1::Identity& identity, std::string name, uint64_t bytes)
      : server_(std::move(server)), identity_(identity), name_(std::move(name)), bytes_(bytes) {}

  uint64_t bytes() const override { return bytes_; }
  absl::Status Read(uint64_t offset, size_t size, char* out) const override {
    while (size > 0) {
      CISTERN_ASSIGN_OR_RETURN(const v1::ReadStateReply reply,
                               ReadState(server_, identity_, name_, offset, size));
      const std::string& content = reply.content();
      if (content.empty() || content.size() > size) {
        return absl::DataLossError(absl::StrCat("server ", server_.name, ", ", name_, ": ",
                                                content.size(), " bytes at ", offset,
                                                " instead of ", size));
      }
      std::memcpy(out, content.data(), content.size());
      out += content.size();
      offset += content.size();
      size -= content.size();
    }
    return absl::OkStatus();
  }

 private:
  const ServerLink server_;
  const v1::Identity identity_;
  const std::string name_;
  const uint64_t bytes_;
};

// A file of the folders of which servers send files.
bool MayBeSent(absl::string_view name) {
  return (absl::ConsumePrefix(&name, "manifest/") || absl::ConsumePrefix(&name, "data/")) &&
         !absl::StrContains(name, "/");
}

// The servers that may have the file `name` of the state, the most likely one first. Manifests are
// those of server 0; with local states, a row file is on its own server alone.
std::vector<ServerLink> HoldersOf(absl::string_view name, const std::vector<ServerLink>& servers) {
  if (!absl::ConsumePrefix(&name, "data/")) return {servers[0]};
  const std::optional<server::RowFileName> parsed = server::ParseRowFileName(std::string(name));
  std::vector<ServerLink> holders = servers;
  if (parsed.has_value() && parsed->server < servers.size()) {
    std::swap(holders[0], holders[parsed->server]);
  }
  return holders;
}

}  // namespace

FleetFiles::FleetFiles(ParameterClient& client)
    : servers_(client.servers().begin(), client.servers().end()),
      identity_(client.identity()),
      root_("fleet://" + servers_[0].name),
      prefix_(server::StateFolderOf(root_) + "/") {}

absl::StatusOr<std::unique_ptr<ReadableFile>> FleetFiles::Open(const FilePath& path) {
  absl::string_view name = path.text();
  if (!absl::StartsWith(name, root_)) return LocalFileSystem::Open(path);
  absl::Status missing = absl::NotFoundError(absl::StrCat(path.text(), ": no such file"));
  if (!absl::ConsumePrefix(&name, prefix_) || !MayBeSent(name)) return missing;
  for (const ServerLink& server : HoldersOf(name, servers_)) {
    const absl::StatusOr<v1::ReadStateReply> found =
        ReadState(server, identity_, std::string(name), 0, 0);
    if (found.ok()) {
      return std::make_unique<FleetFile>(server, identity_, std::string(name), found->file_bytes());
    }
    if (!absl::IsNotFound(found.status())) return found.status();
    missing = found.status();
  }
  return missing;
}

absl::StatusOr<std::vector<std::string>> FleetFiles::List(const FilePath& folder) {
  absl::string_view name = folder.text();
  if (!absl::StartsWith(name, root_)) return LocalFileSystem::List(folder);
  if (!absl::ConsumePrefix(&name, prefix_)) {
    return absl::NotFoundError(absl::StrCat(folder.text(), ": no such folder"));
  }
  std::set<std::string> names;
  for (const ServerLink& server : servers_) {
    CISTERN_ASSIGN_OR_RETURN(const v1::ReadStateReply reply,
                             ReadState(server, identity_, std::string(name), 0, 0));
    names.insert(reply.names().begin(), reply.names().end());
    if (name == "manifest") break;  // what server 0 has decided
  }
  return std::vector<std::string>(names.begin(), names.end());
}

absl::StatusOr<bool> FleetFiles::Exists(const FilePath& path) {
  absl::string_view name = path.text();
  if (!absl::StartsWith(name, root_)) return LocalFileSystem::Exists(path);
  if (!absl::ConsumePrefix(&name, prefix_)) return false;
  if (name == "manifest" || name == "data") return true;
  const auto file = Open(path);
  if (absl::IsNotFound(file.status())) return false;
  CISTERN_RETURN_IF_ERROR(file.status());
  return true;
}

}  // namespace cistern::app
