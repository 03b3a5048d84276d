// The workers of a training run, as the run's parts use them: each thread, and the steps, talk
// among themselves.
#pragma once

#include <memory>
#include <string>

#include "worker/client/parameter_client.h"
#include "worker/group/process_group.h"
#include "worker/train/train_start.h"

namespace cistern {

struct TrainingGroup {
  std::unique_ptr<ProcessGroup> trainers;  // of the thread that trains
  std::unique_ptr<ProcessGroup> stagers;   // of the thread that makes passes
  std::unique_ptr<Communicator> steps;     // of the model

  // Waits until all are there, and joins them on `device`.
  static absl::StatusOr<std::unique_ptr<TrainingGroup>> Form(const GroupPlace& place,
                                                             std::chrono::milliseconds limit,
                                                             DeviceContext& device);
  // Tells the others, whatever they wait for, why this worker does not go on. Any thread may be in
  // a call of the stagers.
  void GiveUp(const absl::Status& why);
};

// How the workers of a run know each other whose worker 0 listens at `peers`: worker 0 draws a
// secret and leaves it on server 0, where the others fetch it. Who reaches the port of worker 0,
// and not the servers, does not know it. client: outlives what is returned.
GroupSecret SecretOfRun(ParameterClient& client, uint32_t rank, const std::string& peers);

// The state of the fleet as worker 0 sees it becomes that of all.
absl::Status FollowWriter(ProcessGroup& group, ParameterClient& client);
// Of a worker that follows: kInvalidArgument if its server 0 never heard of the writer's epoch,
// which it is the first to hear of. So it is of another fleet.
absl::Status CheckFleetOfWriter(ParameterClient& client);
// The start of worker 0.
absl::StatusOr<TrainStart> StartOfLeader(ProcessGroup& group, const TrainStart& own);

}  // namespace cistern
