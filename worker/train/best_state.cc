#include "worker/train/best_state.h"

#include <unistd.h>

#include <filesystem>

#include "worker/train/jobs.h"

namespace cistern {
namespace {

constexpr char kPositionName[] = "/position.json";
constexpr uint64_t kMaxPositionBytes = uint64_t{16} << 20;

}  // namespace

BestState::BestState(FileSystem& files, const std::string& out_dir)
    : files_(files),
      folder_(out_dir.empty()
                  ? (std::filesystem::temp_directory_path() / "cistern-best-").string() +
                        std::to_string(::getpid())
                  : out_dir + "/best") {}

std::string BestState::StateOf(PassId pass) const {
  return absl::StrCat(folder_, "/pass-", pass);
}

absl::Status BestState::Save(ParameterClient& client, const Position& position) {
  const std::string state = StateOf(client.committed_pass());
  CISTERN_RETURN_IF_ERROR(RemoveTree(files_, state));
  CISTERN_RETURN_IF_ERROR(SaveModel(files_, client, state + "/model"));
  const std::string fresh = state + kPositionName + ".new";
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files_.Create(fresh));
  CISTERN_RETURN_IF_ERROR(file->Append(FormatPosition(position)));
  CISTERN_RETURN_IF_ERROR(file->Sync());
  CISTERN_RETURN_IF_ERROR(file->Close());
  CISTERN_RETURN_IF_ERROR(files_.Publish(fresh, state + kPositionName));
  CISTERN_RETURN_IF_ERROR(files_.SyncFolder(state));
  CISTERN_RETURN_IF_ERROR(files_.SyncFolder(folder_));
  newest_ = client.committed_pass();
  return absl::OkStatus();
}

absl::StatusOr<Position> BestState::PositionOf(PassId pass) const {
  absl::StatusOr<std::string> text =
      ReadWhole(files_, StateOf(pass) + kPositionName, kMaxPositionBytes);
  if (absl::IsNotFound(text.status())) {
    return WithOptions(absl::FailedPreconditionError(absl::StrCat(
                           "the state of the best epoch, ", StateOf(pass),
                           ", does not exist: name the folder of that run, or continue without the "
                           "best epoch, cistern.keep_best=false")),
                       {"out", "set"});
  }
  if (!text.ok()) return text.status();
  absl::StatusOr<Position> position = ParsePosition(*text);
  if (!position.ok()) return AddContext(position.status(), StateOf(pass) + kPositionName);
  return position;
}

absl::Status BestState::Restore(ParameterClient& client, PassId pass, const Position& position,
                                const v1::StepClock& clock) {
  return RestoreModel(files_, client, StateOf(pass) + "/model",
                      {FormatPosition(position), /*durable=*/true, clock});
}

absl::Status BestState::CopyTo(PassId pass, const std::string& folder) const {
  return CopyModel(files_, StateOf(pass) + "/model", folder);
}

void BestState::KeepOnly(PassId pass) {
  const absl::StatusOr<std::vector<std::string>> names = files_.List(folder_);
  if (!names.ok()) return;  // a leftover folder does not fail the run
  for (const std::string& name : *names) {
    const std::string state = absl::StrCat(folder_, "/", name);
    if (state != StateOf(pass)) RemoveTree(files_, state).IgnoreError();
  }
}

void BestState::KeepNewest() {
  if (newest_) KeepOnly(*newest_);
  newest_.reset();
}

void BestState::RemoveAll() {
  RemoveTree(files_, folder_).IgnoreError();
}

}  // namespace cistern
