#include "worker/data/format/record_places.h"

#include <gtest/gtest.h>

namespace cistern::data {
namespace {

TEST(RecordPlaces, FindsTheLastPlaceOfAFileAtOrBeforeARecord) {
  RecordPlaces places;
  EXPECT_FALSE(places.AtOrBefore("a", 1000));
  places.Add("a", {100, 5000});
  places.Add("a", {300, 9000});
  places.Add("b", {200, 1});
  EXPECT_FALSE(places.AtOrBefore("a", 99));
  EXPECT_FALSE(places.AtOrBefore("c", 500));
  EXPECT_EQ(places.AtOrBefore("a", 100)->byte, 5000u);
  EXPECT_EQ(places.AtOrBefore("a", 299)->record, 100u);
  EXPECT_EQ(places.AtOrBefore("a", 300)->record, 300u);
  EXPECT_EQ(places.AtOrBefore("a", 301)->byte, 9000u);
}

}  // namespace
}  // namespace cistern::data
