#include "worker/data/work_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "worker/data/output_file.h"

namespace cistern {
namespace {

namespace fs = std::filesystem;

constexpr char kLock[] = "/lock", kPlan[] = "/plan";

std::string TextOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  return text.str();
}

// All but the lock.
absl::Status Empty(const std::string& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename() == kLock + 1) continue;
    fs::remove_all(entry.path(), error);
    if (error) break;
  }
  return error ? absl::ErrnoToStatus(error.value(), absl::StrCat("cannot empty ", folder))
               : absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkFolder>> WorkFolder::Open(const std::string& path,
                                                             const std::string& plan) {
  std::string folder = path;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  folder += ".partial";
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot create ", folder));
  const int lock = open((folder + kLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot create ", folder, kLock));
  std::unique_ptr<WorkFolder> made(new WorkFolder(folder, lock));
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("another process works in ", folder, ": wait for it, or name another folder"));
  }
  made->goes_on_ = TextOf(folder + kPlan) == plan;
  if (made->goes_on_) return made;
  CISTERN_RETURN_IF_ERROR(Empty(folder));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file,
                           OutputFile::Create(folder + kPlan));
  CISTERN_RETURN_IF_ERROR(file->Append(plan));
  CISTERN_RETURN_IF_ERROR(file->Close());
  return made;
}

WorkFolder::~WorkFolder() {
  close(lock_);
}

void WorkFolder::Remove() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace cistern
