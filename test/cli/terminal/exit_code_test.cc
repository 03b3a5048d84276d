#include "cli/terminal/exit_code.h"

#include <gtest/gtest.h>

#include <string>

namespace cistern::cli {
namespace {

int CodeOf(const absl::Status& status) {
  return static_cast<int>(ExitCodeOf(status));
}

TEST(ExitCode, FollowsTheStatusCode) {
  EXPECT_EQ(CodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(CodeOf(absl::InternalError("x")), 1);
  EXPECT_EQ(CodeOf(absl::NotFoundError("x")), 1);
  EXPECT_EQ(CodeOf(absl::FailedPreconditionError("x")), 1);
  EXPECT_EQ(CodeOf(absl::ResourceExhaustedError("x")), 1);
  EXPECT_EQ(CodeOf(absl::InvalidArgumentError("x")), 2);
  EXPECT_EQ(CodeOf(absl::AlreadyExistsError("x")), 2);
  EXPECT_EQ(CodeOf(absl::PermissionDeniedError("x")), 2);
  EXPECT_EQ(CodeOf(absl::UnavailableError("x")), 3);
  EXPECT_EQ(CodeOf(absl::DeadlineExceededError("x")), 3);
  EXPECT_EQ(CodeOf(absl::DataLossError("x")), 4);
  EXPECT_EQ(CodeOf(absl::OutOfRangeError("x")), 4);
  EXPECT_EQ(CodeOf(absl::CancelledError("x")), 130);
}

TEST(ExitCode, OfCorruptBytesDependsOnTheirOwner) {
  EXPECT_EQ(CodeOf(WithKind(absl::DataLossError("x"), ErrorKind::kBadCheckpoint)), 5);
  EXPECT_EQ(CodeOf(WithKind(absl::OutOfRangeError("x"), ErrorKind::kBadCheckpoint)), 5);
  EXPECT_EQ(CodeOf(WithKind(absl::UnavailableError("x"), ErrorKind::kBadCheckpoint)), 3);
  EXPECT_EQ(CodeOf(WithKind(absl::OkStatus(), ErrorKind::kBadCheckpoint)), 0);
}

TEST(ExitCode, SurvivesContext) {
  const absl::Status status =
      AddContext(WithFix(WithKind(absl::DataLossError("cut short"), ErrorKind::kBadCheckpoint),
                         "load another one"),
                 "run/model");
  EXPECT_EQ(CodeOf(status), 5);
  EXPECT_EQ(ErrorText(status), "error: run/model: cut short\nfix: load another one\n");
}

TEST(ExitCode, TextIsOneLineEvenIfItQuotesControlCharacters) {
  using std::string_literals::operator""s;
  EXPECT_EQ(ErrorText(absl::InternalError("'a\nb\x1b[2J\0\xc3\xbc'"s)),
            "error: 'a\\nb\\x1b[2J\\x00\xc3\xbc'\n");
  EXPECT_EQ(ErrorText(absl::InternalError("'\xc2\x9b\x32J'")), "error: '\\xc2\\x9b2J'\n");
}

TEST(ExitCode, TextHasNoFixLineWithoutAFix) {
  EXPECT_EQ(ErrorText(absl::InternalError("broken")), "error: broken\n");
  EXPECT_TRUE(WithFix(absl::OkStatus(), "nothing to fix").ok());
}

TEST(ExitCode, FlagsAreWrittenAsTheyAreTyped) {
  EXPECT_EQ(FlagOf("key_bits"), "--key-bits");
  EXPECT_EQ(FlagOf("keys=hash"), "--keys=hash");
  EXPECT_EQ(FlagOf("load.upgrade"), "cistern load --upgrade");
  EXPECT_EQ(FlagOf("data.convert.recipe"), "cistern data convert --recipe");
  EXPECT_EQ(FlagOf("cistern-server.data_dir"), "cistern-server --data_dir");
  EXPECT_EQ(FlagOf("status.servers=127.0.0.1:1"), "cistern status --servers=127.0.0.1:1");
  const absl::Status status =
      WithOptions(absl::InvalidArgumentError("text needs hashed keys"), {"key_bits", "keys=hash"});
  EXPECT_EQ(ErrorText(status), "error: text needs hashed keys (--key-bits, --keys=hash)\n");
}

}  // namespace
}  // namespace cistern::cli
