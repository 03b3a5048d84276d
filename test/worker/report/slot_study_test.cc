#include "worker/report/slot_study.h"

#include <gtest/gtest.h>

namespace cistern::report {
namespace {

TEST(ModelStudy, ReadsBackWhatWasWritten) {
  ModelStudy study;
  study.samples = 1000;
  study.positives = 250;
  study.auc = 0.75;
  study.logloss = 0.5;
  SlotStudy slot;
  slot.input = "data1";
  slot.slot = 3;
  slot.keys = 20;
  slot.unseen_keys = 2;
  slot.occurrences = 990;
  slot.unseen_occurrences = 5;
  slot.empty_samples = 10;
  slot.longest = 1;
  slot.importance = {0.125, 0.0625};
  slot.worst = {{UINT64_MAX, 100, 20, 25.5, std::nullopt}};
  study.slots = {slot};
  study.columns = {{1, 0.5, 0.25, -1, 2, {0.5, 0.25}}};
  const std::string text = FormatModelStudy(study);
  const auto back = ParseModelStudy(text);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(FormatModelStudy(*back), text);
  EXPECT_EQ(back->slots[0].worst[0].key, UINT64_MAX);
  EXPECT_EQ(back->columns[0].importance.auc_drop, 0.5);
}

TEST(ModelStudy, RefusesOtherText) {
  EXPECT_FALSE(ParseModelStudy("{}").ok());
  EXPECT_FALSE(ParseModelStudy("{\"format\": 9}").ok());
  EXPECT_FALSE(ParseModelStudy("nothing").ok());
}

}  // namespace
}  // namespace cistern::report
