// Flags that say where Prometheus reads the figures of a process.
#pragma once

#include <string>

#include "app/train/train_run.h"
#include "cli/terminal/command_line.h"

namespace cistern::cli {

struct MetricsFlags {
  std::string port;  // a number; empty: none
  std::string bind;  // empty: loopback
  std::string socket;
};

// Adds --metrics-port, --metrics-bind and --metrics-socket.
void AddMetricsFlags(Command& command, MetricsFlags* flags);

// kInvalidArgument: the port is not a number from 0 to 65535, or there is an address without one.
absl::StatusOr<MetricsPlace> MetricsPlaceOf(const MetricsFlags& flags);

}  // namespace cistern::cli
