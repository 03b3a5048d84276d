#include "app/fleet/fleet_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace cistern::app {
namespace {

ServerState Server(const std::string& address, double uptime, uint64_t pulled, uint64_t pushed,
                   uint64_t pass) {
  ServerState server;
  server.address = address;
  server.stats.set_uptime_seconds(uptime);
  server.stats.set_pulled_keys(pulled);
  server.stats.set_pushed_keys(pushed);
  server.stats.set_committed_pass(pass);
  return server;
}

FleetMoment At(double seconds, std::vector<ServerState> servers) {
  return {StatusOf(std::move(servers), false), absl::UnixEpoch() + absl::Seconds(seconds)};
}

TEST(FleetRates, AreTheGrowthOfCountsOverTime) {
  const FleetMoment before = At(10, {Server("a:1", 100, 1000, 50, 7)});
  const FleetMoment after = At(12, {Server("a:1", 102, 4000, 60, 8)});
  const auto rates = RatesBetween(before, after);
  ASSERT_EQ(rates.size(), 1u);
  ASSERT_TRUE(rates[0]);
  EXPECT_DOUBLE_EQ(rates[0]->pulled_keys, 1500);
  EXPECT_DOUBLE_EQ(rates[0]->pushed_keys, 5);
  EXPECT_DOUBLE_EQ(rates[0]->passes, 0.5);
  const auto json = JsonOf(after, rates);
  EXPECT_EQ(json["time"], "1970-01-01T00:00:12.000Z");
  EXPECT_DOUBLE_EQ(json["servers"][0]["rates"]["pulled_keys_per_second"], 1500);
}

TEST(FleetRates, AreUnknownAfterARestartAndOfAServerThatIsDown) {
  ServerState down = Server("b:2", 100, 1, 1, 1);
  down.reached = absl::UnavailableError("refused");
  const FleetMoment before =
      At(10, {Server("a:1", 100, 1000, 50, 7), down, Server("c:3", 100, 1, 1, 7)});
  // a:1 was restarted, b:2 came back, c:3 was set back by a load.
  const FleetMoment after = At(
      11, {Server("a:1", 0.5, 10, 0, 7), Server("b:2", 101, 9, 9, 9), Server("c:3", 101, 2, 1, 0)});
  const auto rates = RatesBetween(before, after);
  EXPECT_FALSE(rates[0]);
  EXPECT_FALSE(rates[1]);
  ASSERT_TRUE(rates[2]);
  EXPECT_DOUBLE_EQ(rates[2]->pulled_keys, 1);
  EXPECT_DOUBLE_EQ(rates[2]->passes, 0);
  EXPECT_FALSE(JsonOf(after, rates)["servers"][0].contains("rates"));
  EXPECT_FALSE(RatesBetween(after, after)[2]);  // no time has passed
}

TEST(FleetRates, AreShownAsOftenAsAskedEvenOfServersThatAreDown) {
  WatchFleetOptions options;
  options.status.servers = "127.0.0.1:1";  // nothing listens there
  options.interval = 0.05;
  options.count = 2;
  std::vector<FleetMoment> moments;
  const auto show = [&](const FleetMoment& moment,
                        const std::vector<std::optional<ServerRates>>& rates) {
    ASSERT_EQ(rates.size(), 1u);
    EXPECT_FALSE(rates[0]);
    EXPECT_FALSE(moment.status.servers[0].reached.ok());
    moments.push_back(moment);
  };
  const absl::StatusOr<uint64_t> shown = WatchFleet(options, nullptr, show);
  ASSERT_TRUE(shown.ok()) << shown.status();
  EXPECT_EQ(*shown, 2u);
  ASSERT_EQ(moments.size(), 2u);
  EXPECT_LT(moments[0].time, moments[1].time);

  const std::atomic<bool> stop = true;
  EXPECT_EQ(*WatchFleet(options, &stop, show), 0u);
  options.interval = 0.01;
  EXPECT_THAT(OptionsOf(WatchFleet(options, nullptr, show).status()),
              testing::ElementsAre("interval"));
}

}  // namespace
}  // namespace cistern::app
