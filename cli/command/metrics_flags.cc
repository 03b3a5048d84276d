#include "cli/command/metrics_flags.h"

#include "absl/strings/numbers.h"

namespace cistern::cli {

void AddMetricsFlags(Command& command, MetricsFlags* flags) {
  command.Flag("--metrics-port", &flags->port,
               {"INT",
                "Port where Prometheus reads the figures of this process, at /metrics; 0 picks a "
                "free one and prints it. By default there is none.",
                "--metrics-port 9710"});
  command.Flag("--metrics-bind", &flags->bind,
               {"ADDRESS",
                "Address of that port. Any other than loopback shows the figures, which are "
                "counts and names of tables, to everyone who reaches it. Default: 127.0.0.1.",
                "--metrics-bind 10.0.0.7"});
  command.Flag(
      "--metrics-socket", &flags->socket,
      {"FILE", "Unix socket for the same figures.", "--metrics-socket /run/cistern/train.sock"});
}

absl::StatusOr<MetricsPlace> MetricsPlaceOf(const MetricsFlags& flags) {
  MetricsPlace place;
  place.socket = flags.socket;
  if (flags.port.empty()) {
    if (flags.bind.empty()) return place;
    return WithOptions(
        absl::InvalidArgumentError("an address without a port: nothing listens there"),
        {"metrics_bind", "metrics_port"});
  }
  if (!flags.bind.empty()) place.bind = flags.bind;
  int port = 0;
  if (!absl::SimpleAtoi(flags.port, &port) || port < 0 || port > 65535) {
    return WithOptions(absl::InvalidArgumentError(absl::StrCat("a port of '", flags.port,
                                                               "': expected a number, 0 to 65535")),
                       {"metrics_port"});
  }
  place.port = port;
  return place;
}

}  // namespace cistern::cli
