#include "common/http/request_target.h"

#include <gtest/gtest.h>

#include <string>

namespace cistern {
namespace {

std::string Unescaped(std::string text) {
  const size_t bytes = UnescapeTarget(nullptr, nullptr, text.data());
  EXPECT_EQ(text.c_str()[bytes], '\0');
  return text.substr(0, bytes);
}

TEST(RequestTarget, UnescapesBytesInPlace) {
  EXPECT_EQ(Unescaped("/v2/models/a%20b%2Fc%2f"), "/v2/models/a b/c/");
  EXPECT_EQ(Unescaped("%41%42"), "AB");
  EXPECT_EQ(Unescaped("%c3%A9"), "\xc3\xa9");
  EXPECT_EQ(Unescaped(""), "");
}

TEST(RequestTarget, KeepsWhatIsNoEscape) {
  for (const char* text : {"/plain", "%", "%4", "%zz", "100%", "%%", "% 41", "%+1", "%x1"}) {
    EXPECT_EQ(Unescaped(text), text);
  }
  EXPECT_EQ(Unescaped("%2541"), "%41");  // once only
}

TEST(RequestTarget, KeepsAnEscapedNull) {
  EXPECT_EQ(Unescaped("/metrics%00.png"), "/metrics%00.png");
  EXPECT_EQ(Unescaped("%00%41"), "%00A");
}

TEST(RequestTarget, TakesAwayTheAuthority) {
  EXPECT_EQ(WithoutAuthority("http://h:8000/v2"), "/v2");
  EXPECT_EQ(WithoutAuthority("HTTPS://h/a/b"), "/a/b");
  EXPECT_EQ(WithoutAuthority("http://h"), "/");
  EXPECT_EQ(WithoutAuthority("/http://h/v2"), "/http://h/v2");
  EXPECT_EQ(WithoutAuthority("ftp://h/v2"), "ftp://h/v2");
}

}  // namespace
}  // namespace cistern
