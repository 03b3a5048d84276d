#include "app/fleet/fleet_rates.h"

#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "app/job_calls.h"

namespace cistern::app {
namespace {

// The growth of a count; 0 if it fell.
double Growth(uint64_t before, uint64_t after) {
  return after > before ? static_cast<double>(after - before) : 0;
}

const ServerState* FindServer(const FleetStatus& status, const std::string& address) {
  for (const ServerState& server : status.servers) {
    if (server.address == address && server.reached.ok()) return &server;
  }
  return nullptr;
}

}  // namespace

std::vector<std::optional<ServerRates>> RatesBetween(const FleetMoment& before,
                                                     const FleetMoment& after) {
  std::vector<std::optional<ServerRates>> rates(after.status.servers.size());
  const double seconds = absl::ToDoubleSeconds(after.time - before.time);
  if (seconds <= 0) return rates;
  for (size_t i = 0; i < rates.size(); ++i) {
    const ServerState& now = after.status.servers[i];
    const ServerState* const then = FindServer(before.status, now.address);
    if (!now.reached.ok() || then == nullptr) continue;
    const v1::StatsReply &a = then->stats, &b = now.stats;
    if (b.uptime_seconds() < a.uptime_seconds()) continue;  // restarted: its counts began anew
    rates[i] = {Growth(a.pulled_keys(), b.pulled_keys()) / seconds,
                Growth(a.pushed_keys(), b.pushed_keys()) / seconds,
                Growth(a.committed_pass(), b.committed_pass()) / seconds};
  }
  return rates;
}

absl::StatusOr<uint64_t> WatchFleet(
    const WatchFleetOptions& options, const std::atomic<bool>* stop,
    const std::function<void(const FleetMoment&, const std::vector<std::optional<ServerRates>>&)>&
        show) {
  if (!(options.interval >= 0.05 && options.interval <= 3600)) {
    return WithOptions(absl::InvalidArgumentError(absl::StrCat("an interval of ", options.interval,
                                                               ": expected seconds, 0.05 to 3600")),
                       {"interval"});
  }
  std::optional<FleetMoment> before;
  uint64_t shown = 0;
  while (stop == nullptr || !*stop) {
    const absl::Time begin = absl::Now();
    CISTERN_ASSIGN_OR_RETURN(FleetStatus status, AskFleet(options.status));
    FleetMoment now = {std::move(status), absl::Now()};
    if (before) {
      show(now, RatesBetween(*before, now));
      if (++shown == options.count) break;
    }
    before = std::move(now);
    SleepUnless(stop, begin + absl::Seconds(options.interval) - absl::Now());
  }
  return shown;
}

nlohmann::ordered_json JsonOf(const FleetMoment& moment,
                              const std::vector<std::optional<ServerRates>>& rates) {
  nlohmann::ordered_json json = JsonOf(moment.status);
  json["time"] = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", moment.time, absl::UTCTimeZone());
  for (size_t i = 0; i < rates.size(); ++i) {
    if (!rates[i]) continue;
    json["servers"][i]["rates"] = {{"pulled_keys_per_second", rates[i]->pulled_keys},
                                   {"pushed_keys_per_second", rates[i]->pushed_keys},
                                   {"passes_per_second", rates[i]->passes}};
  }
  return json;
}

}  // namespace cistern::app
