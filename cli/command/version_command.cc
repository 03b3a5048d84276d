#include "cli/command/version_command.h"

#include "absl/strings/str_split.h"
#include "common/base/machine_limits.h"
#include "common/base/version.h"
#include "cuda/core/device.h"
#include "worker/data/format/parquet_reader.h"

namespace cistern {
namespace {

nlohmann::ordered_json JsonOf(const GpuInfo& gpu) {
  nlohmann::ordered_json json;
  json["index"] = gpu.index;
  json["name"] = gpu.name;
  json["memory_bytes"] = gpu.memory_bytes;
  json["compute_capability"] = absl::StrCat(gpu.compute_major, ".", gpu.compute_minor);
  json["multiprocessors"] = gpu.multiprocessors;
  return json;
}

}  // namespace

Report VersionReport() {
  const DeviceQuery query = QueryGpus();
  Report report;
  report.json["version"] = kVersion;
  report.json["compiler"] = __VERSION__;
  report.json["cuda"] = DescribeCudaBuild();
  const std::string parquet = ParquetLibrary();
  report.json["parquet"] = parquet;
  report.json["cores"] = CoreCount();
  report.json["gpus"] = nlohmann::ordered_json::array();
  for (const GpuInfo& gpu : query.gpus) report.json["gpus"].push_back(JsonOf(gpu));
  if (query.gpus.empty()) report.json["no_gpu"] = query.reason;
  report.text =
      absl::StrCat("cistern   ", kVersion, "\n", "compiler  ", __VERSION__, "\n", "cuda      ",
                   DescribeCudaBuild(), "\n", "parquet   ",
                   parquet.empty() ? "none: run scripts/install_deps.sh, then rebuild" : parquet,
                   "\n", "cores     ", CoreCount(), "\n");
  for (absl::string_view line : absl::StrSplit(DescribeGpus(query), '\n', absl::SkipEmpty())) {
    absl::StrAppend(&report.text, "gpu       ", line, "\n");
  }
  return report;
}

void AddVersionCommand(Command& root) {
  root.Add("version", "Prints the version, the build, and the GPUs of this machine.",
           "cistern version")
      .Does([](Console&) -> absl::StatusOr<Report> { return VersionReport(); });
}

}  // namespace cistern
