// Brace patterns. The expected lists are what bash prints for the same words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worker/data/storage/storage.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Braces, ExpandAsInAShell) {
  EXPECT_THAT(*ExpandBraces("a.tar"), ElementsAre("a.tar"));
  EXPECT_THAT(*ExpandBraces("d-0{0..2}.tar"), ElementsAre("d-00.tar", "d-01.tar", "d-02.tar"));
  EXPECT_THAT(*ExpandBraces("{008..011}"), ElementsAre("008", "009", "010", "011"));
  EXPECT_THAT(*ExpandBraces("{9..10}"), ElementsAre("9", "10"));
  EXPECT_THAT(*ExpandBraces("x/{10_500,500_800}/a"), ElementsAre("x/10_500/a", "x/500_800/a"));
  EXPECT_THAT(*ExpandBraces("{a,b}{1..2}"), ElementsAre("a1", "a2", "b1", "b2"));
  EXPECT_THAT(*ExpandBraces("{a,b{1..2},}c"), ElementsAre("ac", "b1c", "b2c", "c"));
  EXPECT_THAT(*ExpandBraces("a{x}b{}"), ElementsAre("a{x}b{}"));
  EXPECT_THAT(*ExpandBraces("{a{1..2}}"), ElementsAre("{a1}", "{a2}"));
}

TEST(Braces, RefuseWhatTheyCannotExpand) {
  EXPECT_THAT(std::string(ExpandBraces("a{1..2").status().message()), HasSubstr("not closed"));
  EXPECT_THAT(std::string(ExpandBraces("{2..1}").status().message()), HasSubstr("backwards"));
  EXPECT_THAT(std::string(ExpandBraces("{a..b}").status().message()), HasSubstr("two numbers"));
  for (const char* many : {"{0..9999999}", "{1..2000}{1..2000}", "{0..18446744073709551615}",
                           "{0..99999999999999999999999}"}) {
    EXPECT_EQ(ExpandBraces(many).status().code(), absl::StatusCode::kInvalidArgument) << many;
  }
}

TEST(Braces, CommasInsideDoNotSplitASource) {
  EXPECT_THAT(SplitOutsideBraces("a,{b,c}/d,e"), ElementsAre("a", "{b,c}/d", "e"));
  EXPECT_THAT(SplitOutsideBraces(""), ElementsAre(""));
}

}  // namespace
}  // namespace cistern
