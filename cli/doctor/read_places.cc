#include "cli/doctor/read_places.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "app/state/saved_place.h"
#include "common/io/file_system.h"

namespace cistern::cli {
namespace {

constexpr int kTries = 5;

std::string FileSystemName(const std::string& path) {
  struct statfs info {};
  if (statfs(path.c_str(), &info) != 0) return "unknown";
  const auto magic = static_cast<uint32_t>(info.f_type);
  struct Known {
    uint32_t magic;
    const char* name;
  };
  constexpr uint32_t kXfs = 0x58465342, kZfs = 0x2fc12fc1, kFuse = 0x65735546, kLustre = 0x0bd00bd0;
  for (const Known& one : {Known{EXT4_SUPER_MAGIC, "ext4"},
                           {kXfs, "xfs"},
                           {BTRFS_SUPER_MAGIC, "btrfs"},
                           {kZfs, "zfs"},
                           {TMPFS_MAGIC, "tmpfs"},
                           {RAMFS_MAGIC, "ramfs"},
                           {OVERLAYFS_SUPER_MAGIC, "overlay"},
                           {NFS_SUPER_MAGIC, "nfs"},
                           {kFuse, "fuse"},
                           {kLustre, "lustre"}}) {
    if (one.magic == magic) return one.name;
  }
  return absl::StrFormat("file system %#x", magic);
}

// Milliseconds to write and sync 4 KiB, or an error that says which step failed. Also locks the
// file, as servers and exports do.
absl::StatusOr<double> SyncOnce(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/.cistern-doctor-", getpid());
  const absl::Time begin = absl::Now();
  const int file = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0)
    return absl::PermissionDeniedError(
        absl::StrCat("cannot create a file: ", std::strerror(errno)));
  const std::vector<char> block(4096, 'c');
  const bool good = write(file, block.data(), block.size()) == static_cast<ssize_t>(block.size()) &&
                    fsync(file) == 0;
  const int error = errno;
  close(file);
  const double milliseconds = absl::ToDoubleMilliseconds(absl::Now() - begin);
  LocalFileSystem files;
  const absl::Status locked = good ? files.Lock(path).status() : absl::OkStatus();
  unlink(path.c_str());
  if (!good)
    return absl::UnavailableError(absl::StrCat("cannot write a file: ", std::strerror(error)));
  CISTERN_RETURN_IF_ERROR(locked);
  return milliseconds;
}

// The folder, or the nearest one above it that exists.
std::string Existing(const std::string& path) {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::absolute(path, error).lexically_normal();
  while (!std::filesystem::exists(folder, error) && folder.has_relative_path())
    folder = folder.parent_path();
  return folder.string();
}

void ReadCommits(FolderFacts* facts) {
  LocalFileSystem files;
  const auto state = app::FindState(files, facts->path);
  if (!state.ok()) return;  // no fleet has used it yet
  const auto commit = app::NewestCommit(**state);
  if (!commit.ok()) return;
  facts->newest_commit = *commit;
  const auto manifest = app::ReadCommit(**state, *commit);
  if (!manifest.ok()) facts->state_trouble = std::string(manifest.status().message());
}

}  // namespace

FolderFacts ReadFolder(const std::string& path, bool is_data_folder) {
  FolderFacts facts;
  facts.path = path;
  facts.is_data_folder = is_data_folder;
  const std::string folder = Existing(path);
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    facts.trouble = absl::StrCat(folder, " is not a folder");
    return facts;
  }
  struct statvfs space {};
  if (statvfs(folder.c_str(), &space) == 0) {
    facts.bytes = static_cast<uint64_t>(space.f_blocks) * space.f_frsize;
    facts.free_bytes = static_cast<uint64_t>(space.f_bavail) * space.f_frsize;
    if (space.f_files > 0) facts.free_files = space.f_favail;  // btrfs has no number
  }
  facts.file_system = FileSystemName(folder);
  std::vector<double> times;
  for (int i = 0; i < kTries; ++i) {
    const absl::StatusOr<double> time = SyncOnce(folder);
    if (!time.ok()) {
      facts.trouble = absl::StrCat(folder, ": ", time.status().message());
      return facts;
    }
    times.push_back(*time);
  }
  std::nth_element(times.begin(), times.begin() + kTries / 2, times.end());
  facts.sync_ms = times[kTries / 2];
  if (is_data_folder) ReadCommits(&facts);
  return facts;
}

PortFacts ReadPort(uint64_t port, bool named) {
  PortFacts facts;
  facts.port = port;
  facts.named = named;
  const int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  if (handle >= 0) setsockopt(handle, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));  // as servers do
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool free = handle >= 0 &&
                    bind(handle, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
                    listen(handle, 1) == 0;
  if (!free)
    facts.trouble = errno == EADDRINUSE ? "another program listens on it" : std::strerror(errno);
  if (handle >= 0) close(handle);
  return facts;
}

}  // namespace cistern::cli
