#include "common/base/fault_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cistern {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// What is logged by one report.
std::string Logged(FaultLog* faults, const absl::Status& outcome, absl::Time now) {
  testing::internal::CaptureStderr();
  faults->Report(outcome, "the old one stays", now);
  return testing::internal::GetCapturedStderr();
}

TEST(FaultLog, WritesALineWhenAFaultBeginsChangesLastsAndPasses) {
  const absl::Time start = absl::FromUnixSeconds(1000);
  const absl::Status away = absl::NotFoundError("no folder"), full = absl::InternalError("no room");
  FaultLog faults("reading a");
  EXPECT_EQ(Logged(&faults, absl::OkStatus(), start), "");
  EXPECT_THAT(Logged(&faults, away, start),
              HasSubstr("reading a fails: no folder; the old one stays"));
  EXPECT_TRUE(faults.failing());
  EXPECT_EQ(Logged(&faults, away, start + absl::Seconds(59)), "");
  EXPECT_THAT(Logged(&faults, away, start + absl::Seconds(60)), HasSubstr("failing for 1m"));
  EXPECT_THAT(Logged(&faults, full, start + absl::Seconds(61)), HasSubstr("no room"));
  EXPECT_THAT(Logged(&faults, absl::OkStatus(), start + absl::Seconds(90)),
              HasSubstr("reading a works again, after 1m30s"));
  EXPECT_FALSE(faults.failing());
  EXPECT_EQ(Logged(&faults, absl::OkStatus(), start + absl::Seconds(91)), "");
  EXPECT_EQ(faults.faults(), 4);
}

TEST(FaultLog, NamesTheCodeOfAnErrorWithoutWords) {
  FaultLog faults("reading a");
  EXPECT_THAT(Logged(&faults, absl::UnavailableError(""), absl::Now()),
              AllOf(HasSubstr("UNAVAILABLE")));
  EXPECT_TRUE(faults.failing());
}

}  // namespace
}  // namespace cistern
