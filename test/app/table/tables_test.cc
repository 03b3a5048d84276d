// What is shown of a fleet's tables: counts, rows, histograms.
#include "app/table/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/table/field_histogram.h"
#include "test/support/temp_folder.h"
#include "test/worker/client/embedded_fleet.h"
#include "test/worker/client/restartable_fleet.h"

namespace cistern::app {
namespace {

using testing::HasSubstr;

class TablesTest : public testing::Test {
 protected:
  TablesTest() : fleet_(2, Base()), client_(Writer(fleet_.Links())) {
    EXPECT_EQ(CommitKeys(*client_, std::vector<Key>{1, 2, 3, 700}), absl::OkStatus());
  }
  server::ServerOptions Base() const {
    server::ServerOptions options;
    options.data_dir = folder_.path();
    options.shard_num = 8;
    return options;
  }

  TempFolder folder_;
  RestartableFleet fleet_;
  const std::unique_ptr<ParameterClient> client_;
};

TEST(ParseKey, ReadsDecimalAndHex) {
  EXPECT_EQ(*ParseKey("18446744073709551615"), 18446744073709551615ull);
  EXPECT_EQ(*ParseKey("0x2a"), 42u);
  for (const char* text : {"", "x", "-1", "1.5", "18446744073709551616", "0xg"}) {
    EXPECT_EQ(ParseKey(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST_F(TablesTest, CountsAreOfAllServers) {
  const std::vector<TableCounts> tables = *CountTables(*client_);
  ASSERT_EQ(tables.size(), 3u);
  EXPECT_EQ(tables[1].name, "deep");
  EXPECT_EQ(tables[1].kind, "embedding");
  EXPECT_EQ(tables[1].rows, 4u);
  EXPECT_EQ(tables[2].kind, "dense");
  EXPECT_EQ(CountTable(*client_, "deep")->rows, 4u);
  const absl::Status none = CountTable(*client_, "dep").status();
  EXPECT_TRUE(absl::IsNotFound(none)) << none;
  EXPECT_EQ(FixOf(none), "did you mean 'deep'?");
}

TEST_F(TablesTest, ARowIsFoundByItsKey) {
  const absl::StatusOr<FoundRow> found = FindRow(*client_, "deep", 700);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->row.found());
  EXPECT_EQ(found->row.fields(0), 700);
  EXPECT_FALSE(FindRow(*client_, "deep", 701)->row.found());
  EXPECT_TRUE(absl::IsInvalidArgument(FindRow(*client_, "deep", kReservedKey64).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(FindRow(*client_, "mlp", 1).status()));
  EXPECT_TRUE(absl::IsNotFound(FindRow(*client_, "dep", 1).status()));
}

TEST_F(TablesTest, AHistogramCountsEveryRow) {
  const absl::StatusOr<FieldHistogram> found = HistogramOf(*client_, "deep", "w[0]");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->rows, 4u);
  EXPECT_EQ(found->histogram.min(), 1);
  EXPECT_EQ(found->histogram.max(), 700);
  EXPECT_EQ(found->histogram.Buckets().size(), 3u);  // 1, 2 and 3, 700
  EXPECT_EQ(HistogramOf(*client_, "deep", "")->field, "norm");
  EXPECT_EQ(HistogramOf(*client_, "ctr", "")->field, "show");
  const absl::Status no_field = HistogramOf(*client_, "deep", "shows").status();
  EXPECT_TRUE(absl::IsInvalidArgument(no_field)) << no_field;
  EXPECT_THAT(FixOf(no_field), HasSubstr("norm"));
  EXPECT_TRUE(absl::IsNotFound(HistogramOf(*client_, "dep", "").status()));
}

}  // namespace
}  // namespace cistern::app
