#include "common/base/status.h"

#include <gtest/gtest.h>

namespace cistern {
namespace {

using Options = std::vector<std::string>;

absl::Status Whole() {
  return WithOptions(WithFix(WithKind(absl::DataLossError("it ends early"), ErrorKind::kCutShort),
                             "copy it again"),
                     {"input", "load.upgrade"});
}

void ExpectWhole(const absl::Status& status) {
  EXPECT_EQ(KindOf(status), ErrorKind::kCutShort);
  EXPECT_EQ(FixOf(status), "copy it again");
  EXPECT_EQ(OptionsOf(status), (Options{"input", "load.upgrade"}));
}

TEST(Status, KeepsKindFixAndOptionsUnderContextCodeAndMessage) {
  ExpectWhole(Whole());
  const absl::Status deeper = AddContext(AddContext(Whole(), "line 3"), "data.csv");
  EXPECT_EQ(deeper.message(), "data.csv: line 3: it ends early");
  EXPECT_TRUE(absl::IsDataLoss(deeper));
  ExpectWhole(deeper);
  const absl::Status usage = WithCode(Whole(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::IsInvalidArgument(usage));
  EXPECT_EQ(usage.message(), "it ends early");
  ExpectWhole(usage);
  EXPECT_EQ(WithMessage(Whole(), "gone").message(), "gone");
  ExpectWhole(WithMessage(Whole(), "gone"));
}

TEST(Status, OkStaysOk) {
  const absl::Status ok;
  EXPECT_EQ(AddContext(ok, "x"), ok);
  EXPECT_EQ(WithKind(ok, ErrorKind::kNotText), ok);
  EXPECT_EQ(WithFix(ok, "x"), ok);
  EXPECT_EQ(WithOptions(ok, {"x"}), ok);
  EXPECT_EQ(WithCode(ok, absl::StatusCode::kInternal), ok);
  EXPECT_EQ(WithMessage(ok, "x"), ok);
}

TEST(Status, HasNothingUnlessSet) {
  const absl::Status plain = absl::InternalError("x");
  EXPECT_EQ(KindOf(plain), ErrorKind::kNone);
  EXPECT_EQ(FixOf(plain), "");
  EXPECT_EQ(OptionsOf(plain), Options{});
  EXPECT_EQ(WithFix(plain, ""), plain);
}

TEST(Status, ReadsKindsOfLaterBuildsAsNone) {
  EXPECT_EQ(KindOf(WithKind(absl::InternalError("x"), static_cast<ErrorKind>(200))),
            ErrorKind::kNone);
}

TEST(Status, TheLatestFixAndKindHold) {
  const absl::Status status = WithKind(WithFix(Whole(), "buy a disk"), ErrorKind::kBadCheckpoint);
  EXPECT_EQ(FixOf(status), "buy a disk");
  EXPECT_EQ(KindOf(status), ErrorKind::kBadCheckpoint);
}

}  // namespace
}  // namespace cistern
