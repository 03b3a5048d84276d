// Which worker this process is, as its launcher says it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/base/status.h"

namespace cistern {

struct WorkerRank {
  uint32_t rank = 0;
  uint32_t world_size = 1;
  std::string source;       // for messages: "flags", "SLURM_PROCID", "none"
  uint32_t local_rank = 0;  // among those of this machine: which of its GPUs is this one's
  std::string peers;        // "host:port" where worker 0 is found; empty: nobody says
};

// The first of these pairs that the environment holds whole; {0, 1, "none"} if it holds none:
//   RANK / WORLD_SIZE, OMPI_COMM_WORLD_RANK / OMPI_COMM_WORLD_SIZE, SLURM_PROCID / SLURM_NTASKS,
//   PADDLE_TRAINER_ID / PADDLE_TRAINERS_NUM, JOB_COMPLETION_INDEX / JOB_COMPLETIONS
//   (Kubernetes sets only the index of an indexed job; the number comes from the pod's template).
// The local rank is the first of LOCAL_RANK, OMPI_COMM_WORLD_LOCAL_RANK and SLURM_LOCALID, or 0;
// the place of worker 0 is MASTER_ADDR:MASTER_PORT. variable: getenv, or a table of a test; null
// where a name is not set. kInvalidArgument: not a number, or rank >= world size.
absl::StatusOr<WorkerRank> RankFromEnvironment(
    const std::function<const char*(const char*)>& variable);

// The GPU of a worker where the driver shows `gpu_num`, at least one: the one of its local rank,
// or, where a launcher shows each worker only its own, that one. kInvalidArgument: more workers
// than GPUs.
absl::StatusOr<int> GpuOf(uint32_t local_rank, size_t gpu_num);

// kInvalidArgument unless rank < world_size.
absl::Status CheckRank(const WorkerRank& worker);

}  // namespace cistern
