#include "common/base/host_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cistern {
namespace {

using testing::HasSubstr;

TEST(HostPort, IsReadAndWritten) {
  for (const char* text : {"127.0.0.1:7700", "[::1]:7700", "ps-0.ps:1", "[fe80::1%eth0]:65535"}) {
    const absl::StatusOr<HostPort> parsed = ParseHostPort(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(HostPortText(parsed->host, parsed->port), text);
  }
  EXPECT_EQ(ParseHostPort("[::1]:7700")->host, "::1");
  EXPECT_EQ(HostPortText("[::1]", 1), "[::1]:1");
}

TEST(HostPort, RefusesWhatIsNone) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "has no port"},         {"host", "has no port"},        {"[::1]", "has no port"},
      {":7700", "has no host"},    {"[]:7700", "has no host"},     {"::1:7700", "needs brackets"},
      {"a:b:1", "needs brackets"}, {"[host]:1", "needs brackets"}, {"http://a:1", "brackets"},
      {"host:", "has a port"},     {"host:0", "has a port"},       {"host:65536", "has a port"},
      {"host:x", "has a port"},    {"ho st:1", "not printable"},   {"h\xc3\xa9:1", "printable"},
      {"[::1]7700", "brackets"},
  };
  for (const auto& [text, why] : cases) {
    const absl::Status status = ParseHostPort(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why)) << text;
  }
}

TEST(IsLoopback, KnowsEverySpelling) {
  for (const char* host : {"127.0.0.1", "127.1", "127.255.0.9", "::1", "[::1]", "0:0:0:0:0:0:0:1",
                           "0000::0001", "[::ffff:127.0.0.1]", "localhost", "LocalHost"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const char* host :
       {"", "0.0.0.0", "::", "[::]", "10.0.0.1", "::2", "128.0.0.1", "127.evil.org",
        "127.0.0.1.example.com", "localhost.example.com", "::ffff:10.0.0.1", "fe80::1"}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

TEST(MayBeHostName, TellsNamesFromAddressesAndNonsense) {
  for (const char* name : {"localhost", "a", "ps-0.fleet.svc", "node_1", "1a.example", "xn--a"}) {
    EXPECT_TRUE(MayBeHostName(name)) << name;
  }
  for (const char* other :
       {"", "127.0.0.1", "256.0.0.1", "::1", "[::1", "a b", "a/b", "a:1", "é"}) {
    EXPECT_FALSE(MayBeHostName(other)) << other;
  }
}

TEST(WhyUnknown, IsEmptyForAnAddress) {
  EXPECT_EQ(WhyUnknown("127.0.0.1"), "");
  EXPECT_EQ(WhyUnknown("[::1]"), "");
  EXPECT_NE(WhyUnknown("no.such.host.invalid"), "");
}

}  // namespace
}  // namespace cistern
