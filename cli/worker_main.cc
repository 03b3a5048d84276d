// The program cistern-worker: `cistern train` against a fleet, one process per device, started by a
// launcher.
#include <csignal>
#include <cstdlib>
#include <memory>

#include "cli/command/train_command.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/openmp_defaults.h"
#include "common/base/host_address.h"
#include "common/base/memory_exhausted.h"
#include "worker/data/storage/storage.h"

namespace cistern::cli {
namespace {

constexpr char kExample[] =
    "cistern-worker deepfm.json --servers 10.0.0.1:7700,10.0.0.2:7700 --out runs/deepfm";

struct WorkerFlags {
  TrainFlags train;
  std::string rank, world_size, peers;
  bool insecure_remote = false;
};

// Flags override the launcher's environment.
absl::StatusOr<app::WorkerRank> RankOf(const WorkerFlags& flags) {
  if (flags.rank.empty() && flags.world_size.empty()) return app::RankFromEnvironment(std::getenv);
  return app::RankFromEnvironment([&flags](const char* name) -> const char* {
    if (std::string(name) == "RANK") return flags.rank.empty() ? "0" : flags.rank.c_str();
    if (std::string(name) == "WORLD_SIZE") {
      return flags.world_size.empty() ? "1" : flags.world_size.c_str();
    }
    return std::getenv(name);
  });
}

absl::Status CheckPeers(const app::WorkerRank& worker, bool may_be_remote) {
  if (worker.world_size == 1) return absl::OkStatus();
  if (worker.peers.empty()) {
    return WithFix(
        absl::InvalidArgumentError(absl::StrCat("worker ", worker.rank, " of ", worker.world_size,
                                                " does not know where worker 0 is")),
        "start every worker with the same --peers HOST:PORT: an address of worker 0's machine that "
        "the others can reach, and a free port there (or set MASTER_ADDR and MASTER_PORT)");
  }
  const absl::StatusOr<HostPort> place = ParseHostPort(worker.peers);
  if (!place.ok()) {
    return WithFix(AddContext(place.status(), "--peers, the address of worker 0"),
                   "write host:port, such as --peers 10.0.0.1:7790 or --peers [fd00::1]:7790");
  }
  if (may_be_remote || IsLoopback(place->host)) return absl::OkStatus();
  return WithFix(absl::InvalidArgumentError(
                     absl::StrCat("--peers ", worker.peers,
                                  ": without certificates, connections between workers are not "
                                  "encrypted, and anyone who can read that network could join")),
                 "add --tls-ca, --tls-cert and --tls-key (cistern certs makes them); or use "
                 "127.0.0.1 for workers on one machine; or add --insecure-remote on a private "
                 "network");
}

absl::StatusOr<Report> RunWorker(const WorkerFlags& flags, Console& console) {
  CISTERN_ASSIGN_OR_RETURN(app::WorkerRank worker, RankOf(flags));
  if (!flags.peers.empty()) worker.peers = flags.peers;
  CISTERN_RETURN_IF_ERROR(
      CheckPeers(worker, flags.insecure_remote || flags.train.model.fleet.tls.on()));
  if (flags.train.model.fleet.servers.empty()) {
    return WithFix(absl::InvalidArgumentError("cistern-worker needs --servers host:port,..."),
                   "for servers in the same process: cistern train");
  }
  TrainFlags train = flags.train;
  train.model.fleet.worker = worker.rank;
  return RunTrain(train, worker, console);
}

}  // namespace
}  // namespace cistern::cli

int main(int argc, char** argv) {
  cistern::cli::SetOpenMpDefaults(argv);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` returns an error instead
  cistern::ExplainMemoryExhaustion("cistern-worker",
                                   "make passes smaller (cistern.pass_memory_mb)");
  cistern::cli::CommandLine line("cistern-worker", "Trains a model against a fleet of servers.");
  auto flags = std::make_shared<cistern::cli::WorkerFlags>();
  cistern::cli::Command& root = line.root();
  cistern::cli::AddTrainFlags(root, &flags->train);
  root.Flag("--rank", &flags->rank,
            {"INT",
             "Rank of this worker; by default from the launcher's environment (RANK, "
             "OMPI_COMM_WORLD_RANK, SLURM_PROCID, PADDLE_TRAINER_ID, JOB_COMPLETION_INDEX).",
             "--rank 0"});
  root.Flag(
      "--world-size", &flags->world_size,
      {"INT", "Number of workers; by default from the launcher's environment.", "--world-size 4"});
  root.Flag(
      "--peers", &flags->peers,
      {"HOST:PORT",
       "Several workers: the address where worker 0 listens for the others, the same for all; "
       "by default MASTER_ADDR:MASTER_PORT.",
       "--peers 127.0.0.1:7790"});
  root.Switch("--insecure-remote", &flags->insecure_remote,
              {"",
               "Allows --peers on another machine without certificates. Anyone who can read that "
               "network could join the run.",
               "--insecure-remote"});
  root.Example(cistern::cli::kExample);
  root.Does(
      [flags](cistern::cli::Console& console) { return cistern::cli::RunWorker(*flags, console); });
  const int code = line.Run(argc, argv);
  cistern::data::CloseRemoteStorage();
  return code;
}
