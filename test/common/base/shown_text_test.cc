#include "common/base/shown_text.h"

#include <gtest/gtest.h>

namespace cistern {
namespace {

TEST(ShownText, LeavesUtf8AsItIs) {
  for (const char* const text : {"", "it's \\ \"x\"", "M\xc3\xbcnchen", "\xe6\x9d\xb1\xe4\xba\xac",
                                 "\xf0\x9f\x91\x8d", "\xe2\x82\xac", "\xd8\xb3\xd8\xb1"}) {
    EXPECT_EQ(ShownText(text), text);
  }
}

TEST(ShownText, EscapesWhatTerminalsObeyAndNoOneSees) {
  EXPECT_EQ(ShownText("a\tb\nc\x1b[31m\x7f"), "a\\tb\\nc\\x1b[31m\\x7f");
  EXPECT_EQ(ShownText("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");                                          // U+009B, CSI
  EXPECT_EQ(ShownText("a\xe2\x80\xae"), "a\\xe2\\x80\\xae");           // U+202E, right to left
  EXPECT_EQ(ShownText("a\xe2\x81\xa7"), "a\\xe2\\x81\\xa7");           // U+2067, likewise
  EXPECT_EQ(ShownText("\xef\xbb\xbfid"), "\\xef\\xbb\\xbfid");         // a byte order mark
  EXPECT_EQ(ShownText("x\xf3\xa0\x81\x81"), "x\\xf3\\xa0\\x81\\x81");  // U+E0041, a tag
  EXPECT_EQ(ShownText(absl::string_view("a\0b", 3)),
            "a\\x00"
            "b");
}

TEST(ShownText, EscapesBytesThatAreNotUtf8) {
  EXPECT_EQ(ShownText("caf\xe9"), "caf\\xe9");                       // Latin-1
  EXPECT_EQ(ShownText("\xc0\xaf"), "\\xc0\\xaf");                    // in more bytes than needed
  EXPECT_EQ(ShownText("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(ShownText("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond U+10FFFF
}

TEST(ShownText, CutsBetweenCharacters) {
  EXPECT_EQ(ShownText("\xe6\x9d\xb1\xe4\xba\xac", 5), "\xe6\x9d\xb1");
  EXPECT_EQ(ShownText("abc", 2), "ab");
}

}  // namespace
}  // namespace cistern
