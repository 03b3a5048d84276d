// cistern plan: what a model will take on servers, workers and disks, before anything starts.
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
  uint64_t servers = 1;
};

// kInvalidArgument: what training would refuse; a table of --rows that the model does not have;
// a table whose rows neither the file nor --rows says.
absl::StatusOr<Report> Plan(const ModelConfig& config, const PlanFlags& flags);

void AddPlanCommand(Command& root);

}  // namespace cistern
