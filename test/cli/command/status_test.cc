#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command/status_command.h"

namespace cistern::cli {
namespace {

app::ServerState StateOf(const std::string& address, uint32_t rank, uint64_t rows) {
  app::ServerState server;
  server.address = address;
  server.hello.set_server_num(3);
  server.stats.set_rank(rank);
  server.stats.set_committed_pass(4);
  server.stats.set_resident_bytes(3 << 20);
  server.stats.set_uptime_seconds(75);
  v1::TableStats* table = server.stats.add_tables();
  table->set_name("deep");
  table->set_rows(rows);
  return server;
}

TEST(Status, HasARowPerServerAndSums) {
  app::ServerState durable = StateOf("b:2", 1, 12), down;
  durable.hello.set_durable(true);
  durable.stats.set_commit(17);
  durable.stats.set_state_bytes(5 << 20);
  down.address = "c:3";
  down.reached = absl::UnavailableError("connection refused");
  const Report report = ReportOf(app::StatusOf({StateOf("a:1", 0, 30), durable, down}, false));
  EXPECT_EQ(
      report.text,
      "RANK  ADDRESS  STATE  PASS  COMMIT  ON DISK   MEMORY  PULLED  PUSHED  UPTIME  ROWS\n"
      " 0/3  a:1      ready     4       -        -  3.0 MiB       0       0   1m15s  deep=30\n"
      " 1/3  b:2      ready     4      17  5.0 MiB  3.0 MiB       0       0   1m15s  deep=12\n"
      "   -  c:3      down      -       -        -        -       -       -       -\n"
      "\n"
      "TABLE  ROWS  MEMORY\n"
      "deep     42     0 B\n");
}

// 112 MiB beyond the limit, and what finds the rows: docs/sizing.md.
TEST(Status, SaysWhatAServerWithAMemoryLimitTakes) {
  app::ServerState limited = StateOf("a:1", 0, 30);
  limited.stats.set_memory_limit_bytes(uint64_t{200} << 20);
  limited.stats.mutable_tables(0)->set_cold_index_bytes(uint64_t{8} << 20);
  const Report report = ReportOf(app::StatusOf({limited, StateOf("b:2", 1, 12)}, false));
  EXPECT_THAT(report.text, testing::HasSubstr("memory limit of server 0: 200.0 MiB for rows; the "
                                              "process takes about 320.0 MiB\n"));
  EXPECT_THAT(report.text, testing::Not(testing::HasSubstr("server 1: ")));
  EXPECT_EQ(report.json["servers"][0]["planned_resident_bytes"], uint64_t{320} << 20);
  EXPECT_FALSE(report.json["servers"][1].contains("planned_resident_bytes"));
}

}  // namespace
}  // namespace cistern::cli
