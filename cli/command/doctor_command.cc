#include "cli/command/doctor_command.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "cli/doctor/read_facts.h"
#include "cli/doctor/read_places.h"
#include "cli/terminal/exit_code.h"

namespace cistern::cli {
namespace {

constexpr uint64_t kDefaultPorts[] = {7700, 8080, 8081};  // of a server, and of cistern serve
constexpr size_t kMaxFactBytes = 1 << 20;

struct Flags {
  std::string facts;
  std::vector<std::string> data_dirs, folders, ports;
  bool strict = false;
};

const char* Word(Health health) {
  return health == Health::kGood ? "ok" : health == Health::kWarning ? "warning" : "problem";
}

absl::StatusOr<MachineFacts> FromFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::InvalidArgumentError(absl::StrCat("cannot read ", path));
  std::string text(kMaxFactBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMaxFactBytes)
    return absl::InvalidArgumentError(absl::StrCat(path, " has more than 1 MiB"));
  absl::StatusOr<MachineFacts> facts = FactsOf(text);
  if (facts.ok()) return facts;
  return WithFix(AddContext(WithCode(facts.status(), absl::StatusCode::kInvalidArgument), path),
                 "take the object \"facts\" of cistern doctor --json");
}

absl::StatusOr<MachineFacts> FromMachine(const Flags& flags) {
  std::vector<PortFacts> ports;
  for (const std::string& word : flags.ports) {
    uint64_t port = 0;
    if (!absl::SimpleAtoi(word, &port) || port == 0 || port > 65535) {
      return absl::InvalidArgumentError(
          absl::StrCat("--port: '", word, "' is not a port: 1 to 65535"));
    }
    ports.push_back(ReadPort(port, true));
  }
  if (ports.empty()) {
    for (const uint64_t port : kDefaultPorts) ports.push_back(ReadPort(port, false));
  }
  MachineFacts facts = ReadMachine();
  facts.ports = std::move(ports);
  for (const std::string& folder : flags.data_dirs)
    facts.folders.push_back(ReadFolder(folder, true));
  for (const std::string& folder : flags.folders)
    facts.folders.push_back(ReadFolder(folder, false));
  if (facts.folders.empty()) facts.folders.push_back(ReadFolder(".", false));
  return facts;
}

std::string Counted(size_t count, const std::string& one) {
  return absl::StrCat(count, " ", one, count == 1 ? "" : "s");
}

absl::StatusOr<Report> Run(const Flags& flags) {
  CISTERN_ASSIGN_OR_RETURN(const MachineFacts facts,
                           flags.facts.empty() ? FromMachine(flags) : FromFile(flags.facts));
  return ReportOf(facts, Diagnose(facts), flags.strict);
}

}  // namespace

Report ReportOf(const MachineFacts& facts, const std::vector<Finding>& findings, bool strict) {
  Report report;
  size_t width = 0, problems = 0, warnings = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.subject.size());
  report.json["checks"] = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    problems += finding.health == Health::kProblem;
    warnings += finding.health == Health::kWarning;
    absl::StrAppendFormat(&report.text, "%-7s  %-*s  %s\n", Word(finding.health),
                          static_cast<int>(width), finding.subject, OneLine(finding.found));
    if (!finding.fix.empty()) {
      absl::StrAppendFormat(&report.text, "%-7s  %-*s  fix: %s\n", "", static_cast<int>(width), "",
                            finding.fix);
    }
    report.json["checks"].push_back({{"subject", finding.subject},
                                     {"state", Word(finding.health)},
                                     {"found", finding.found},
                                     {"fix", finding.fix}});
  }
  report.json["problems"] = problems;
  report.json["warnings"] = warnings;
  report.json["facts"] = JsonOf(facts);
  const std::string counts =
      absl::StrCat(Counted(problems, "problem"), ", ", Counted(warnings, "warning"));
  if (problems + (strict ? warnings : 0) == 0) {
    absl::StrAppend(&report.text, "this machine is ready: ", counts, "\n");
  } else {
    report.outcome =
        WithFix(absl::InternalError(absl::StrCat("this machine is not ready: ", counts)),
                "do what the lines after \"fix:\" say, then run cistern doctor again");
  }
  return report;
}

void AddDoctorCommand(Command& root) {
  auto flags = std::make_shared<Flags>();
  Command& command = root.Add(
      "doctor",
      "Checks this machine before a training: processor, memory, limits, clock, disks, ports, "
      "GPUs, versions, data folders; prints how to fix what it finds.",
      "cistern doctor --data-dir /data/cistern --port 7700");
  command.List("--data-dir", &flags->data_dirs, true,
               {"DIR,...", "Folders where servers keep commits, also those of --out of a training.",
                "--data-dir /data/cistern"});
  command.List("--folder", &flags->folders, true,
               {"DIR,...", "Other folders that are to be written; without any, the current one.",
                "--folder runs"});
  command.List(
      "--port", &flags->ports, true,
      {"PORT,...",
       "Ports that servers are to use; without any, the default ones, whose use is a warning only.",
       "--port 7700,7701"});
  command.Switch("--strict", &flags->strict, {"", "Warnings count as problems.", "--strict"});
  command.Flag("--facts", &flags->facts,
               {"FILE",
                "Judges the facts in this file (the object \"facts\" of --json) instead of this "
                "machine; what is "
                "left out is good.",
                "--facts facts.json"});
  command.Does([flags](Console&) { return Run(*flags); });
}

}  // namespace cistern::cli
