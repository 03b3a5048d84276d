#include "app/data/key_lookup.h"

#include <algorithm>

#include "app/data/missing_file.h"

namespace cistern::app {

absl::StatusOr<KeyLookup> LookUpKeys(const KeyLookupOptions& options, const JobCalls& calls) {
  if (!options.keys.empty() && options.tables.empty()) {
    return WithFix(WithOptions(absl::InvalidArgumentError(
                                   absl::StrCat("key ", options.keys.front(),
                                                ": keys are hashes of text; only a table tells "
                                                "which text")),
                               {"input"}),
                   "name the table, and it is searched");
  }
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const data::FoundRecipe recipe, data::ReadRecipe(files, options.recipe));
  const auto encoder = data::OwnedEncoder::Open(recipe.recipe, recipe.vocabulary_path());
  if (!encoder.ok()) return WithKind(encoder.status(), ErrorKind::kBadCheckpoint);
  KeyLookup lookup;
  std::vector<Key> wanted = options.keys;
  for (const auto& [column, text] : options.texts) {
    CISTERN_ASSIGN_OR_RETURN(const std::vector<Key> keys,
                             (*encoder)->encoder().KeysOf(column, text));
    for (const Key key : keys) {
      lookup.found.push_back({column, text, key});
      if (!options.tables.empty()) wanted.push_back(key);
    }
  }
  if (options.tables.empty()) return lookup;
  KeySearch search(**encoder, wanted);
  CISTERN_RETURN_IF_ERROR(MissingIsWrong(search.Read(options.tables, calls)));
  lookup.found = search.Results();
  for (const Key key : wanted) {
    const bool is_found = std::any_of(lookup.found.begin(), lookup.found.end(),
                                      [&](const FoundText& found) { return found.key == key; });
    if (!is_found) lookup.absent.push_back(key);
  }
  return lookup;
}

nlohmann::ordered_json JsonOf(const KeyLookup& lookup) {
  nlohmann::ordered_json json;
  json["found"] = nlohmann::ordered_json::array();
  for (const FoundText& found : lookup.found) {
    json["found"].push_back(
        {{"key", found.key}, {"column", found.column}, {"text", found.text}, {"rows", found.rows}});
  }
  return json;
}

}  // namespace cistern::app
