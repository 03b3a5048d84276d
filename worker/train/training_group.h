// The process groups of a training run: one for each thread that communicates, and a communicator
// for the steps.
#pragma once

#include <memory>
#include <string>

#include "worker/client/parameter_client.h"
#include "worker/group/process_group.h"
#include "worker/train/train_start.h"

namespace cistern {

struct TrainingGroup {
  std::unique_ptr<group::ProcessGroup> trainers;    // used by the training thread
  std::unique_ptr<group::ProcessGroup> stagers;     // used by the thread that prepares passes
  std::unique_ptr<group::ProcessGroup> committers;  // used by the thread that commits passes
  std::unique_ptr<Communicator> steps;              // used by the model

  // Waits until all workers have joined, and connects them on `device`.
  static absl::StatusOr<std::unique_ptr<TrainingGroup>> Form(const group::GroupPlace& place,
                                                             std::chrono::milliseconds limit,
                                                             DeviceContext& device);
  // Ends the groups and sends the reason to the other workers, whatever they wait for. Other
  // threads may be inside a call of the stagers or the committers.
  void Abort(const absl::Status& why);
};

// The run secret of the run whose worker 0 listens at `peers`. Worker 0 draws it and stores it on
// server 0, where the others read it. A stranger that reaches worker 0's port but not the servers
// does not know the secret. client: must outlive the returned object.
group::GroupSecret SecretOfRun(ParameterClient& client, uint32_t rank, const std::string& peers);

// Distributes worker 0's writer state to all workers.
absl::Status FollowWriter(group::ProcessGroup& group, ParameterClient& client);
// For workers other than 0: kInvalidArgument if this worker's server 0 does not know the writer's
// term. Server 0 is the first to learn a term, so such a server belongs to another fleet.
absl::Status CheckFleetOfWriter(ParameterClient& client);
// Broadcasts the start of worker 0.
absl::StatusOr<TrainStart> StartOfLeader(group::ProcessGroup& group, const TrainStart& own);

}  // namespace cistern
