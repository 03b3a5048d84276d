#include "cli/command/shared_flags.h"

#include <filesystem>

#include "absl/strings/match.h"
#include "app/data/table_file.h"

namespace cistern::cli {

void AddFleetFlags(Command& command, app::FleetOptions* fleet, bool may_embed) {
  command.Flag("--servers", &fleet->servers,
               {"HOST:PORT,...",
                may_embed ? "All servers of a fleet; by default servers run inside this process."
                          : "All servers of the fleet.",
                "--servers 127.0.0.1:7700,127.0.0.1:7701", !may_embed});
  AddConnectionFlags(command, fleet);
  if (!may_embed) return;
  command.Flag(
      "--embedded-servers", &fleet->embedded_servers,
      {"INT", "Without --servers: number of servers in this process.", "--embedded-servers 2"});
}

void AddConnectionFlags(Command& command, app::FleetOptions* fleet) {
  command.Flag("--cluster", &fleet->cluster,
               {"NAME", "Name of the servers' cluster.", "--cluster ads"});
  command.Flag(
      "--connect-timeout", &fleet->connect_timeout,
      {"SECONDS", "How long to retry a server that does not answer.", "--connect-timeout 5"});
  AddTlsFlags(command, &fleet->tls);
}

void AddTlsFlags(Command& command, TlsFiles* tls) {
  *tls = TlsFromEnvironment();
  command.Flag("--tls-ca", &tls->ca,
               {"FILE",
                "Servers behind TLS: the certificate of the fleet's authority; CISTERN_TLS_CA sets "
                "the default, also for the other two.",
                "--tls-ca certs/ca.crt"});
  command.Flag(
      "--tls-cert", &tls->cert,
      {"FILE", "The certificate that this program shows them.", "--tls-cert certs/train.crt"});
  command.Flag("--tls-key", &tls->key, {"FILE", "Its private key.", "--tls-key certs/train.key"});
}

void AddTakeOverFlag(Command& command, app::FleetOptions* fleet) {
  const std::string name = command.name();
  fleet->program = absl::StartsWith(name, "cistern") ? name : absl::StrCat("cistern ", name);
  command.Switch(
      "--take-over", &fleet->take_over,
      {"",
       "Takes the fleet over from another writer: a training run started elsewhere stops "
       "at its last commit.",
       "--take-over"});
}

void AddDayFlag(Command& command, uint64_t* day) {
  command.Flag("--day", day,
               {"INT",
                "Today's day number, counted as in training; required for tables whose rows record "
                "the day they were last seen (day_id_decay).",
                "--day 20778"});
}

void AddPreconditionFlags(Command& command, app::Precondition* expected) {
  command.Flag("--expect-pass", &expected->pass,
               {"INT", "Fails unless this is the fleet's committed pass.", "--expect-pass 12"});
  command.Flag("--expect-commit", &expected->commit,
               {"INT", "Fails unless this is the fleet's durable commit.", "--expect-commit 12"});
}

void AddModelFileFlags(Command& command, app::ModelOptions* model) {
  command.Argument("MODEL", &model->config,
                   {"FILE", "The model file: HugeCTR 2.3 JSON, see docs/configuration.md.",
                    "deepfm.json", kRequired});
  command.List("--set", &model->set, false,
               {"PATH=VALUE", "Replaces a value of the model file; may be repeated.",
                "--set solver.batchsize=4096"});
}

void AddModelFlags(Command& command, app::ModelOptions* model) {
  AddModelFileFlags(command, model);
  command.Flag("--threads", &model->threads, ThreadsText("Number of compute threads"));
  command.Choice(
      "--device", &model->device,
      {"cpu|cuda", "Device that runs the model; cuda: the first GPU that the driver shows.",
       "--device cuda"});
  command.Switch(
      "--check-ops", &model->check_ops,
      {"", "On a GPU: waits after each op, so that an error names the op that failed; slow.",
       "--check-ops"});
  AddFleetFlags(command, &model->fleet, true);
  AddTakeOverFlag(command, &model->fleet);
}

void AddExportFlags(Command& command, app::ExportOptions* options) {
  AddModelFileFlags(command, &options->model);
  command.Flag(
      "--model", &options->model_dir,
      {"DIR", "The trained model: the --out folder of a training run, or the model folder in it.",
       "--model runs/deepfm"});
  command.Flag("--state", &options->state,
               {"DIR[@COMMIT]",
                "The data_dir of servers, or the --out folder of a training run with --durability "
                "commit: its newest commit, or the given one.",
                "--state fleet/data@12"});
  AddFleetFlags(command, &options->model.fleet, true);
  command.Flag("--threads", &options->model.threads, ThreadsText("Number of threads that read"));
}

void AddTablesFlag(Command& command, std::vector<std::string>* names) {
  command.List("--tables", names, true,
               {"TABLE,...", "Tables to export; without it, all that the form can hold.",
                "--tables wide,deep"});
}

absl::StatusOr<model::ModelConfig> ReadModelArgument(const app::ModelOptions& model) {
  absl::StatusOr<model::ModelConfig> config = app::ReadModelConfig(model);
  if (!config.ok()) return WithTrainFix(config.status(), model);
  return config;
}

absl::Status WithTrainFix(const absl::Status& status, const app::ModelOptions& model) {
  if (KindOf(status) != ErrorKind::kTable) return status;
  if (app::IsTable(model.config)) {
    return WithFix(status, absl::StrCat("cistern train ", model.config, " --out RUN"));
  }
  // Its ending says that it is something else.
  const std::string name = std::filesystem::path(model.config).replace_extension(".csv");
  return WithFix(status, absl::StrCat("cp ", model.config, " ", name, ", then cistern train ", name,
                                      " --out RUN"));
}

app::OnNote NotesOn(Console& console) {
  return [&console](const std::string& line) { console.Say(line); };
}

}  // namespace cistern::cli
