#include "cli/doctor/diagnosis.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/doctor/place_diagnosis.h"
#include "common/base/amount_text.h"

namespace cistern::cli {
namespace {

constexpr uint64_t kGiB = 1ull << 30;
constexpr double kYear2026 = 1'767'225'600;  // this version is younger

std::string LimitText(uint64_t limit) {
  return limit == kNoLimit ? "unlimited" : absl::StrCat(limit);
}

Finding Good(const std::string& subject, const std::string& found) {
  return {subject, Health::kGood, found, ""};
}

Finding Processor(const MachineFacts& facts) {
  const std::string found = absl::StrCat(facts.processor, facts.processor.empty() ? "" : ", ",
                                         facts.cores, facts.cores == 1 ? " core" : " cores");
  if (!facts.missing_instructions.empty()) {
    return {"processor", Health::kProblem,
            absl::StrCat(found, "; it lacks ", facts.missing_instructions),
            "use a machine with AVX2 (Intel since 2013, AMD since 2015), or build with "
            "-DCISTERN_ARCH= for this one"};
  }
  if (facts.cores < 2) {
    return {"processor", Health::kWarning, absl::StrCat(found, ": servers and training share it"),
            "give the machine or container 2 cores or more"};
  }
  return Good("processor", found);
}

Finding Load(const MachineFacts& facts) {
  const std::string found =
      absl::StrFormat("%.1f processes want %d cores", facts.load, facts.cores);
  if (facts.load <= 1.5 * static_cast<double>(facts.cores)) return Good("load", found);
  return {"load", Health::kWarning, found + ": training shares them and is slower",
          "see what runs with `top`, and stop it or train later"};
}

Finding Memory(const MachineFacts& facts) {
  const std::string found = absl::StrCat(BytesText(facts.available_bytes), " of ",
                                         BytesText(facts.memory_bytes), " are free");
  if (facts.available_bytes < kGiB / 4) {
    return {"memory", Health::kProblem, found + ": too little to train or serve",
            "stop other programs, or raise the container's limit"};
  }
  if (facts.available_bytes < 2 * kGiB) {
    return {"memory", Health::kWarning, found,
            "see what a model needs with `cistern plan MODEL.json`; make passes smaller with --set "
            "cistern.pass_memory_mb=256"};
  }
  return Good("memory", found);
}

Finding Overcommit(const MachineFacts& facts) {
  if (facts.overcommit != 2)
    return Good("overcommit", absl::StrCat("vm.overcommit_memory is ", facts.overcommit));
  return {"overcommit", Health::kWarning,
          "vm.overcommit_memory is 2: memory that is reserved but not used counts, and allocations "
          "can fail early",
          "sudo sysctl vm.overcommit_memory=0"};
}

Finding HugePages(const MachineFacts& facts) {
  if (facts.huge_pages == "always" || facts.huge_pages == "madvise")
    return Good("huge pages", facts.huge_pages);
  return {"huge pages", Health::kWarning,
          absl::StrCat(facts.huge_pages.empty() ? "unknown" : facts.huge_pages,
                       ": look-ups in large tables are slower"),
          "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"};
}

Finding OpenFiles(const MachineFacts& facts) {
  Finding finding = Good("open files", LimitText(facts.open_files));
  if (facts.open_files >= 4096) return finding;
  finding.health = facts.open_files < 512 ? Health::kProblem : Health::kWarning;
  absl::StrAppend(&finding.found, ": a server accepts ",
                  facts.open_files < 512 ? "hardly any connections" : "fewer connections");
  finding.fix =
      "raise it: ulimit -n 65536; under systemd: LimitNOFILE=65536; for good: "
      "/etc/security/limits.conf";
  return finding;
}

Finding Processes(const MachineFacts& facts) {
  Finding finding = Good("threads", LimitText(facts.processes));
  if (facts.processes >= 2048) return finding;
  finding.health = facts.processes < 256 ? Health::kProblem : Health::kWarning;
  absl::StrAppend(&finding.found,
                  ": a server starts some 50 threads, a trainer one per core and more");
  finding.fix =
      "raise it: ulimit -u 8192; under systemd: TasksMax=8192; in a container: --pids-limit 8192";
  return finding;
}

Finding Sizes(const MachineFacts& facts) {
  if (facts.file_bytes != kNoLimit) {
    return {"file size", Health::kProblem,
            absl::StrCat("files end at ", BytesText(facts.file_bytes), ": commits fail"),
            "ulimit -f unlimited"};
  }
  if (facts.address_bytes != kNoLimit) {
    return {"address space", Health::kWarning,
            absl::StrCat("limited to ", BytesText(facts.address_bytes),
                         ": files are mapped, and mapping fails earlier"),
            "ulimit -v unlimited"};
  }
  return Good("file size", "unlimited");
}

Finding Clock(const MachineFacts& facts) {
  if (facts.unix_seconds < kYear2026) {
    return {"clock", Health::kProblem, "the date is wrong, which breaks certificates and file ages",
            "sudo timedatectl set-ntp true, or sudo date -s 'YYYY-MM-DD HH:MM'"};
  }
  for (const char* slow : {"hpet", "acpi_pm", "jiffies", "refined-jiffies"}) {
    if (facts.clock_source != slow) continue;
    return {"clock", Health::kWarning, absl::StrCat("source ", slow, ": reading the time is slow"),
            "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource"};
  }
  if (!facts.clock_synchronized) {
    return {"clock", Health::kWarning, "not synchronized: logs of several machines do not line up",
            "sudo timedatectl set-ntp true (a container takes the time of its host)"};
  }
  return Good("clock", absl::StrCat("synchronized, source ", facts.clock_source));
}

Finding Versions(const MachineFacts& facts) {
  const std::string found =
      absl::StrCat("cistern ", facts.version, ", Linux ", facts.kernel, ", Parquet by ",
                   facts.parquet.empty() ? "nothing" : facts.parquet);
  if (!facts.parquet.empty()) return Good("versions", found);
  return {"versions", Health::kWarning, found + ": Parquet files and object stores are refused",
          "run scripts/install_deps.sh and build again, or install a package of a release"};
}

std::vector<Finding> Gpus(const MachineFacts& facts) {
  if (!facts.is_built_for_gpus && facts.has_gpu_driver) {
    return {{"GPU", Health::kWarning,
             "there is a GPU driver, but this build has no CUDA: training uses the processor",
             "install the package with CUDA, or build with the CUDA toolkit 12 or newer on PATH"}};
  }
  if (!facts.has_gpu_driver && facts.gpus.empty())
    return {Good("GPU", "none; training uses the processor")};
  if (facts.gpus.empty()) {
    return {{"GPU", Health::kProblem, absl::StrCat("none can be used: ", facts.no_gpu),
             "see `nvidia-smi`; install a newer driver, or start the container with --gpus all"}};
  }
  std::vector<Finding> findings;
  for (const GpuFacts& gpu : facts.gpus) {
    const std::string found = absl::StrCat(gpu.name, ", ", BytesText(gpu.memory_bytes));
    findings.push_back(
        gpu.trouble.empty()
            ? Good("GPU", found)
            : Finding{"GPU", Health::kProblem, absl::StrCat(found, ": ", gpu.trouble),
                      "train with --device cpu, or choose another GPU with CUDA_VISIBLE_DEVICES"});
  }
  return findings;
}

Finding Localhost(const MachineFacts& facts) {
  if (facts.has_localhost) return Good("localhost", "resolves");
  return {"localhost", Health::kProblem, "the name does not resolve to this machine",
          "echo '127.0.0.1 localhost' | sudo tee -a /etc/hosts"};
}

}  // namespace

std::vector<Finding> Diagnose(const MachineFacts& facts) {
  std::vector<Finding> findings = {
      Versions(facts),  Processor(facts), Load(facts),      Memory(facts), Overcommit(facts),
      HugePages(facts), OpenFiles(facts), Processes(facts), Sizes(facts),  Clock(facts)};
  for (Finding& finding : Gpus(facts)) findings.push_back(std::move(finding));
  for (const FolderFacts& folder : facts.folders) {
    for (Finding& finding : DiagnoseFolder(folder)) findings.push_back(std::move(finding));
  }
  findings.push_back(Localhost(facts));
  for (const PortFacts& port : facts.ports) findings.push_back(DiagnosePort(port, facts));
  return findings;
}

}  // namespace cistern::cli
