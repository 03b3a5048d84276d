#include "worker/train/metrics_log.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

namespace cistern {
namespace {

template <typename T>
void Put(nlohmann::ordered_json& line, const char* name, const std::optional<T>& value) {
  if (value) line[name] = *value;
}

std::string ToLine(const Progress& p) {
  nlohmann::ordered_json line;
  line["event"] = p.event;
  line["iter"] = p.iter;
  line["samples"] = p.samples;
  Put(line, "epoch", p.epoch);
  Put(line, "loss", p.loss);
  Put(line, "lr", p.lr);
  Put(line, "auc", p.auc);
  Put(line, "logloss", p.logloss);
  Put(line, "unseen_keys", p.unseen_keys);
  Put(line, "rows", p.rows);
  Put(line, "pass", p.pass);
  line["seconds"] = p.seconds;
  line["samples_per_second"] = p.samples_per_second;
  return line.dump() + "\n";
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsLog>> MetricsLog::Create(
    const std::string& out_dir, std::function<void(const Progress&)> watch) {
  std::unique_ptr<MetricsLog> log(new MetricsLog);
  log->watch_ = std::move(watch);
  log->start_ = std::chrono::steady_clock::now();
  if (out_dir.empty()) return log;
  std::error_code error;
  std::filesystem::create_directories(out_dir, error);
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot create the output folder ", out_dir, ": ", error.message()));
  }
  const std::string path = out_dir + "/metrics.jsonl";
  log->file_ = std::fopen(path.c_str(), "w");
  if (log->file_ == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
  }
  return log;
}

MetricsLog::~MetricsLog() {
  if (file_ != nullptr) std::fclose(file_);
}

double MetricsLog::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void MetricsLog::Write(Progress progress) {
  progress.seconds = seconds();
  Mark& mark = marks_[progress.event];
  const double elapsed = progress.seconds - mark.seconds;
  if (elapsed > 0 && progress.samples >= mark.samples) {
    progress.samples_per_second = static_cast<double>(progress.samples - mark.samples) / elapsed;
  }
  mark = {progress.seconds, progress.samples};
  if (file_ != nullptr) {
    const std::string line = ToLine(progress);
    std::fwrite(line.data(), 1, line.size(), file_);
    std::fflush(file_);  // a watcher reads along; a line is the unit
  }
  if (watch_) watch_(progress);
}

}  // namespace cistern
