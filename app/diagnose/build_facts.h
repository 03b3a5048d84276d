// What this build is, and the GPUs that it finds.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cuda/core/device.h"

namespace cistern::app {

struct BuildFacts {
  std::string version, compiler;
  std::string cuda;     // one line
  std::string parquet;  // the library that reads Parquet; empty: none
  int cores = 0;
  DeviceQuery gpus;
  std::string gpu_text;  // a line for each GPU, or why there is none
};

BuildFacts ReadBuildFacts();

nlohmann::ordered_json JsonOf(const BuildFacts& facts);

}  // namespace cistern::app
