// cistern plan: estimates the memory and disk that a model needs on servers and workers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/terminal/command_line.h"
#include "worker/model/config/model_config.h"

namespace cistern {

struct PlanFlags {
  std::string config;
  std::vector<std::string> set, rows;  // rows: "TABLE=COUNT"
  uint64_t servers = 1, workers = 1;
};

// kInvalidArgument: training would refuse the model; --rows names a table that the model does not
// have.
absl::StatusOr<Report> Plan(const ModelConfig& config, const PlanFlags& flags);

void AddPlanCommand(Command& root);

}  // namespace cistern
