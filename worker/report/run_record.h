// RUN/run.json: what a training run was and how it ended (docs/formats.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"

namespace cistern::report {

inline constexpr char kRunRecordFile[] = "run.json";

struct TableRecord {
  std::string name;
  uint64_t rows = 0;
  std::string digest;  // 16 hexadecimal digits; depends on the rows only
};

struct RunRecord {
  std::string run_id;            // names the run in logs and figures; a resumed run keeps it
  std::string version;           // of Cistern
  std::string model;             // path of the model file
  std::vector<std::string> set;  // --set
  std::string started, ended;    // UTC, "2026-11-23T15:34:30Z"; ended: empty while the run lasts
  std::string device;            // "cpu", "cuda"
  uint64_t workers = 1, servers = 1;
  std::string servers_at;  // --servers; empty: embedded
  std::string stopped_by;
  uint64_t samples = 0, iterations = 0, passes = 0, epochs = 0, rows = 0;
  double seconds = 0;
  // The score of data that was kept apart until the end (train --valid V --test T).
  struct Test {
    std::string file;
    uint64_t samples = 0;
    std::optional<double> auc;
    double logloss = 0;
  };
  std::optional<Test> test;
  std::optional<uint64_t> commit;   // the number of the last durable commit
  std::vector<TableRecord> tables;  // as of `commit`
  // Every value of the model file with overrides and defaults applied, in its order.
  std::vector<std::pair<std::string, std::string>> values;
};

std::string FormatRunRecord(const RunRecord& record);
// kDataLoss: not JSON, or another format.
absl::StatusOr<RunRecord> ParseRunRecord(const std::string& text);

}  // namespace cistern::report
