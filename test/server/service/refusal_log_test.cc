#include "server/service/refusal_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_split.h"
#include "common/wire/call_peer.h"

namespace cistern::server {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string LinesOf(const std::function<void()>& work) {
  const CallPeer peer("ipv4:10.0.0.3:51234");
  testing::internal::CaptureStderr();
  work();
  return testing::internal::GetCapturedStderr();
}

TEST(RefusalLog, NamesTheCallerTheCallAndTheReason) {
  RefusalLog log;
  const std::string line = LinesOf(
      [&] { log.Note("ClaimEpoch", absl::FailedPreconditionError("another writer is at work")); });
  EXPECT_THAT(line, HasSubstr("refused ClaimEpoch from ipv4:10.0.0.3:51234"));
  EXPECT_THAT(line, HasSubstr("another writer is at work"));
}

TEST(RefusalLog, ARetryableErrorIsNotARefusal) {
  RefusalLog log;
  EXPECT_EQ(LinesOf([&] {
              log.Note("Hello", absl::UnavailableError("loading"));
              log.Note("GetManifest", absl::NotFoundError("nothing is committed"));
              log.Note("Hello", absl::OkStatus());
            }),
            "");
  EXPECT_EQ(log.refused(), 0u);
}

TEST(RefusalLog, WritesFewLinesForManyRefusedCalls) {
  RefusalLog log;
  const std::string lines = LinesOf([&] {
    for (int i = 0; i < 10000; ++i) log.Note("push", absl::InvalidArgumentError("no"));
  });
  EXPECT_EQ(log.refused(), 10000u);
  const std::vector<std::string> split = absl::StrSplit(lines, '\n', absl::SkipEmpty());
  EXPECT_LE(split.size(), size_t{2 * RefusalLog::kLines});
}

TEST(RefusalLog, CallerTextCannotStartALine) {
  RefusalLog log;
  const std::string lines = LinesOf([&] {
    log.Note("Save", absl::InvalidArgumentError("'x\n2026-11-23 info claimed by root' is no name"));
  });
  EXPECT_THAT(lines, Not(HasSubstr("x\n")));
  EXPECT_THAT(lines, HasSubstr("x?2026"));
}

}  // namespace
}  // namespace cistern::server
