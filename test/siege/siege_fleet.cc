#include "test/siege/siege_fleet.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "app/fleet/local_servers.h"

namespace cistern {
namespace {

constexpr char kLimitFlag[] = "--become-with-descriptors";
constexpr absl::Duration kStartLimit = absl::Seconds(60);
constexpr absl::Duration kStopLimit = absl::Seconds(30);

}  // namespace

void BecomeLimitedProgram(int argc, char** argv) {
  if (argc < 4 || std::strcmp(argv[1], kLimitFlag) != 0) return;
  uint64_t descriptors = 0;
  if (!absl::SimpleAtoi(argv[2], &descriptors)) std::exit(2);
  const rlimit limit = {descriptors, descriptors};
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) std::exit(1);
  execv(argv[3], argv + 3);
  std::exit(127);
}

absl::StatusOr<std::unique_ptr<SiegeServer>> SiegeServer::Start(const Options& options) {
  std::vector<std::string> argv;
  if (options.descriptor_limit > 0) {
    argv = {"/proc/self/exe", kLimitFlag, absl::StrCat(options.descriptor_limit)};
  }
  argv.push_back(options.programs + "/cistern-server");
  argv.push_back(absl::StrCat("--rank=", options.rank));
  argv.push_back(absl::StrCat("--server_num=", options.server_num));
  argv.push_back("--port=0");
  argv.push_back("--threads=1");
  if (!options.data_dir.empty()) argv.push_back("--data_dir=" + options.data_dir);
  argv.insert(argv.end(), options.flags.begin(), options.flags.end());
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<app::ChildProcess> process,
                           app::ChildProcess::Start(argv, options.log));
  CISTERN_ASSIGN_OR_RETURN(const std::string line, process->ReadLine(kStartLimit));
  CISTERN_ASSIGN_OR_RETURN(const int port, app::ParseReadyLine(line));
  return std::unique_ptr<SiegeServer>(new SiegeServer(std::move(process), port));
}

std::string SiegeServer::address() const {
  return absl::StrCat("127.0.0.1:", port_);
}

ProcessUse SiegeServer::Use() const {
  const std::string proc = absl::StrCat("/proc/", process_->pid());
  ProcessUse use;
  std::ifstream status(proc + "/status");
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string name;
    uint64_t value = 0;
    if (!(words >> name >> value)) continue;
    if (name == "VmHWM:") use.peak_bytes = value << 10;
    if (name == "VmRSS:") use.resident_bytes = value << 10;
    if (name == "Threads:") use.threads = value;
  }
  std::error_code error;
  for (std::filesystem::directory_iterator at(proc + "/fd", error), end; at != end;
       at.increment(error)) {
    ++use.descriptors;
  }
  return use;
}

bool SiegeServer::StopCleanly() {
  process_->Signal(SIGTERM);
  const absl::Time end = absl::Now() + kStopLimit;
  while (process_->Running() && absl::Now() < end) absl::SleepFor(absl::Milliseconds(10));
  return !process_->Running() && process_->exit_code() == 0;
}

absl::StatusOr<SiegeFleet> SiegeFleet::Start(const std::string& programs, const std::string& folder,
                                             uint32_t server_num) {
  SiegeFleet fleet;
  fleet.data_dir = folder + "/data";
  std::error_code error;
  std::filesystem::create_directories(fleet.data_dir, error);
  for (uint32_t rank = 0; rank < server_num; ++rank) {
    SiegeServer::Options options;
    options.programs = programs;
    options.log = absl::StrCat(folder, "/server-", rank, ".log");
    options.rank = rank;
    options.server_num = server_num;
    options.data_dir = fleet.data_dir;
    CISTERN_ASSIGN_OR_RETURN(fleet.servers.emplace_back(), SiegeServer::Start(options));
  }
  return fleet;
}

std::string SiegeFleet::addresses() const {
  std::string all;
  for (const auto& server : servers)
    absl::StrAppend(&all, all.empty() ? "" : ",", server->address());
  return all;
}

}  // namespace cistern
