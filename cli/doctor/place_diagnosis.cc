#include "cli/doctor/place_diagnosis.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/amount_text.h"

namespace cistern::cli {
namespace {

constexpr uint64_t kGibibyte = 1ull << 30;

Finding Space(const FolderFacts& folder) {
  const std::string subject = absl::StrCat("disk ", folder.path);
  const std::string found =
      absl::StrFormat("%s of %s are free, %s, %.1f ms to sync", BytesText(folder.free_bytes),
                      BytesText(folder.bytes), folder.file_system, folder.sync_ms);
  if (folder.free_bytes < kGibibyte / 4 || folder.free_files < 100) {
    return {subject, Health::kProblem,
            absl::StrCat(found, folder.free_files < 100 ? "; no more files can be created" : "",
                         ": a commit would fail"),
            "remove files (`du -xh PATH | sort -h | tail`), or name a folder on another disk"};
  }
  if (folder.free_bytes < 5 * kGibibyte) {
    return {
        subject, Health::kWarning, found,
        "see what a model needs with `cistern plan MODEL.json`; keep fewer commits: cistern-server "
        "--keep_commits"};
  }
  if (folder.sync_ms > 50) {
    return {subject, Health::kWarning, found + ": every commit waits for that",
            "use a local SSD for the data folder, or make passes larger with --set "
            "cistern.pass_memory_mb=2048"};
  }
  return {subject, Health::kGood, found, ""};
}

// A data folder on a file system that forgets, or that several machines share.
std::vector<Finding> Durability(const FolderFacts& folder) {
  if (!folder.is_data_folder) return {};
  const std::string subject = absl::StrCat("data ", folder.path);
  if (folder.file_system == "tmpfs" || folder.file_system == "ramfs") {
    return {{subject, Health::kWarning,
             folder.file_system + ": commits are lost when the machine restarts",
             "name a folder on a disk"}};
  }
  if (folder.file_system == "overlay") {
    return {{subject, Health::kWarning,
             "overlay, the layer of a container: commits are lost with the container",
             "mount a volume and name a folder on it: docker run -v cistern-data:/data ..."}};
  }
  return {};
}

std::vector<Finding> State(const FolderFacts& folder) {
  const std::string subject = absl::StrCat("commits ", folder.path);
  if (!folder.state_trouble.empty()) {
    return {{subject, Health::kProblem, folder.state_trouble,
             absl::StrCat("cistern verify ", folder.path, " names the damaged files")}};
  }
  if (folder.newest_commit == 0) return {};
  return {{subject, Health::kGood, absl::StrCat("the newest is ", folder.newest_commit), ""}};
}

}  // namespace

std::vector<Finding> DiagnoseFolder(const FolderFacts& folder) {
  if (!folder.trouble.empty()) {
    return {{absl::StrCat("disk ", folder.path), Health::kProblem, folder.trouble,
             absl::StrCat("create it for this user: sudo install -d -o $(id -un) ", folder.path,
                          "; or name another folder")}};
  }
  std::vector<Finding> findings = {Space(folder)};
  for (auto& more : {Durability(folder), State(folder)})
    findings.insert(findings.end(), more.begin(), more.end());
  return findings;
}

Finding DiagnosePort(const PortFacts& port, const MachineFacts& facts) {
  const std::string subject = absl::StrCat("port ", port.port);
  if (!port.trouble.empty()) {
    return {subject, port.named ? Health::kProblem : Health::kWarning, port.trouble,
            absl::StrCat("see which program has it with `ss -ltnp sport = :", port.port,
                         "`, or choose another --port")};
  }
  if (port.port != 0 && port.port >= facts.first_client_port &&
      port.port <= facts.last_client_port) {
    return {subject, Health::kWarning, "free, but the kernel gives ports of this range to clients",
            absl::StrCat("sudo sysctl net.ipv4.ip_local_reserved_ports=", port.port)};
  }
  return {subject, Health::kGood, "free", ""};
}

}  // namespace cistern::cli
