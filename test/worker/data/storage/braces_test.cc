// Brace patterns. The expected lists are what bash prints for the same words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worker/data/storage/storage.h"

namespace cistern::data {
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

TEST(Braces, RangesHaveStepsDirectionsAndLetters) {
  EXPECT_THAT(*ExpandBraces("{1..10..3}"), ElementsAre("1", "4", "7", "10"));
  EXPECT_THAT(*ExpandBraces("{00..100..25}"), ElementsAre("000", "025", "050", "075", "100"));
  EXPECT_THAT(*ExpandBraces("{0..10..5}"), ElementsAre("0", "5", "10"));
  EXPECT_THAT(*ExpandBraces("{3..1}"), ElementsAre("3", "2", "1"));
  EXPECT_THAT(*ExpandBraces("{10..1..-3}"), ElementsAre("10", "7", "4", "1"));
  EXPECT_THAT(*ExpandBraces("{1..3..0}"), ElementsAre("1", "2", "3"));
  EXPECT_THAT(*ExpandBraces("{-05..3..4}"), ElementsAre("-05", "-01", "003"));
  EXPECT_THAT(*ExpandBraces("{a..c}{e..a..2}"),
              ElementsAre("ae", "ac", "aa", "be", "bc", "ba", "ce", "cc", "ca"));
}

TEST(Braces, RefuseWhatTheyCannotExpand) {
  EXPECT_THAT(std::string(ExpandBraces("a{1..2").status().message()), HasSubstr("not closed"));
  for (const char* range :
       {"{a..5}", "{aa..bb}", "{1..}", "{1..2..x}", "{1..2..3..4}", "{+1..3}"}) {
    EXPECT_THAT(std::string(ExpandBraces(range).status().message()), HasSubstr("two numbers"));
  }
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
}  // namespace cistern::data
