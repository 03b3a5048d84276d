// What cistern doctor finds out about a machine. The defaults are those of a machine without
// faults.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace cistern::cli {

inline constexpr uint64_t kNoLimit = UINT64_MAX;

// A folder that programs read or write.
struct FolderFacts {
  std::string path;
  bool is_data_folder = false;  // --data-dir of a fleet, or of an embedded run
  std::string trouble;          // why no file can be written there; empty: one can
  std::string file_system = "ext4";
  uint64_t bytes = 1ull << 40, free_bytes = 1ull << 39;
  uint64_t free_files = 1'000'000;
  double sync_ms = 1;          // writing and syncing 4 KiB; median of 5
  uint64_t newest_commit = 0;  // 0: none
  std::string state_trouble;   // why the commits in it cannot be read
};

// A TCP port of this machine.
struct PortFacts {
  uint64_t port = 7700;
  bool named = false;   // by --port; else a default
  std::string trouble;  // why no program can listen there; empty: one can
};

struct GpuFacts {
  std::string name;
  uint64_t memory_bytes = 0;
  std::string trouble;  // why it cannot be used
};

struct MachineFacts {
  std::string version, kernel, processor, parquet = "Arrow", cuda_build;
  std::string missing_instructions;  // of those that programs are built for: "avx2 fma"
  uint64_t cores = 8;                // that this process may use
  double load = 0;                   // processes that want to run, mean of a minute
  uint64_t memory_bytes = 64ull << 30,
           available_bytes = 48ull << 30;  // of the machine or container
  uint64_t overcommit = 0;                 // vm.overcommit_memory
  std::string huge_pages = "madvise";      // transparent ones: always, madvise, never
  uint64_t open_files = 65536;             // hard limits: ulimit -Hn, -Hu, -f, -v
  uint64_t processes = kNoLimit, file_bytes = kNoLimit, address_bytes = kNoLimit;
  double unix_seconds = 1'800'000'000;
  bool clock_synchronized = true;
  std::string clock_source = "tsc";
  bool has_localhost = true;                                     // the name is 127.0.0.1 or ::1
  uint64_t first_client_port = 32768, last_client_port = 60999;  // that the kernel gives to clients
  bool has_gpu_driver = false;                                   // of the kernel
  bool is_built_for_gpus = false;
  std::string no_gpu;  // why there are no GPUs
  std::vector<GpuFacts> gpus;
  std::vector<FolderFacts> folders;
  std::vector<PortFacts> ports;
};

nlohmann::ordered_json JsonOf(const MachineFacts& facts);

// The inverse; what is left out has its default. kInvalidArgument, naming the fact: not JSON, an
// unknown fact, or one of another type.
absl::StatusOr<MachineFacts> FactsOf(const std::string& json);

}  // namespace cistern::cli
