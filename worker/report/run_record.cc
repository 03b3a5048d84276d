#include "worker/report/run_record.h"

#include "worker/report/json_reader.h"

namespace cistern::report {
namespace {

constexpr uint64_t kRecordFormat = 1;

using Json = nlohmann::ordered_json;

}  // namespace

std::string FormatRunRecord(const RunRecord& record) {
  Json json;
  json["format"] = kRecordFormat;
  if (!record.run_id.empty()) json["run_id"] = record.run_id;
  json["version"] = record.version;
  json["model"] = record.model;
  json["set"] = record.set;
  json["started"] = record.started;
  json["ended"] = record.ended;
  json["device"] = record.device;
  json["workers"] = record.workers;
  json["servers"] = record.servers;
  json["servers_at"] = record.servers_at;
  json["stopped_by"] = record.stopped_by;
  json["samples"] = record.samples;
  json["iterations"] = record.iterations;
  json["passes"] = record.passes;
  json["epochs"] = record.epochs;
  json["rows"] = record.rows;
  json["seconds"] = record.seconds;
  if (record.test) {
    json["test"] = {{"file", record.test->file}, {"samples", record.test->samples}};
    if (record.test->auc) json["test"]["auc"] = *record.test->auc;
    json["test"]["logloss"] = record.test->logloss;
  }
  if (record.commit) json["commit"] = *record.commit;
  json["tables"] = Json::array();
  for (const TableRecord& table : record.tables) {
    json["tables"].push_back(
        {{"name", table.name}, {"rows", table.rows}, {"digest", table.digest}});
  }
  json["configuration"] = Json::object();
  for (const auto& [path, value] : record.values) json["configuration"][path] = value;
  return DumpJson(json);
}

absl::StatusOr<RunRecord> ParseRunRecord(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || CountIn(json, "format") != kRecordFormat) {
    return absl::DataLossError("not the record of a run of format 1");
  }
  RunRecord record;
  record.run_id = TextIn(json, "run_id");
  record.version = TextIn(json, "version");
  record.model = TextIn(json, "model");
  const Json* set = ListIn(json, "set");
  for (size_t i = 0; set != nullptr && i < set->size(); ++i) {
    if ((*set)[i].is_string()) record.set.push_back((*set)[i].get<std::string>());
  }
  record.started = TextIn(json, "started");
  record.ended = TextIn(json, "ended");
  record.device = TextIn(json, "device");
  record.workers = CountIn(json, "workers").value_or(1);
  record.servers = CountIn(json, "servers").value_or(1);
  record.servers_at = TextIn(json, "servers_at");
  record.stopped_by = TextIn(json, "stopped_by");
  record.samples = CountIn(json, "samples").value_or(0);
  record.iterations = CountIn(json, "iterations").value_or(0);
  record.passes = CountIn(json, "passes").value_or(0);
  record.epochs = CountIn(json, "epochs").value_or(0);
  record.rows = CountIn(json, "rows").value_or(0);
  record.seconds = NumberIn(json, "seconds").value_or(0);
  const auto test = json.find("test");
  if (test != json.end() && test->is_object()) {
    record.test = RunRecord::Test{TextIn(*test, "file"), CountIn(*test, "samples").value_or(0),
                                  NumberIn(*test, "auc"), NumberIn(*test, "logloss").value_or(0)};
  }
  record.commit = CountIn(json, "commit");
  const Json* tables = ListIn(json, "tables");
  for (size_t i = 0; tables != nullptr && i < tables->size(); ++i) {
    const Json& table = (*tables)[i];
    record.tables.push_back(
        {TextIn(table, "name"), CountIn(table, "rows").value_or(0), TextIn(table, "digest")});
  }
  const auto values = json.find("configuration");
  if (values != json.end() && values->is_object()) {
    for (const auto& [path, value] : values->items()) {
      if (value.is_string()) record.values.emplace_back(path, value.get<std::string>());
    }
  }
  return record;
}

}  // namespace cistern::report
