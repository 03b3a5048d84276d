// cistern-worker: `cistern train` against a fleet, as a launcher starts it, one process a device.
#include <csignal>
#include <cstdlib>
#include <memory>

#include "cli/exit_code.h"
#include "cli/train_command.h"

namespace cistern {
namespace {

constexpr char kExample[] =
    "cistern-worker deepfm.json --servers 10.0.0.1:7700,10.0.0.2:7700 --out runs/deepfm";

struct WorkerFlags {
  TrainFlags train;
  std::string rank, world_size;
};

// Flags win over the environment of the launcher.
absl::StatusOr<WorkerRank> RankOf(const WorkerFlags& flags) {
  if (flags.rank.empty() && flags.world_size.empty()) return RankFromEnvironment(std::getenv);
  return RankFromEnvironment([&flags](const char* name) -> const char* {
    if (std::string(name) == "RANK") return flags.rank.empty() ? "0" : flags.rank.c_str();
    if (std::string(name) != "WORLD_SIZE") return nullptr;
    return flags.world_size.empty() ? "1" : flags.world_size.c_str();
  });
}

absl::StatusOr<Report> RunWorker(const WorkerFlags& flags, Console& console) {
  CISTERN_ASSIGN_OR_RETURN(const WorkerRank worker, RankOf(flags));
  if (worker.world_size != 1) {
    return WithFix(absl::InvalidArgumentError(
                       absl::StrCat("this release trains with one worker; the world size is ",
                                    worker.world_size, " (from ", worker.source, ")")),
                   "start one cistern-worker; several servers are fine");
  }
  if (flags.train.model.fleet.servers.empty()) {
    return WithFix(absl::InvalidArgumentError("cistern-worker needs --servers host:port,..."),
                   "for servers in the same process: cistern train");
  }
  return RunTrain(flags.train, worker, console);
}

}  // namespace
}  // namespace cistern

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  cistern::CommandLine line("cistern-worker", "Trains a model against a fleet of servers.");
  auto flags = std::make_shared<cistern::WorkerFlags>();
  cistern::Command& root = line.root();
  cistern::AddTrainFlags(root, &flags->train);
  root.Flag("--rank", &flags->rank,
            {"INT",
             "Rank of this worker; else from the launcher's environment (RANK, "
             "OMPI_COMM_WORLD_RANK, SLURM_PROCID, PADDLE_TRAINER_ID, JOB_COMPLETION_INDEX).",
             "--rank 0"});
  root.Flag("--world-size", &flags->world_size,
            {"INT", "Number of workers; else from the launcher's environment.", "--world-size 1"});
  root.Example(cistern::kExample);
  root.Does([flags](cistern::Console& console) { return cistern::RunWorker(*flags, console); });
  return line.Run(argc, argv);
}
