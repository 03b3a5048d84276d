#include "app/run/run_files.h"

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/hash_text.h"
#include "common/base/names.h"
#include "common/base/secret.h"
#include "common/base/version.h"
#include "common/io/new_file.h"
#include "worker/report/page.h"
#include "worker/report/run_view.h"

namespace cistern::app {
namespace {

std::string Now() {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone());
}

// The start of the run that this process continues; now, if there is none.
std::string StartOf(const JobOptions& options) {
  LocalFileSystem files;
  if (!options.resume) return Now();
  const absl::StatusOr<report::RunView> earlier = report::ReadRun(files, options.out_dir);
  const bool known = earlier.ok() && earlier->record && !earlier->record->started.empty();
  return known ? earlier->record->started : Now();
}

}  // namespace

std::string RunIdOf(const std::string& folder, bool resume) {
  LocalFileSystem files;
  if (resume) {
    const absl::StatusOr<report::RunView> earlier = report::ReadRun(files, folder);
    if (earlier.ok() && earlier->record && CheckName(earlier->record->run_id).ok()) {
      return earlier->record->run_id;
    }
  }
  return HashText(NewSecret());
}

report::RunRecord BeginRecord(const model::ModelConfig& config, const ParameterClient& client,
                              const JobOptions& options) {
  report::RunRecord record;
  record.version = kVersion;
  record.model = config.path;
  record.started = StartOf(options);
  record.workers = options.world_size;
  record.servers = client.servers().size();
  record.values = config.values;
  return record;
}

void EndRecord(const TrainSummary& summary, const ParameterClient& client,
               report::RunRecord* record) {
  record->ended = Now();
  record->stopped_by = report::StopReasonName(summary.stopped_by);
  record->samples = summary.samples;
  record->iterations = summary.iterations;
  record->passes = summary.passes;
  record->epochs = summary.epochs;
  record->rows = summary.rows;
  record->seconds = summary.seconds;
  const v1::Manifest& manifest = client.manifest();
  if (manifest.commit() == 0) return;  // nothing is durable
  record->commit = manifest.commit();
  for (const auto& table : manifest.tables()) {
    record->tables.push_back({table.name(), table.rows(), HashText(table.digest())});
  }
}

absl::Status WriteRecord(const std::string& folder, const report::RunRecord& record) {
  LocalFileSystem files;
  const std::string path = absl::StrCat(folder, "/", report::kRunRecordFile);
  return WriteWhole(files, path, report::FormatRunRecord(record));
}

std::string WriteRunFiles(const std::string& folder, const TrainSummary& summary,
                          const ParameterClient& client, report::RunRecord record,
                          const OnNote& note) {
  EndRecord(summary, client, &record);
  LocalFileSystem files;
  const std::string page = folder + "/report.html";
  absl::Status status = WriteRecord(folder, record);
  status.Update(report::WriteReport(files, {folder}, page));
  if (status.ok()) return page;
  note(absl::StrCat("warning: the report of the run is incomplete: ", status.message()));
  return "";
}

}  // namespace cistern::app
