// Logging: a thin wrapper around spdlog that writes to standard error, so that standard output is
// free for results.
//
// LogInfo: at most a few lines per minute in steady state. LogWarning: the problem may resolve
// itself. LogError: someone should look. An error is logged once, where it is handled.
#pragma once

#include <string>

namespace cistern {

void LogInfo(const std::string& message);
void LogWarning(const std::string& message);
void LogError(const std::string& message);

// Sets the lowest level that is written: "info" (default), "warning", "error" or "off".
void SetLogLevel(const std::string& level);
// Adds `name` to every line, e.g. "server-2".
void SetLogName(const std::string& name);

}  // namespace cistern
