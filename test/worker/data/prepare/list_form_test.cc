#include "worker/data/prepare/list_form.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "worker/data/recipe/field_values.h"
#include "worker/data/recipe/recipe.h"

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

// The same, each with a weight; weight: also makes the text of the number.
TableProfile WeightedLists(const std::function<std::string(const std::string&, double)>& value,
                           const std::string& open, const std::string& separator,
                           const std::string& close) {
  std::mt19937 draw(3);
  return Lists({"t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"}, [&](const auto& list) {
    std::vector<std::string> texts;
    for (const std::string& tag : list) texts.push_back(value(tag, 0.01 * (1 + draw() % 99)));
    return absl::StrCat(open, absl::StrJoin(texts, separator), close);
  });
}

// The values that the found form has in all fields; "no form": there is none.
std::set<std::string> ValuesFound(const TableProfile& profile) {
  const auto form = FindListForm(profile, 0);
  if (!form) return {"no form"};
  std::set<std::string> values;
  for (const std::vector<std::string>& row : profile.sample) {
    const Recipe::Source source{"", false, form->separator, false, form->list, form->weights};
    EXPECT_TRUE(ForEachValue(row[0], source, [&](absl::string_view value) {
                  values.insert(std::string(value));
                  return absl::OkStatus();
                }).ok());
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

TEST(FindListForm, FindsWeightsInOtherForms) {
  const std::set<std::string> tags = {"t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"};
  const auto plain = [](const std::string& format) {
    return [format](const std::string& tag, double weight) {
      return absl::StrReplaceAll(format, {{"TAG", tag},
                                          {"W", absl::StrCat(weight)},
                                          {"N", absl::StrCat(static_cast<int>(100 * weight))}});
    };
  };
  const std::vector<std::vector<std::string>> forms = {{"TAG^W", "", "|", ""},
                                                       {"TAG#W", "", "|", ""},
                                                       {"TAG~W", "", "|", ""},
                                                       {"TAG,W", "", ";", ""},
                                                       {"TAG=>W", "", ", ", ""},
                                                       {"TAG[W]", "", ", ", ""},
                                                       {"W:TAG", "", "|", ""},
                                                       {"TAG xN", "", ", ", ""},
                                                       {"Nx TAG", "", ", ", ""},
                                                       {"TAG (N%)", "", ", ", ""},
                                                       {"N% TAG", "", ", ", ""},
                                                       {"('TAG', W)", "[", ", ", "]"},
                                                       {"[\"TAG\", W]", "[", ", ", "]"},
                                                       {"(TAG,W)", "", ",", ""},
                                                       {"TAG -> W", "Map(", ", ", ")"},
                                                       {"TAG:W", "map[", " ", "]"},
                                                       {"('TAG', W)", "OrderedDict([", ", ", "])"}};
  for (const std::vector<std::string>& form : forms) {
    const TableProfile profile = WeightedLists(plain(form[0]), form[1], form[2], form[3]);
    EXPECT_EQ(ValuesFound(profile), tags) << profile.sample[3][0];
  }
}

// The sample has the first 64 bytes of a field.
TEST(FindListForm, FindsWeightsInTextsThatAreCutOff) {
  for (const auto& [open, close] : {std::pair("[", "]"), std::pair("OrderedDict([", "])"),
                                    std::pair("List(", ")"), std::pair("", "")}) {
    std::mt19937 draw(3);
    TableProfile profile;
    for (int i = 0; i < 500; ++i) {
      std::vector<std::string> pairs;
      for (int n = 0; n < 9; ++n) {
        pairs.push_back(absl::StrCat("('tag", draw() % 8, "', 0.", 11 + draw() % 88, ")"));
      }
      const std::string text = absl::StrCat(open, absl::StrJoin(pairs, ", "), close);
      profile.sample.push_back({text.substr(0, TableProfile::kSampleText)});
    }
    const auto form = FindListForm(profile, 0);
    ASSERT_TRUE(form) << open;
    EXPECT_TRUE(form->weights && form->list && form->separator == ',') << open;
  }
  TableProfile profile = WeightedLists(
      [](const std::string& tag, double weight) {
        return absl::StrCat("a-long-name-", tag, "^", weight, "|another-", tag, "^0.5");
      },
      "", "|", "");
  for (std::vector<std::string>& row : profile.sample)
    row[0].resize(std::min<size_t>(row[0].size(), 64));
  const auto form = FindListForm(profile, 0);
  ASSERT_TRUE(form);
  EXPECT_TRUE(form->weights && form->separator == '|');
}

TEST(FindListForm, NumbersOfVersionsAndModelsAreNoWeights) {
  for (const char* const text : {"Chrome/91.", "Android 4.", "t-1."}) {
    const TableProfile profile = Lists({"2", "3", "4", "5", "7"}, [&](const auto& list) {
      std::vector<std::string> values;
      for (const std::string& number : list) values.push_back(absl::StrCat(text, number));
      return absl::StrJoin(values, ", ");
    });
    EXPECT_EQ(ValuesFound(profile).count(absl::StrCat(text, "3")), 1u) << text;
  }
}

TEST(FindListForm, ReadsListsThatLanguagesPrint) {
  const std::vector<std::string> tags = {"t1", "t2", "t3", "t4", "t5", "t6"};
  const std::set<std::string> expected(tags.begin(), tags.end());
  for (const char* const open : {"List(", "WrappedArray(", "c(", "Set(", "String[", "Any["}) {
    const std::string close = open[std::string(open).size() - 1] == '(' ? ")" : "]";
    EXPECT_EQ(ValuesFound(Lists(tags,
                                [&](const auto& list) {
                                  return absl::StrCat(open, absl::StrJoin(list, ", "), close);
                                })),
              expected)
        << open;
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
