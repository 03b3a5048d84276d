// ControlService: the files of commits, for tools on machines that do not see this server's disk.
#include <algorithm>

#include "absl/strings/strip.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/state_folder.h"
#include "server/service/control_service.h"

namespace cistern::server {
namespace {

constexpr uint64_t kMaxContentBytes = uint64_t{1} << 20;

constexpr absl::string_view kManifests = "manifest", kRowFiles = "data";

bool IsManifest(absl::string_view name) {
  return NumberOfName(name) > 0;
}
bool IsRowFile(absl::string_view name) {
  return ParseRowFileName(std::string(name)).has_value();
}

// A file that only readers of commits need. Claims are not among them.
bool IsOfCommits(absl::string_view name) {
  return absl::ConsumePrefix(&name, "manifest/")
             ? IsManifest(name)
             : absl::ConsumePrefix(&name, "data/") && IsRowFile(name);
}

}  // namespace

absl::Status ControlService::ReadState(const v1::ReadStateRequest& request,
                                       v1::ReadStateReply* reply) {
  CISTERN_RETURN_IF_ERROR(state_->guard.CheckPlace(request.identity()));
  if (state_->stage.durable() == nullptr) {
    return absl::FailedPreconditionError(
        "this server keeps commits in memory only, so there are no files of commits");
  }
  const std::string path = absl::StrCat(StateFolderOf(data_dir_), "/", request.name());
  if (request.name() == kManifests || request.name() == kRowFiles) {
    CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(path));
    for (const std::string& name : names) {
      if (request.name() == kManifests ? IsManifest(name) : IsRowFile(name)) reply->add_names(name);
    }
    return absl::OkStatus();
  }
  if (!IsOfCommits(request.name())) {
    return absl::InvalidArgumentError(
        "this is no file of a commit: a server sends manifests and row files alone");
  }
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files_.Open(path));
  reply->set_file_bytes(file->bytes());
  if (request.offset() >= file->bytes()) return absl::OkStatus();
  const uint64_t size =
      std::min({request.size(), kMaxContentBytes, file->bytes() - request.offset()});
  reply->mutable_content()->resize(size);
  return file->Read(request.offset(), size, reply->mutable_content()->data());
}

}  // namespace cistern::server
