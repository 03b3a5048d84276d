// Logging: a thin wrapper around spdlog that writes to standard error, so that standard output is
// free for results. Times are UTC.
//
// LogInfo: at most a few lines per minute in steady state. LogWarning: the problem may resolve
// itself. LogError: someone should look. An error is logged once, where it is handled.
//
// Text, the default:
//   2026-11-27 06:58:03.123Z warning server-2 refused Push from ipv4:10.0.0.3:51234: ...
// JSON, an object a line; `process` and `run` are there if they are set:
//   {"time":"2026-11-27T06:58:03.123Z","level":"warning","process":"server-2","message":"refused
//   ..."}
//
// Threads: any thread.
#pragma once

#include <string>

namespace cistern {

void LogInfo(const std::string& message);
void LogWarning(const std::string& message);
void LogError(const std::string& message);

// Sets the lowest level that is written: "info" (default), "warning", "error" or "off".
void SetLogLevel(const std::string& level);
// Sets the form of lines: "text" (default) or "json".
void SetLogFormat(const std::string& format);
bool LogsJson();
// A line of JSON as it is logged, without its end, for what is written at any level: the notes and
// the error of a command.
std::string JsonLogLine(const std::string& level, const std::string& message);
// Adds the name of this process to every line, e.g. "server-2".
void SetLogName(const std::string& name);
// Adds the id of the training run to every line of JSON.
void SetLogRun(const std::string& run);

}  // namespace cistern
