#include "cli/terminal/remote_paths.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "cli/terminal/exit_code.h"
#include "common/io/new_file.h"
#include "common/saved_model/rows_place.h"
#include "worker/data/storage/remote.h"
#include "worker/data/storage/remote_tree.h"
#include "worker/data/storage/storage.h"

namespace cistern::cli {
namespace {

constexpr uint64_t kMaxPage = uint64_t{1} << 30;

enum class Use { kStreamed, kRead, kWritten, kHere };

struct UseOfFlag {
  absl::string_view command, flag;  // an empty command: all
  Use use;
};

// What is not listed is read.
constexpr UseOfFlag kUses[] = {
    {"publish", "--out", Use::kHere},
    {"export hugectr", "--out", Use::kHere},  // a prefix of several names
    {"ckpt repair-epochs", "STATE", Use::kHere},
    {"serving rollback", "DIR", Use::kHere},
    {"report", "RUN", Use::kHere},
    {"serve", "FOLDER", Use::kHere},  // a copy would not follow its versions
    {"data inspect", "FILE", Use::kStreamed},
    {"data criteo", "DAY", Use::kRead},
    {"", "--data", Use::kStreamed},
    {"", "--check-data", Use::kStreamed},
    {"", "--input", Use::kStreamed},
    {"", "--out", Use::kWritten},
    {"", "--output", Use::kWritten},
    {"", "--vocab-out", Use::kWritten},
    {"save", "--to", Use::kWritten},
    {"", "--data-dir", Use::kHere},
    {"", "--dir", Use::kHere},
    {"", "--folder", Use::kHere},
    {"", "--follow", Use::kHere},
    {"", "--log-requests", Use::kHere},
    {"", "--tls-cert", Use::kHere},
    {"", "--tls-key", Use::kHere},
    {"", "--tls-client-ca", Use::kHere},
};

Use UseOf(absl::string_view command, absl::string_view flag) {
  for (const UseOfFlag& one : kUses) {
    if (one.flag == flag && (one.command.empty() || one.command == command)) return one.use;
  }
  return Use::kRead;
}

// "s3://b/state@12" is commit 12 of s3://b/state, unless something there has the whole name.
RowsPlace RemoteRowsPlace(const std::string& path) {
  const RowsPlace place = ParseRowsPlace(path);
  if (place.commit == 0) return place;
  const absl::StatusOr<std::vector<data::RemoteEntry>> whole = data::ListRemote(path);
  return whole.ok() && !whole->empty() ? RowsPlace{path} : place;
}

absl::StatusOr<std::string> NewFolder() {
  const char* const where = std::getenv("TMPDIR");
  std::error_code error;
  const std::filesystem::path base = where == nullptr || *where == '\0' ? "/tmp" : where;
  // As programs write paths: what they show is looked up by its text.
  std::string path =
      (std::filesystem::absolute(base, error) / "cistern-XXXXXX").lexically_normal().string();
  if (mkdtemp(path.data()) != nullptr) return path;
  return WithFix(absl::InvalidArgumentError(absl::StrCat(
                     "cannot create a temporary folder ", path,
                     ", in which files of object stores are copied: ", std::strerror(errno))),
                 "set TMPDIR to a folder with space for them");
}

// Files of a run that name places in it: those become remote, too.
constexpr const char* kTextsOfRun[] = {"model.json", "run.json", "report.html"};

absl::Status ShowInText(const std::string& path, const Console& console) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return absl::OkStatus();
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const std::string page, ReadWhole(files, path, kMaxPage));
  return WriteWhole(files, path, console.Shown(page));
}

// Trainings keep their state: what they have done can be continued.
bool IsTraining(const std::string& command) {
  return command == "train" || command == "tune" || command == "cistern-worker";
}

}  // namespace

RemotePaths::RemotePaths(std::string command, Console* console)
    : command_(std::move(command)), console_(*console) {}

RemotePaths::~RemotePaths() {
  if (folder_.empty() || keep_) return;
  LocalFileSystem files;
  RemoveTree(files, folder_).IgnoreError();  // a leftover in the temporary folder is harmless
}

absl::StatusOr<std::unique_ptr<RemotePaths>> RemotePaths::Take(const std::string& command,
                                                               std::vector<PathFlag>* flags,
                                                               Console* console) {
  std::unique_ptr<RemotePaths> paths(new RemotePaths(command, console));
  const bool has_out = std::any_of(flags->begin(), flags->end(), [](const PathFlag& flag) {
    return flag.name == "--out" && !flag.values.empty();
  });
  for (PathFlag& flag : *flags) {
    for (std::string& value : flag.values) {
      const std::string given = value;
      absl::StatusOr<std::string> replaced = paths->Replaced(flag.name, value);
      if (!replaced.ok()) {
        return AddContext(replaced.status(), flag.name);
      }
      value = *std::move(replaced);
      std::error_code error;
      if (data::IsRemote(given) && IsTraining(command) && flag.name == "MODEL" && !has_out &&
          std::filesystem::is_directory(value, error)) {
        return WithFix(absl::InvalidArgumentError(absl::StrCat(
                           given, " is a run in an object store, which a training cannot change")),
                       "download the run and name the local folder, or add --out for a new run");
      }
    }
  }
  return paths;
}

absl::StatusOr<std::string> RemotePaths::Replaced(const std::string& flag,
                                                  const std::string& path) {
  const Use use = UseOf(command_, flag);
  if (use == Use::kStreamed) return path;
  if (!data::IsRemote(path)) return data::WithoutFileScheme(path);
  if (use == Use::kHere) {
    return WithFix(
        absl::InvalidArgumentError(absl::StrCat(path, " is not on this machine; cistern ", command_,
                                                " needs a local path here")),
        "to read it, download it first (aws s3 cp --recursive, gsutil cp -r, hdfs dfs -get); to "
        "write there, name a local folder and upload it afterwards");
  }
  if (use == Use::kRead) return Fetched(path);
  const absl::Status is_new = data::CheckRemoteIsNew(path);
  if (!is_new.ok()) return is_new;
  CISTERN_ASSIGN_OR_RETURN(const std::string local, NewPlace(path));
  console_.ShowInstead(local, path);
  written_.push_back({local, path});
  return local;
}

absl::StatusOr<std::string> RemotePaths::NewPlace(const std::string& path) {
  if (folder_.empty()) {
    CISTERN_ASSIGN_OR_RETURN(folder_, NewFolder());
  }
  const std::string parent = absl::StrCat(folder_, "/", places_++);
  CISTERN_RETURN_IF_ERROR(MakeFolders(parent));
  return absl::StrCat(parent, "/", data::RemoteName(path));
}

absl::StatusOr<std::string> RemotePaths::Fetched(const std::string& path) {
  const RowsPlace place = RemoteRowsPlace(path);
  CISTERN_ASSIGN_OR_RETURN(const std::string local, NewPlace(place.path));
  const absl::Status copied = data::CopyFromRemote(
      place.path, local, [&](const std::string& name, size_t done, size_t all) {
        console_.Update(absl::StrCat("reading  ", place.path, "  ", done, " of ", all, "  ", name));
      });
  console_.Update("");
  // The path was typed: that it leads nowhere is a mistake in the command line.
  if (absl::IsNotFound(copied)) return WithCode(copied, absl::StatusCode::kInvalidArgument);
  if (!copied.ok()) return copied;
  console_.ShowInstead(local, place.path);
  return place.commit == 0 ? local : absl::StrCat(local, "@", place.commit);
}

absl::Status RemotePaths::Copy() {
  for (const Written& one : written_) {
    std::error_code error;
    if (!std::filesystem::exists(one.local, error)) continue;  // e.g. of a worker that is not 0
    for (const char* const name : kTextsOfRun) {
      CISTERN_RETURN_IF_ERROR(ShowInText(absl::StrCat(one.local, "/", name), console_));
    }
    CISTERN_RETURN_IF_ERROR(data::CopyToRemote(
        one.local, one.remote, [&](const std::string& name, size_t done, size_t all) {
          console_.Update(
              absl::StrCat("writing  ", one.remote, "  ", done, " of ", all, "  ", name));
        }));
  }
  return absl::OkStatus();
}

absl::StatusOr<Report> RemotePaths::Finish(absl::StatusOr<Report> given) {
  Report report = given.ok() ? *std::move(given) : Report{{}, "", given.status()};
  if (folder_.empty()) return report;
  const bool worked = report.outcome.ok();
  if (worked) {
    const absl::Status copied = Copy();
    console_.Update("");
    report = console_.Shown(std::move(report));
    if (copied.ok()) return report;
    keep_ = true;
    return WithFix(copied, absl::StrCat("the result is complete in ", folder_,
                                        ": copy it from there, or repeat the command"));
  }
  report = console_.Shown(std::move(report));
  std::error_code error;
  keep_ = IsTraining(command_) && !written_.empty() &&
          std::filesystem::exists(written_[0].local + "/state", error);
  if (keep_) {
    const Written& run = written_[0];
    report.outcome =
        WithFix(report.outcome, absl::StrCat("the state of the run is in ", run.local,
                                             ": repeat the command with --out ", run.local,
                                             " --resume, then copy that folder to ", run.remote));
  }
  return report;
}

}  // namespace cistern::cli
