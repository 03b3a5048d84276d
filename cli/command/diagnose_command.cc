#include "cli/command/commands.h"

#include <memory>

#include "app/diagnose/build_facts.h"
#include "app/diagnose/bundle.h"
#include "cli/command/doctor_command.h"
#include "cli/command/shared_flags.h"
#include "cli/doctor/read_facts.h"
#include "cli/doctor/read_places.h"
#include "cli/terminal/aligned_text.h"
#include "common/base/amount_text.h"

namespace cistern::cli {
namespace {

// What cistern doctor says of this machine.
Report DoctorReport() {
  MachineFacts facts = ReadMachine();
  facts.folders.push_back(ReadFolder(".", false));
  return ReportOf(facts, Diagnose(facts), /*strict=*/false);
}

Report ReportOf(const app::Bundle& bundle, const std::string& folder) {
  Report report;
  report.json["folder"] = folder;
  report.json["files"] = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> rows = {{"FILE", "BYTES"}};
  for (const app::Bundle::File& file : bundle.files) {
    report.json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}});
    rows.push_back({file.name, BytesText(file.bytes)});
  }
  report.json["left_out"] = bundle.left_out;
  report.text = AlignedText(rows);
  for (const std::string& line : bundle.left_out) {
    absl::StrAppend(&report.text, "left out: ", line, "\n");
  }
  absl::StrAppend(&report.text, "\nRead the files in ", folder, " before you send them: tar czf ",
                  folder, ".tar.gz ", folder, "\n");
  return report;
}

}  // namespace

void AddDiagnoseCommand(Command& root) {
  auto options = std::make_shared<app::BundleOptions>();
  Command& command =
      root.Add("diagnose",
               "Collects the facts about a fault in a folder, for a bug report: this machine, its "
               "processes of Cistern, servers, figures, runs and logs; without secrets.",
               "cistern diagnose --out diagnosis --servers host1:7700,host2:7700 --run runs/a "
               "--log server.log");
  command.Flag("--out", &options->out,
               {"DIR", "The folder, which must not exist.", "--out diagnosis", kRequired});
  command.Flag("--servers", &options->servers,
               {"HOST:PORT,...", "Servers whose state is asked for.",
                "--servers 127.0.0.1:7700,127.0.0.1:7701"});
  AddTlsFlags(command, &options->tls);
  command.Flag("--timeout", &options->timeout,
               {"SECONDS", "How long to wait for an answer.", "--timeout 2"});
  command.List("--metrics", &options->metrics, true,
               {"HOST:PORT|SOCKET,...",
                "Where processes show their figures (--metrics_port, "
                "--metrics-socket), which are copied.",
                "--metrics 127.0.0.1:9700,127.0.0.1:9710"});
  command.List("--run", &options->runs, true,
               {"DIR,...", "Run folders: what the run was, and the end of its metrics.jsonl.",
                "--run runs/a"});
  command.List("--log", &options->logs, true,
               {"FILE,...", "Log files, of which the last MiB is copied.", "--log server.log"});
  command.Switch("--stacks", &options->stacks,
                 {"",
                  "Also the call stacks of the processes of Cistern on this machine, by gdb, "
                  "which stops each for about a second.",
                  "--stacks"});
  command.Does([options](Console&) -> absl::StatusOr<Report> {
    app::BundleOptions asked = *options;
    asked.texts.push_back({"version.json", app::JsonOf(app::ReadBuildFacts()).dump(2) + "\n"});
    asked.texts.push_back({"doctor.json", DoctorReport().json.dump(2) + "\n"});
    CISTERN_ASSIGN_OR_RETURN(const app::Bundle bundle, app::CollectBundle(asked));
    return ReportOf(bundle, asked.out);
  });
}

}  // namespace cistern::cli
