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
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "app/fleet/local_servers.h"
#include "test/siege/wire.h"

namespace cistern {
namespace {

constexpr char kLimitFlag[] = "--become-with-descriptors";
constexpr absl::Duration kStartLimit = absl::Seconds(60);
constexpr absl::Duration kStopLimit = absl::Seconds(30);
constexpr absl::Duration kSettleLimit = absl::Seconds(30);
// The allowed growth of a server's peak memory: twice its --rpc_memory_mb, as its --help says.
constexpr uint64_t kMemoryBound = 2 * (uint64_t{512} << 20);
// The growth that may remain after the attacks.
constexpr uint64_t kMemoryKept = uint64_t{256} << 20;

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

absl::StatusOr<std::unique_ptr<SiegeServer>> SiegeServer::Serve(
    const std::string& programs, const std::string& folder, const std::vector<std::string>& flags) {
  const std::string empty = folder + "/serving";
  std::error_code error;
  std::filesystem::create_directories(empty, error);
  const int port = FreePort();
  std::vector<std::string> argv = {programs + "/cistern", "serve", empty, "--port=0",
                                   absl::StrCat("--grpc-port=", port)};
  argv.insert(argv.end(), flags.begin(), flags.end());
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<app::ChildProcess> process,
                           app::ChildProcess::Start(argv, folder + "/serve.log"));
  // It prints nothing before it is ready.
  for (const absl::Time end = absl::Now() + kStartLimit; !Wire(port).connected();) {
    if (!process->Running() || absl::Now() > end) {
      return absl::InternalError("cistern serve does not listen: " + process->LogEnd());
    }
    absl::SleepFor(absl::Milliseconds(20));
  }
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

void CheckUse(SiegeReport& report, const std::string& name, const SiegeServer& server,
              const ProcessUse& before) {
  ProcessUse after = server.Use();
  const auto settled = [&] {
    return after.threads <= before.threads + 8 && after.descriptors <= before.descriptors + 8 &&
           after.resident_bytes <= before.resident_bytes + kMemoryKept;
  };
  for (const absl::Time end = absl::Now() + kSettleLimit; !settled() && absl::Now() < end;) {
    absl::SleepFor(absl::Milliseconds(100));
    after = server.Use();
  }
  const std::string text = absl::StrFormat(
      "%s: peak %d MB (%d MB before, bound +%d MB), resident %d MB, threads %d -> %d, descriptors "
      "%d -> %d",
      name, after.peak_bytes >> 20, before.peak_bytes >> 20, kMemoryBound >> 20,
      after.resident_bytes >> 20, before.threads, after.threads, before.descriptors,
      after.descriptors);
  report.Say(text);
  report.Expect(settled(), absl::StrCat("memory, threads and descriptors are released: ", text));
  report.Expect(after.peak_bytes <= before.peak_bytes + kMemoryBound,
                absl::StrCat("memory stays below its bound: ", text));
}

}  // namespace cistern
