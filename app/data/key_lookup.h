// Which key a text has, and which text a key has.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/data/key_search.h"
#include "app/job_calls.h"
#include "common/base/status.h"

namespace cistern::app {

struct KeyLookupOptions {
  std::string recipe;                                      // of a data set or run: a folder or file
  std::vector<std::pair<std::string, std::string>> texts;  // column and text
  std::vector<Key> keys;
  // Tables to search for all texts that have the keys, and their rows. Needed for `keys`.
  std::vector<std::string> tables;
};

struct KeyLookup {
  std::vector<FoundText> found;
  std::vector<Key> absent;  // no text of the tables has them
};

// kInvalidArgument: a key without a table, a recipe or table that does not exist, a column that the
// recipe does not read. Of kind kBadCheckpoint: the vocabulary is damaged. kCancelled: stopped.
absl::StatusOr<KeyLookup> LookUpKeys(const KeyLookupOptions& options, const JobCalls& calls);

nlohmann::ordered_json JsonOf(const KeyLookup& lookup);

}  // namespace cistern::app
