#include "common/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace cistern {
namespace {

constexpr auto kUtc = spdlog::pattern_time_type::utc;
constexpr char kTextPattern[] = "%Y-%m-%d %H:%M:%S.%eZ %^%l%$ %v";

// What lines say beside their message.
struct LineStyle {
  absl::Mutex mutex;
  bool json ABSL_GUARDED_BY(mutex) = false;
  std::string name ABSL_GUARDED_BY(mutex), run ABSL_GUARDED_BY(mutex);
};

LineStyle& Style() {
  static LineStyle* const style = new LineStyle;  // threads may log until the process ends
  return *style;
}

spdlog::logger& Logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = spdlog::stderr_color_mt("cistern");
    made->set_pattern(kTextPattern, kUtc);
    made->flush_on(spdlog::level::info);
    return made;
  }();
  return *logger;
}

std::string JsonText(const std::string& level, const std::string& message, const LineStyle& style)
    ABSL_SHARED_LOCKS_REQUIRED(style.mutex) {
  nlohmann::ordered_json line;
  line["time"] = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone());
  line["level"] = level;
  if (!style.name.empty()) line["process"] = style.name;
  if (!style.run.empty()) line["run"] = style.run;
  line["message"] = message;
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void Write(spdlog::level::level_enum level, const char* name, const std::string& message) {
  if (!Logger().should_log(level)) return;
  std::string text;
  {
    LineStyle& style = Style();
    const absl::MutexLock lock(&style.mutex);
    if (style.json) {
      text = JsonText(name, message, style);
    } else if (!style.name.empty()) {
      text = style.name + " " + message;
    } else {
      text = message;
    }
  }
  Logger().log(level, "{}", text);
}

}  // namespace

void LogInfo(const std::string& message) {
  Write(spdlog::level::info, "info", message);
}
void LogWarning(const std::string& message) {
  Write(spdlog::level::warn, "warning", message);
}
void LogError(const std::string& message) {
  Write(spdlog::level::err, "error", message);
}

void SetLogLevel(const std::string& level) {
  Logger().set_level(spdlog::level::from_str(level));
}

void SetLogFormat(const std::string& format) {
  LineStyle& style = Style();
  const absl::MutexLock lock(&style.mutex);
  style.json = format == "json";
  if (style.json) {
    Logger().set_pattern("%v");
  } else {
    Logger().set_pattern(kTextPattern, kUtc);
  }
}

std::string JsonLogLine(const std::string& level, const std::string& message) {
  LineStyle& style = Style();
  const absl::MutexLock lock(&style.mutex);
  return JsonText(level, message, style);
}

bool LogsJson() {
  LineStyle& style = Style();
  const absl::MutexLock lock(&style.mutex);
  return style.json;
}

void SetLogName(const std::string& name) {
  LineStyle& style = Style();
  const absl::MutexLock lock(&style.mutex);
  style.name = name;
}

void SetLogRun(const std::string& run) {
  LineStyle& style = Style();
  const absl::MutexLock lock(&style.mutex);
  style.run = run;
}

}  // namespace cistern
