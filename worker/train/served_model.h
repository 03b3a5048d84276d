// A model with the parameters that the servers hold.
#pragma once

#include <memory>

#include "common/base/status.h"
#include "cuda/core/device_context.h"
#include "worker/client/parameter_client.h"
#include "worker/model/graph/model.h"
#include "worker/train/jobs.h"

namespace cistern {

// Creates the model and its tables, and reads its dense parameters. The caller limits its threads
// (ThreadLimit). kFailedPrecondition: the servers hold none. Other errors: those of Model::Create
// and of the client.
absl::StatusOr<std::unique_ptr<model::Model>> ServedModel(const model::ModelConfig& config,
                                                          ParameterClient& client,
                                                          DeviceContext& device);

}  // namespace cistern
