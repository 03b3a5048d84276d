#include "common/value/accessor/ctr_old_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cistern {
namespace {

using ::testing::ElementsAre;

v1::TableSpec Spec(uint32_t dim) {
  v1::TableSpec spec;
  spec.set_name("ctr");
  spec.set_accessor(v1::TableSpec::CTR);
  spec.set_dim(dim);
  spec.mutable_rule()->set_kind(v1::UpdateRule::ADAGRAD_SHARED);
  spec.mutable_rule()->set_initial_g2sum(3);
  spec.mutable_ctr()->set_embedx_threshold(10);
  return spec;
}

// By spec/003: uid, 2 statistics, show, click, embed_w, its sum and slot are 8 numbers; in a record
// uid, show and click are two cells each.
TEST(OldCtrRows, ShortRowsRevealTheirFieldsInTextAndInRecords) {
  const ValueLayout layout = ValueLayout::Create(Spec(2)).value();
  const OldCtrRows rows(layout);
  EXPECT_TRUE(rows.FieldsOfShort(8, /*is_text=*/true, {})->uid);
  EXPECT_FALSE(rows.FieldsOfShort(7, /*is_text=*/true, {})->uid);
  EXPECT_FALSE(rows.FieldsOfShort(6, /*is_text=*/true, {})->slot);
  EXPECT_TRUE(rows.FieldsOfShort(11, /*is_text=*/false, {})->uid);
  EXPECT_FALSE(rows.FieldsOfShort(9, /*is_text=*/false, {})->uid);
  EXPECT_FALSE(rows.FieldsOfShort(8, /*is_text=*/false, {}).has_value());
}

TEST(OldCtrRows, TheFormNamesTheDim) {
  const ValueLayout layout = ValueLayout::Create(Spec(2)).value();
  const OldCtrRows rows(layout);
  EXPECT_EQ(rows.FormOf(11, /*is_text=*/true, {})->dim, 2u);  // 8, a sum and 2 weights
  EXPECT_TRUE(rows.FormOf(11, /*is_text=*/true, {})->has_embedx);
  EXPECT_FALSE(rows.FormOf(8, /*is_text=*/true, {})->has_embedx);
  EXPECT_EQ(rows.FormOf(15, /*is_text=*/true, {})->dim, 6u);
  EXPECT_FALSE(rows.FormOf(5, /*is_text=*/true, {}).has_value());
}

TEST(OldCtrRows, MissingCellsAreInsertedBeforeEmbedx) {
  const ValueLayout layout = ValueLayout::Create(Spec(2)).value();
  std::vector<float> cells = {1, 2, 3, 3, 4, 4, 5, 6, 7};  // up to slot
  OldCtrRows(layout).AddMissing({false, true}, &cells);
  EXPECT_THAT(cells, ElementsAre(1, 2, 3, 3, 4, 4, 5, 6, 7, 0, 0));
}

}  // namespace
}  // namespace cistern
