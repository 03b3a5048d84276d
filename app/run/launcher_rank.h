// The rank of this worker process, read from its launcher's environment.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/base/status.h"

namespace cistern::app {

struct WorkerRank {
  uint32_t rank = 0;
  uint32_t world_size = 1;
  std::string source;       // for messages: "flags", "SLURM_PROCID", "none"
  uint32_t local_rank = 0;  // among the workers on this machine; selects the GPU
  std::string peers;        // "host:port" where worker 0 listens; empty: unknown
};

// The first of these pairs with both variables set; {0, 1, "none"} if there is none:
//   RANK / WORLD_SIZE, OMPI_COMM_WORLD_RANK / OMPI_COMM_WORLD_SIZE, SLURM_PROCID / SLURM_NTASKS,
//   PADDLE_TRAINER_ID / PADDLE_TRAINERS_NUM, JOB_COMPLETION_INDEX / JOB_COMPLETIONS
//   (Kubernetes sets only the index of an indexed job; the pod template must set the number).
// local_rank is the first of LOCAL_RANK, OMPI_COMM_WORLD_LOCAL_RANK and SLURM_LOCALID, or 0. peers
// is MASTER_ADDR:MASTER_PORT.
//
// variable: getenv, or a test's lookup; returns null for an unset name.
// kInvalidArgument: a value is not a number, or rank >= world size.
absl::StatusOr<WorkerRank> RankFromEnvironment(
    const std::function<const char*(const char*)>& variable);

// The index of a worker's GPU among the `gpu_num` >= 1 GPUs that the driver shows: its local rank,
// or 0 if there is only one, because launchers may show each worker only its own GPU.
// kInvalidArgument: more workers than GPUs.
absl::StatusOr<int> GpuOf(uint32_t local_rank, size_t gpu_num);

// kInvalidArgument unless rank < world_size.
absl::Status CheckRank(const WorkerRank& worker);

}  // namespace cistern::app
