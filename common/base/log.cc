#include "common/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace cistern {
namespace {

spdlog::logger& Logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = spdlog::stderr_color_mt("cistern");
    made->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
    made->flush_on(spdlog::level::info);
    return made;
  }();
  return *logger;
}

}  // namespace

void LogInfo(const std::string& message) {
  Logger().info("{}", message);
}
void LogWarning(const std::string& message) {
  Logger().warn("{}", message);
}
void LogError(const std::string& message) {
  Logger().error("{}", message);
}

void SetLogLevel(const std::string& level) {
  Logger().set_level(spdlog::level::from_str(level));
}

void SetLogName(const std::string& name) {
  Logger().set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ " + name + " %v");
}

}  // namespace cistern
