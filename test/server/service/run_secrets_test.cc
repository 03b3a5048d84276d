#include "server/service/run_secrets.h"

#include <gtest/gtest.h>

namespace cistern::server {
namespace {

TEST(RunSecrets, AreFoundUnderTheirAddress) {
  RunSecrets secrets;
  EXPECT_EQ(secrets.Find("host:7200"), 0u);
  ASSERT_EQ(secrets.Leave("host:7200", 5), absl::OkStatus());
  ASSERT_EQ(secrets.Leave("host:7300", 6), absl::OkStatus());
  EXPECT_EQ(secrets.Find("host:7200"), 5u);
  ASSERT_EQ(secrets.Leave("host:7200", 7), absl::OkStatus());  // worker 0 was restarted
  EXPECT_EQ(secrets.Find("host:7200"), 7u);
}

TEST(RunSecrets, AreLimitedInNumberAndSize) {
  RunSecrets secrets;
  EXPECT_FALSE(secrets.Leave("", 1).ok());
  EXPECT_FALSE(secrets.Leave(std::string(RunSecrets::kMaxAddressBytes + 1, 'a'), 1).ok());
  for (size_t i = 0; i <= RunSecrets::kMaxRuns; ++i) {
    ASSERT_EQ(secrets.Leave(absl::StrCat("host:", i), i + 1), absl::OkStatus());
  }
  EXPECT_EQ(secrets.Find("host:0"), 0u);  // the oldest
  EXPECT_EQ(secrets.Find("host:1"), 2u);
}

}  // namespace
}  // namespace cistern::server
