#include "worker/report/run_event.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace cistern::report {
namespace {

// The names of docs/formats.md and docs/cli.md. Files of earlier versions hold them.
TEST(RunEvent, HasTheNameOfItsLine) {
  const std::map<RunEvent, std::string> names = {
      {RunEvent::kTrain, "train"},     {RunEvent::kPass, "pass"},      {RunEvent::kEval, "eval"},
      {RunEvent::kFinal, "final"},     {RunEvent::kResume, "resume"},  {RunEvent::kLost, "lost"},
      {RunEvent::kRecover, "recover"}, {RunEvent::kWarning, "warning"}};
  for (const auto& [event, name] : names) {
    EXPECT_EQ(EventName(event), name);
    EXPECT_EQ(FindEvent(name), event);
  }
  EXPECT_EQ(FindEvent(""), std::nullopt);
  EXPECT_EQ(FindEvent("Train"), std::nullopt);
}

TEST(RunEvent, EachEndOfARunHasAName) {
  const std::map<StopReason, std::string> names = {{StopReason::kNone, ""},
                                                   {StopReason::kMaxIter, "max_iter"},
                                                   {StopReason::kEpochs, "epochs"},
                                                   {StopReason::kAuc, "auc"},
                                                   {StopReason::kPatience, "patience"},
                                                   {StopReason::kInterrupt, "interrupt"},
                                                   {StopReason::kEndOfStream, "end of stream"}};
  for (const auto& [reason, name] : names) {
    EXPECT_EQ(StopReasonName(reason), name);
    EXPECT_EQ(FindStopReason(name), reason);
  }
  EXPECT_EQ(FindStopReason("the end"), std::nullopt);
}

}  // namespace
}  // namespace cistern::report
