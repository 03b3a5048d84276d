#include "worker/data/prepare/list_form.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "worker/data/recipe/field_values.h"

namespace cistern::data {
namespace {

using Write = std::function<std::string(const std::vector<std::string>&)>;

// 1,000 lists of one to four of `tags`, as `write` prints them.
TableProfile Lists(const std::vector<std::string>& tags, const Write& write) {
  std::mt19937 draw(3);
  TableProfile profile;
  for (size_t i = 0; i < 1000; ++i) {
    std::vector<std::string> list;
    for (size_t n = 0; n <= i % 4; ++n) list.push_back(tags[draw() % tags.size()]);
    profile.sample.push_back({write(list)});
  }
  return profile;
}

// The values that the found form has in all fields; "no form": there is none.
std::set<std::string> ValuesFound(const TableProfile& profile) {
  const auto form = FindListForm(profile, 0);
  if (!form) return {"no form"};
  std::set<std::string> values;
  for (const std::vector<std::string>& row : profile.sample) {
    absl::string_view field = form->list ? InsideBrackets(row[0]) : row[0];
    while (!field.empty()) {
      absl::string_view value = TakeValue(form->separator, form->list, &field);
      if (form->list) value = WithoutQuotes(value);
      values.insert(std::string(value));
    }
  }
  return values;
}

Write Between(const std::string& separator) {
  return [separator](const auto& list) { return absl::StrJoin(list, separator); };
}

Write Around(const std::string& open, const std::string& close) {
  return [=](const auto& list) {
    return absl::StrCat(open, absl::StrJoin(list, close + open), close);
  };
}

TEST(FindListForm, FindsWhatSeparatesValues) {
  const std::vector<std::string> tags = {"t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"};
  const std::set<std::string> expected(tags.begin(), tags.end());
  for (const char* const separator :
       {"|", ";", ",", "^",  "/",    "+",    ":",   ">",   "*",   "$",
        "%", "@", "!", "\\", "\x1e", "\x1f", " > ", " / ", " + ", " & "}) {
    EXPECT_EQ(ValuesFound(Lists(tags, Between(separator))), expected) << separator;
  }
}

TEST(FindListForm, BracketsMayBelongToEachValue) {
  const std::vector<std::string> tags = {"c++", "go", "rust", "java", "lisp", "ada"};
  const std::set<std::string> expected(tags.begin(), tags.end());
  EXPECT_EQ(ValuesFound(Lists(tags, Around("<", ">"))), expected);
  EXPECT_EQ(ValuesFound(Lists(tags, Around("[", "]"))), expected);
  EXPECT_EQ(ValuesFound(Lists(tags, Around("(", ")"))), expected);
}

TEST(FindListForm, ASpacedSeparatorKeepsWordsTogether) {
  const std::vector<std::string> tags = {"Home & Garden", "Tools", "Men's Shoes", "Toys",
                                         "Pet Food"};
  const std::set<std::string> expected(tags.begin(), tags.end());
  EXPECT_EQ(ValuesFound(Lists(tags, Between(" > "))), expected);
}

TEST(FindListForm, NumbersMayBeJoinedAsWordsAre) {
  std::vector<std::string> ids;
  for (int i = 1; i <= 30; ++i) ids.push_back(absl::StrCat(i));
  const std::set<std::string> expected(ids.begin(), ids.end());
  EXPECT_EQ(ValuesFound(Lists(ids, Between("_"))), expected);
  EXPECT_EQ(ValuesFound(Lists(ids, Between("-"))), expected);
  EXPECT_EQ(ValuesFound(Lists(ids, Between("."))), std::set<std::string>{"no form"});
}

TEST(FindListForm, PlacesOfEqualNumberAreNoList) {
  const std::set<std::string> none = {"no form"};
  EXPECT_EQ(ValuesFound(Lists(
                {"a", "b", "c"},
                [](const auto& list) { return absl::StrCat(list[0], list.size(), "@x.org"); })),
            none);
  EXPECT_EQ(
      ValuesFound(Lists({"a", "b", "c"},
                        [](const auto& list) { return absl::StrCat(list[0], ">", list.size()); })),
      none);
}

}  // namespace
}  // namespace cistern::data
