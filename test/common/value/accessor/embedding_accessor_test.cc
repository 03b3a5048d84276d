#include "common/value/accessor/embedding_accessor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/value/old_rows.h"
#include "common/value/row_lifecycle.h"
#include "common/value/value_layout.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;

v1::TableSpec Adam(uint32_t dim, v1::UpdateRule::Missed missed) {
  v1::TableSpec spec;
  spec.set_name("wide");
  spec.set_dim(dim);
  spec.mutable_rule()->set_kind(v1::UpdateRule::ADAM);
  spec.mutable_rule()->set_beta1(0.9f);
  spec.mutable_rule()->set_beta2(0.999f);
  spec.mutable_rule()->set_epsilon(1e-8f);
  spec.mutable_rule()->set_missed(missed);
  return spec;
}

TEST(EmbeddingAccessor, DeferredUpdatesAddTheLastStep) {
  const auto names = [](v1::UpdateRule::Missed missed) {
    return ValueLayout::Create(Adam(2, missed))->FieldNames(true);
  };
  EXPECT_THAT(names(v1::UpdateRule::LOCAL),
              ElementsAre("w[0]", "w[1]", "state[0]", "state[1]", "state[2]", "state[3]"));
  EXPECT_EQ(names(v1::UpdateRule::GLOBAL).back(), "last_step");
}

TEST(EmbeddingAccessor, RowsHaveNoLifecycleAndOneForm) {
  const ValueLayout layout = ValueLayout::Create(Adam(2, v1::UpdateRule::LOCAL)).value();
  EXPECT_EQ(layout.accessor().MakeLifecycle(layout, 0), nullptr);
  EXPECT_FALSE(layout.embedx_is_optional());
  const auto old = layout.accessor().MakeOldRows(layout);
  EXPECT_FALSE(old->FieldsOfShort(6, true, {}).has_value());
  EXPECT_EQ(old->FormOf(9, true, {})->dim, 3u);  // w, m, v
  EXPECT_FALSE(old->FormOf(10, true, {}).has_value());
}

}  // namespace
}  // namespace cistern
