// Logging: a thin front to spdlog, on standard error, so that standard output stays for results.
//
// LogInfo: at most a few lines a minute in steady state. LogWarning: may heal itself. LogError: a
// person should look. An error is logged once, where it is handled.
#pragma once

#include <string>

namespace cistern {

void LogInfo(const std::string& message);
void LogWarning(const std::string& message);
void LogError(const std::string& message);

// Sets the lowest level that is written: "info" (default), "warning", "error" or "off".
void SetLogLevel(const std::string& level);
// Puts `name` into every line, e.g. "server-2".
void SetLogName(const std::string& name);

}  // namespace cistern
