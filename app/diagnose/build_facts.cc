#include "app/diagnose/build_facts.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/machine_limits.h"
#include "common/base/version.h"
#include "worker/data/format/parquet_reader.h"

namespace cistern::app {

BuildFacts ReadBuildFacts() {
  BuildFacts facts;
  facts.version = kVersion;
  facts.compiler = __VERSION__;
  facts.cuda = DescribeCudaBuild();
  facts.parquet = data::ParquetLibrary();
  facts.cores = CoreCount();
  facts.gpus = QueryGpus();
  facts.gpu_text = DescribeGpus(facts.gpus);
  return facts;
}

nlohmann::ordered_json JsonOf(const BuildFacts& facts) {
  nlohmann::ordered_json json;
  json["version"] = facts.version;
  json["compiler"] = facts.compiler;
  json["cuda"] = facts.cuda;
  json["parquet"] = facts.parquet;
  json["cores"] = facts.cores;
  json["gpus"] = nlohmann::ordered_json::array();
  for (const GpuInfo& gpu : facts.gpus.gpus) {
    json["gpus"].push_back(
        {{"index", gpu.index},
         {"name", gpu.name},
         {"memory_bytes", gpu.memory_bytes},
         {"compute_capability", absl::StrCat(gpu.compute_major, ".", gpu.compute_minor)},
         {"multiprocessors", gpu.multiprocessors}});
  }
  if (facts.gpus.gpus.empty()) json["no_gpu"] = facts.gpus.reason;
  return json;
}

}  // namespace cistern::app
