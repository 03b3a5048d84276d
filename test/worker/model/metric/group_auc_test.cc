#include "worker/model/metric/group_auc.h"

#include <gtest/gtest.h>

namespace cistern::model {
namespace {

// Group 7 has 2 samples and AUC 1, group 8 has 4 samples and AUC 0.5, group 9 has one class.
TEST(GroupAuc, WeighsGroupsBySamplesAndSkipsGroupsOfOneClass) {
  GroupAuc auc;
  auc.Add(8, 1, 0.5f);
  auc.Add(7, 0, 0.1f);
  auc.Add(8, 0, 0.5f);
  auc.Add(9, 1, 0.2f);
  auc.Add(8, 0, 0.5f);
  auc.Add(7, 1, 0.3f);
  auc.Add(9, 1, 0.9f);
  auc.Add(8, 1, 0.5f);
  auc.Add(9, 1, 0.9f);
  const GroupAuc::Result result = auc.Value();
  EXPECT_NEAR(result.area, (1.0 * 2 + 0.5 * 4) / 6, 1e-15);
  EXPECT_EQ(result.groups, 3u);
  EXPECT_EQ(result.left_out, 1u);
  EXPECT_EQ(result.samples, 9u);
  EXPECT_EQ(result.samples_left_out, 3u);
}

TEST(GroupAuc, CountsSamplesWithoutAGroupAsLeftOut) {
  GroupAuc auc, other;
  auc.Add(1, 1, 0.3f);
  auc.Add(1, 0, 0.2f);
  other.AddUngrouped();
  auc.Merge(other);
  const GroupAuc::Result result = auc.Value();
  EXPECT_EQ(result.area, 1.0);
  EXPECT_EQ(result.samples, 3u);
  EXPECT_EQ(result.samples_left_out, 1u);
}

TEST(GroupAuc, MergeJoinsThePartsOfAGroup) {
  GroupAuc left, right;
  left.Add(4, 1, -0.5f);
  right.Add(4, 0, 0.5f);
  left.Merge(right);
  EXPECT_EQ(left.Value().groups, 1u);
  EXPECT_EQ(left.Value().area, 0.0);
}

}  // namespace
}  // namespace cistern::model
