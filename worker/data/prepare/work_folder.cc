#include "worker/data/prepare/work_folder.h"

#include "common/io/new_file.h"

namespace cistern::data {
namespace {

constexpr char kLock[] = "lock", kPlan[] = "plan";
constexpr uint64_t kMaxPlanBytes = uint64_t{16} << 20;

// Removes all files except for the lock.
absl::Status Empty(FileSystem& files, const std::string& folder) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(folder));
  for (const std::string& name : names) {
    if (name == kLock) continue;
    CISTERN_RETURN_IF_ERROR(RemoveTree(files, absl::StrCat(folder, "/", name)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkFolder>> WorkFolder::Open(FileSystem& files,
                                                             const std::string& path,
                                                             const std::string& plan) {
  std::string folder = path;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  folder += ".partial";
  CISTERN_RETURN_IF_ERROR(files.MakeFolders(folder));
  absl::StatusOr<std::unique_ptr<FileLock>> lock = files.Lock(absl::StrCat(folder, "/", kLock));
  if (absl::IsFailedPrecondition(lock.status())) {
    return absl::InvalidArgumentError(absl::StrCat("another process is working in ", folder,
                                                   ": wait for it, or name another folder"));
  }
  CISTERN_RETURN_IF_ERROR(lock.status());
  std::unique_ptr<WorkFolder> made(new WorkFolder(files, folder, *std::move(lock)));
  const std::string plan_path = made->Path(kPlan);
  made->goes_on_ = ReadWhole(files, plan_path, kMaxPlanBytes).value_or("") == plan;
  if (made->goes_on_) return made;
  CISTERN_RETURN_IF_ERROR(Empty(files, folder));
  CISTERN_RETURN_IF_ERROR(WriteWhole(files, plan_path, plan));
  return made;
}

void WorkFolder::Remove() {
  RemoveTree(files_, path_).IgnoreError();  // a leftover folder is not an error
}

}  // namespace cistern::data
