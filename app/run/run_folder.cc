#include "app/run/run_folder.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "absl/strings/match.h"
#include "common/base/shown_text.h"
#include "common/io/file.h"
#include "common/io/file_system.h"
#include "common/io/new_file.h"
#include "worker/data/recipe/utf8_check.h"

namespace cistern::app {
namespace {

absl::Status Refuse(const std::string& what, const std::string& fix,
                    const std::vector<std::string>& options = {}) {
  return WithFix(WithOptions(absl::InvalidArgumentError(what), options), fix);
}

absl::Status CheckOptions(const RunFolder& run) {
  if (run.resume && run.overwrite) {
    return Refuse("a run is either resumed or overwritten",
                  "resuming continues the run in the folder, overwriting removes it",
                  {"resume", "overwrite"});
  }
  if (!run.embedded && !run.keep_state) {
    return Refuse("a fleet decides what it keeps, not the run",
                  "leave the durability out, or start the servers without it",
                  {"durability", "servers", "cistern-server.durability"});
  }
  if (run.resume && !run.keep_state) {
    return Refuse("this run keeps no state to resume from", "let it keep its commits and its model",
                  {"resume", "durability", "no_save_model"});
  }
  return absl::OkStatus();
}

// Removes the state folder unless another process holds a lock in it.
absl::Status RemoveState(FileSystem& files, const std::string& state) {
  const absl::StatusOr<std::vector<std::string>> names = files.List(state);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  if (!names.ok()) return names.status();
  std::vector<std::unique_ptr<FileLock>> locks;
  for (const std::string& name : *names) {
    if (!absl::StartsWith(name, "lock-")) continue;
    absl::StatusOr<std::unique_ptr<FileLock>> lock = files.Lock(absl::StrCat(state, "/", name));
    if (!lock.ok())
      return AddContext(lock.status(), "cannot overwrite it: another process is training there");
    locks.push_back(*std::move(lock));
  }
  return RemoveTree(files, state);
}

// Whether a run committed anything there. A run that was refused early, because of its data for
// example, leaves a state folder without a commit.
absl::StatusOr<bool> HasCommit(FileSystem& files, const std::string& state) {
  const absl::StatusOr<std::vector<std::string>> manifests = files.List(state + "/manifest");
  if (absl::IsNotFound(manifests.status())) return false;
  if (!manifests.ok()) return manifests.status();
  return !manifests->empty();
}

}  // namespace

absl::Status PrepareRunFolder(const RunFolder& run) {
  CISTERN_RETURN_IF_ERROR(CheckOptions(run));
  LocalFileSystem files;
  const std::string state = run.out + "/state";
  if (run.overwrite) return run.embedded ? RemoveState(files, state) : absl::OkStatus();
  const absl::StatusOr<bool> looked = files.Exists(run.out + "/model");
  if (absl::IsInvalidArgument(looked.status())) {
    return Refuse(absl::StrCat(run.out, " cannot be used (is it a file, or below one?): ",
                               looked.status().message()),
                  "name a folder; it is created if missing", {"out"});
  }
  CISTERN_ASSIGN_OR_RETURN(const bool has_model, looked);
  CISTERN_ASSIGN_OR_RETURN(const bool has_state, files.Exists(state));
  if (run.embedded && has_state) {
    if (run.resume) return absl::OkStatus();
    CISTERN_ASSIGN_OR_RETURN(const bool has_commit, HasCommit(files, state));
    if (!has_commit && !has_model) return RemoveState(files, state);
    return Refuse(absl::StrCat(run.out, " already holds the state of a run"),
                  "resume it, overwrite it, or name another folder",
                  {"resume", "overwrite", "out"});
  }
  if (!has_model || (run.resume && !run.embedded)) return absl::OkStatus();
  if (run.resume) {
    return Refuse(absl::StrCat(run.out, " holds a trained model, but no state to resume from"),
                  "name another folder, or overwrite it to train from scratch",
                  {"out", "overwrite"});
  }
  return Refuse(absl::StrCat(run.out, " already holds a trained model"),
                "name another folder, or overwrite the model", {"out", "overwrite"});
}

absl::Status CheckOutFolder(const std::string& out) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(out, error)) return absl::OkStatus();
  return Refuse(absl::StrCat(out, " is a file, not a folder"), "name a folder", {"out"});
}

absl::Status CheckNameForJson(const std::string& what, const std::string& path) {
  if (data::IsUtf8(path)) return absl::OkStatus();
  return Refuse(
      absl::StrCat(what, ": '", ShownText(path),
                   "' is not UTF-8 text (Latin-1?), and a JSON file would have to hold it"),
      "choose another name, or rename what is there (convmv -f latin1 -t utf8)");
}

absl::Status UpdateRunRecipe(const std::string& out,
                             const std::optional<data::FoundRecipe>& recipe) {
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const std::optional<data::FoundRecipe> present,
                           data::FindRecipe(files, out));
  if (!present || !recipe || HashOf(recipe->recipe) == HashOf(present->recipe)) {
    return absl::OkStatus();
  }
  return data::ReplaceRecipe(files, *recipe, out);
}

absl::Status WriteRunFiles(const std::string& out, const std::string& model,
                           const std::optional<data::FoundRecipe>& recipe, bool resume) {
  LocalFileSystem files;
  std::optional<data::FoundRecipe> present;
  if (resume) {
    CISTERN_ASSIGN_OR_RETURN(present, data::FindRecipe(files, out));
  }
  if (present) {
    CISTERN_RETURN_IF_ERROR(UpdateRunRecipe(out, recipe));
  } else if (recipe) {
    CISTERN_RETURN_IF_ERROR(data::CopyRecipe(files, *recipe, out));
  } else {
    CISTERN_RETURN_IF_ERROR(data::RemoveRecipe(files, out));
  }
  return WriteWhole(files, absl::StrCat(out, "/", kRunModelFile), model);
}

std::string RunOf(const std::string& dir) {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::absolute(dir, error).lexically_normal();
  if (error) return dir;
  if (folder.filename().empty()) folder = folder.parent_path();  // after a slash at the end
  const std::string name = folder.filename();
  const bool is_part =
      name == "model" || name == "best" || name == "state" || absl::StartsWith(name, "snapshot-");
  return is_part && !IsRunFolder(folder) ? folder.parent_path().string() : dir;
}

absl::Status CheckReadable(const std::string& path) {
  if (access(path.c_str(), R_OK | X_OK) == 0 || errno != EACCES) return absl::OkStatus();
  return ErrnoStatus(errno, "open the folder", path);
}

bool IsRunFolder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(absl::StrCat(path, "/", kRunModelFile), error) &&
         std::filesystem::is_regular_file(absl::StrCat(path, "/metrics.jsonl"), error);
}

}  // namespace cistern::app
