// Flags that several commands share: those of the options of app.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/fleet/fleet_session.h"
#include "app/fleet/precondition.h"
#include "app/model/export_source.h"
#include "app/model/model_source.h"
#include "cli/terminal/command_line.h"
#include "cli/terminal/report.h"

namespace cistern::cli {

// Adds --servers, --cluster, --connect-timeout and those of TLS; with `may_embed` also
// --embedded-servers.
void AddFleetFlags(Command& command, app::FleetOptions* fleet, bool may_embed);

// Adds --cluster, --connect-timeout and those of TLS.
void AddConnectionFlags(Command& command, app::FleetOptions* fleet);

// Adds --tls-ca, --tls-cert and --tls-key, whose defaults come from the environment.
void AddTlsFlags(Command& command, TlsFiles* tls);

// Adds --take-over, for commands that claim the fleet as its only writer.
void AddTakeOverFlag(Command& command, app::FleetOptions* fleet);

// Adds --day: today's day number, for tables whose rows record days (day_id_decay).
void AddDayFlag(Command& command, uint64_t* day);

// Adds --expect-pass and --expect-commit.
void AddPreconditionFlags(Command& command, app::Precondition* expected);

// Adds MODEL.json and --set.
void AddModelFileFlags(Command& command, app::ModelOptions* model);

// Adds MODEL.json, --set, --threads, --device, --check-ops, and the fleet flags.
void AddModelFlags(Command& command, app::ModelOptions* model);

// Adds MODEL.json, --set, --model, --state, --servers and its companions, --threads.
void AddExportFlags(Command& command, app::ExportOptions* options);

// Adds --tables of the exports that write rows.
void AddTablesFlag(Command& command, std::vector<std::string>* names);

// app::ReadModelConfig, with the command that suits a table in place of a model file.
absl::StatusOr<model::ModelConfig> ReadModelArgument(const app::ModelOptions& model);

// Adds the command that suits a table which was given in place of a model file.
absl::Status WithTrainFix(const absl::Status& status, const app::ModelOptions& model);

// Shows the notes of a job on the console, which must outlive the job.
app::OnNote NotesOn(Console& console);

}  // namespace cistern::cli
