#include "worker/model/config/grammar.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "worker/model/config/grammar_check.h"

namespace cistern {
namespace {

void CheckTable(const ObjectGrammar& object) {
  std::set<std::string> names;
  for (const KeyGrammar& key : object.keys) {
    EXPECT_TRUE(names.insert(key.name).second) << object.title << "." << key.name << " twice";
    EXPECT_FALSE(key.required && !key.fallback.empty()) << object.title << "." << key.name;
    EXPECT_FALSE(key.meaning.empty()) << object.title << "." << key.name;
    if (key.object != nullptr) CheckTable(*key.object);
  }
}

TEST(Grammar, ListsEveryKeyOnceWithAMeaning) {
  CheckTable(FileGrammar());
  for (const LayerGrammar& layer : LayerGrammars()) CheckTable(layer.object);
}

TEST(Grammar, MatchesTheDocumentation) {
  std::ifstream file(CISTERN_SOURCE_DIR "/docs/configuration.md");
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find(GrammarMarkdown()), std::string::npos)
      << "docs/configuration.md must end with this text:\n"
      << GrammarMarkdown();
}

}  // namespace
}  // namespace cistern
