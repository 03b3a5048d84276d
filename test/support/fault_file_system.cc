#include "test/support/fault_file_system.h"

#include <errno.h>

#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/io/file.h"
#include "test/support/disk_log.h"

namespace cistern {

// Decides which calls fail; shared with the open files.
class FaultFileSystem::Plan {
 public:
  void Set(uint64_t first, uint64_t times, std::optional<SeededNumbers> numbers, uint64_t one_in,
           Fault fault) {
    absl::MutexLock lock(&mutex_);
    first_ = first;
    times_ = times;
    numbers_ = numbers;
    one_in_ = one_in;
    fault_ = fault;
    calls_ = 0;
    hits_.clear();
  }

  // Counts a call; returns its fault if it must fail.
  std::optional<Fault> Next(absl::string_view action, const FilePath& path) {
    absl::MutexLock lock(&mutex_);
    ++calls_;
    const bool fails =
        numbers_ ? numbers_->Below(one_in_) == 0 : calls_ >= first_ && calls_ - first_ < times_;
    if (!fails) return std::nullopt;
    hits_.push_back(absl::StrCat(action, " ", path.text()));
    return fault_;
  }

  uint64_t calls() const {
    absl::MutexLock lock(&mutex_);
    return calls_;
  }
  std::vector<std::string> hits() const {
    absl::MutexLock lock(&mutex_);
    return hits_;
  }

  static absl::Status Error(Fault fault, absl::string_view action, const FilePath& path) {
    const bool full = fault == Fault::kNoSpace;
    return ErrnoStatus(full ? ENOSPC : EIO, action, path.text());
  }

  // Runs `call`, which returns a Status or a StatusOr, unless it must fail.
  template <typename Call>
  auto Run(absl::string_view action, const FilePath& path, Call call) -> decltype(call()) {
    const std::optional<Fault> fault = Next(action, path);
    if (!fault) return call();
    if (*fault == Fault::kLostReply) {
      const auto lost = call();
      if (!lost.ok()) return lost_status(lost);
    }
    return Error(*fault, action, path);
  }

 private:
  static absl::Status lost_status(const absl::Status& status) { return status; }
  template <typename T>
  static absl::Status lost_status(const absl::StatusOr<T>& result) {
    return result.status();
  }

  mutable absl::Mutex mutex_;
  uint64_t first_ ABSL_GUARDED_BY(mutex_) = 0, times_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<SeededNumbers> numbers_ ABSL_GUARDED_BY(mutex_);
  uint64_t one_in_ ABSL_GUARDED_BY(mutex_) = 1;
  Fault fault_ ABSL_GUARDED_BY(mutex_) = Fault::kInputOutput;
  uint64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> hits_ ABSL_GUARDED_BY(mutex_);
};

class FaultFileSystem::FaultWritableFile : public WritableFile {
 public:
  FaultWritableFile(std::unique_ptr<WritableFile> file, std::shared_ptr<Plan> plan,
                    std::string path)
      : file_(std::move(file)), plan_(std::move(plan)), path_(std::move(path)) {}

  absl::Status Append(absl::string_view bytes) override {
    CISTERN_RETURN_IF_ERROR(dead_);
    const std::string action = absl::StrCat("append ", bytes.size(), " bytes to");
    const std::optional<Fault> fault = plan_->Next(action, path_);
    if (!fault) return file_->Append(bytes);
    if (*fault == Fault::kShortWrite) bytes = bytes.substr(0, bytes.size() / 2);
    if (*fault == Fault::kShortWrite || *fault == Fault::kLostReply) {
      CISTERN_RETURN_IF_ERROR(file_->Append(bytes));
    }
    const bool full = *fault == Fault::kShortWrite;
    dead_ = Plan::Error(full ? Fault::kNoSpace : *fault, action, path_);
    return dead_;
  }

  absl::Status WriteAt(uint64_t offset, absl::string_view bytes) override {
    CISTERN_RETURN_IF_ERROR(dead_);
    dead_ = plan_->Run("overwrite", path_, [&] { return file_->WriteAt(offset, bytes); });
    return dead_;
  }

  absl::Status Sync() override {
    CISTERN_RETURN_IF_ERROR(dead_);
    const absl::Status status = plan_->Run("sync", path_, [&] { return file_->Sync(); });
    dead_ = status;
    return status;
  }

  absl::Status Close() override {
    CISTERN_RETURN_IF_ERROR(dead_);
    const absl::Status status = plan_->Run("close", path_, [&] { return file_->Close(); });
    dead_ = status;
    return status;
  }

 private:
  const std::unique_ptr<WritableFile> file_;
  const std::shared_ptr<Plan> plan_;
  const std::string path_;
  absl::Status dead_;  // the first error
};

class FaultFileSystem::FaultReadableFile : public ReadableFile {
 public:
  FaultReadableFile(std::unique_ptr<ReadableFile> file, std::shared_ptr<Plan> plan,
                    std::string path)
      : file_(std::move(file)), plan_(std::move(plan)), path_(std::move(path)) {}

  uint64_t bytes() const override { return file_->bytes(); }
  absl::Status Read(uint64_t offset, size_t size, char* out) const override {
    return plan_->Run("read", path_, [&] { return file_->Read(offset, size, out); });
  }

 private:
  const std::unique_ptr<ReadableFile> file_;
  const std::shared_ptr<Plan> plan_;
  const std::string path_;
};

FaultFileSystem::FaultFileSystem(FileSystem* files)
    : files_(files), plan_(std::make_shared<Plan>()) {}
FaultFileSystem::~FaultFileSystem() = default;

void FaultFileSystem::FailCall(uint64_t first, Fault fault, uint64_t times) {
  plan_->Set(first, times, std::nullopt, 1, fault);
}

void FaultFileSystem::FailSome(uint64_t seed, uint64_t one_in, Fault fault) {
  plan_->Set(0, 0, SeededNumbers(seed), one_in, fault);
}

uint64_t FaultFileSystem::calls() const {
  return plan_->calls();
}

std::vector<std::string> FaultFileSystem::hits() const {
  return plan_->hits();
}

absl::StatusOr<std::unique_ptr<WritableFile>> FaultFileSystem::Create(const FilePath& path) {
  CISTERN_ASSIGN_OR_RETURN(auto file,
                           plan_->Run("create", path, [&] { return files_->Create(path); }));
  return std::make_unique<FaultWritableFile>(std::move(file), plan_, path.text());
}

absl::StatusOr<std::unique_ptr<ReadableFile>> FaultFileSystem::Open(const FilePath& path) {
  CISTERN_ASSIGN_OR_RETURN(auto file, plan_->Run("open", path, [&] { return files_->Open(path); }));
  return std::make_unique<FaultReadableFile>(std::move(file), plan_, path.text());
}

absl::Status FaultFileSystem::MakeFolders(const FilePath& path) {
  return plan_->Run("create the folder", path, [&] { return files_->MakeFolders(path); });
}

absl::Status FaultFileSystem::Publish(const FilePath& from, const FilePath& to) {
  return plan_->Run("publish", to, [&] { return files_->Publish(from, to); });
}

absl::Status FaultFileSystem::Replace(const FilePath& from, const FilePath& to) {
  return plan_->Run("replace", to, [&] { return files_->Replace(from, to); });
}

absl::Status FaultFileSystem::Exchange(const FilePath& a, const FilePath& b) {
  return plan_->Run("exchange", b, [&] { return files_->Exchange(a, b); });
}

absl::Status FaultFileSystem::Remove(const FilePath& path) {
  return plan_->Run("remove", path, [&] { return files_->Remove(path); });
}

absl::Status FaultFileSystem::SyncFolder(const FilePath& path) {
  return plan_->Run("sync the folder", path, [&] { return files_->SyncFolder(path); });
}

absl::StatusOr<std::vector<std::string>> FaultFileSystem::List(const FilePath& folder) {
  return plan_->Run("list", folder, [&] { return files_->List(folder); });
}

absl::StatusOr<bool> FaultFileSystem::Exists(const FilePath& path) {
  return plan_->Run("stat", path, [&] { return files_->Exists(path); });
}

absl::Status FaultFileSystem::MakeLink(const std::string& target, const FilePath& path) {
  return plan_->Run("link", path, [&] { return files_->MakeLink(target, path); });
}

absl::StatusOr<std::string> FaultFileSystem::ReadLink(const FilePath& path) {
  return plan_->Run("read the link", path, [&] { return files_->ReadLink(path); });
}

absl::StatusOr<std::unique_ptr<FileLock>> FaultFileSystem::Lock(const FilePath& path) {
  return plan_->Run("lock", path, [&] { return files_->Lock(path); });
}

}  // namespace cistern
