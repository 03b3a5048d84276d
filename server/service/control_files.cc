// ControlService::Save and Load: this server's shards to and from files under data_dir.
#include "common/names.h"
#include "server/service/control_service.h"

namespace cistern {

absl::StatusOr<std::string> ControlService::Folder(const std::string& name) const {
  if (data_dir_.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("server ", state_->rank,
                     " was started without --data_dir, so it has no place for files; start it "
                     "with --data_dir=DIR"));
  }
  CISTERN_RETURN_IF_ERROR(AddContext(CheckName(name), "name of the saved model"));
  return absl::StrCat(data_dir_, "/", name);
}

absl::Status ControlService::Save(const v1::SaveRequest& request, v1::SaveReply*) {
  CISTERN_ASSIGN_OR_RETURN(const std::string folder, Folder(request.name()));
  return absl::UnimplementedError("this version does not save on servers");
}

absl::Status ControlService::Load(const v1::LoadRequest& request, v1::LoadReply*) {
  CISTERN_ASSIGN_OR_RETURN(const std::string folder, Folder(request.name()));
  return absl::UnimplementedError("this version does not load on servers");
}

}  // namespace cistern
