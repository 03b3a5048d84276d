#include "app/run/launcher_rank.h"

#include "absl/strings/numbers.h"
#include "common/base/host_address.h"

namespace cistern::app {
namespace {

struct Launcher {
  const char* rank;
  const char* world_size;
};

constexpr Launcher kLaunchers[] = {
    {"RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"SLURM_PROCID", "SLURM_NTASKS"},
    {"PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"},
    {"JOB_COMPLETION_INDEX", "JOB_COMPLETIONS"},
};

absl::StatusOr<uint32_t> ParseCount(const char* name, const char* text) {
  uint32_t value = 0;
  if (absl::SimpleAtoi(text, &value)) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("environment: ", name, "='", text, "' is not a whole number"));
}

}  // namespace

absl::Status CheckRank(const WorkerRank& worker) {
  if (worker.rank < worker.world_size) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("worker rank ", worker.rank,
                                                 " must be below the world size ",
                                                 worker.world_size, " (from ", worker.source, ")"));
}

absl::StatusOr<int> GpuOf(uint32_t local_rank, size_t gpu_num) {
  if (gpu_num == 1) return 0;
  if (local_rank < gpu_num) return static_cast<int>(local_rank);
  return absl::InvalidArgumentError(
      absl::StrCat("this worker has local rank ", local_rank, ", but the driver shows ", gpu_num,
                   " GPUs: start at most ", gpu_num,
                   " workers on this machine, or give each its own GPU (CUDA_VISIBLE_DEVICES)"));
}

absl::StatusOr<WorkerRank> RankFromEnvironment(
    const std::function<const char*(const char*)>& variable) {
  WorkerRank worker;
  worker.source = "none";
  for (const char* name : {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}) {
    const char* local = variable(name);
    if (local == nullptr) continue;
    CISTERN_ASSIGN_OR_RETURN(worker.local_rank, ParseCount(name, local));
    break;
  }
  const char *host = variable("MASTER_ADDR"), *port = variable("MASTER_PORT");
  if (host != nullptr && port != nullptr) worker.peers = HostPortText(host, port);
  for (const Launcher& launcher : kLaunchers) {
    const char* rank = variable(launcher.rank);
    const char* world_size = variable(launcher.world_size);
    if (rank == nullptr || world_size == nullptr) continue;
    worker.source = launcher.rank;
    CISTERN_ASSIGN_OR_RETURN(worker.rank, ParseCount(launcher.rank, rank));
    CISTERN_ASSIGN_OR_RETURN(worker.world_size, ParseCount(launcher.world_size, world_size));
    CISTERN_RETURN_IF_ERROR(CheckRank(worker));
    return worker;
  }
  return worker;
}

}  // namespace cistern::app
