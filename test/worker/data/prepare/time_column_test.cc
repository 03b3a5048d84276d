#include "worker/data/prepare/time_column.h"

#include <gtest/gtest.h>

namespace cistern::data {
namespace {

bool IsTimeBetween(const char* name, double min, double max,
                   ColumnType type = ColumnType::kInteger) {
  ColumnProfile column;
  column.name = name;
  column.type = type;
  column.distinct = 60;
  column.min = min;
  column.max = max;
  return IsTimeColumn(column);
}

// The numbers are those of 2024-03-01 and 2024-04-29 in each form.
TEST(IsTimeColumn, KnowsNumbersOfDaysByTheirName) {
  EXPECT_TRUE(IsTimeBetween("order_date", 45352, 45411));                         // Excel
  EXPECT_TRUE(IsTimeBetween("dt", 19783, 19842));                                 // days since 1970
  EXPECT_TRUE(IsTimeBetween("day", 2024061, 2024120));                            // strftime's %Y%j
  EXPECT_TRUE(IsTimeBetween("Date", 2460370.5, 2460429.5, ColumnType::kNumber));  // Julian days
  EXPECT_FALSE(IsTimeBetween("t", 45352, 45411));
  EXPECT_FALSE(IsTimeBetween("clicks_per_day", 19783, 19842));
  EXPECT_FALSE(IsTimeBetween("day_total", 45352, 45411));
  EXPECT_FALSE(IsTimeBetween("day", 1, 31));
  EXPECT_FALSE(IsTimeBetween("date", 1000, 90000));
}

TEST(IsTimeColumn, KnowsTicks) {
  EXPECT_TRUE(IsTimeBetween("ts", 133537248000000000, 133588224000000000));  // Windows
  EXPECT_TRUE(IsTimeBetween("ts", 13353724800000000, 13358822400000000));    // Chrome
  EXPECT_TRUE(IsTimeBetween("ts", 20240301101500123, 20240429101500123));
  EXPECT_FALSE(IsTimeBetween("user", 133537248000000000, 133588224000000000));
}

}  // namespace
}  // namespace cistern::data
