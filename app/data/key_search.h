// Searches tables for the texts of keys.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "app/job_calls.h"
#include "common/base/status.h"
#include "worker/data/recipe/json_table.h"
#include "worker/data/recipe/recipe_folder.h"
#include "worker/data/recipe/text_table.h"

namespace cistern::app {

// A text that has one of the keys that are looked up.
struct FoundText {
  std::string column, text;
  Key key = 0;
  uint64_t rows = 0;
  bool operator<(const FoundText& other) const {
    return std::tie(key, column, text) < std::tie(other.key, other.column, other.text);
  }
};

// Threads: one at a time.
class KeySearch {
 public:
  // encoder: outlives this.
  KeySearch(const data::OwnedEncoder& encoder, const std::vector<Key>& keys);

  // Reads tables that the recipe of the encoder describes, or folders of their parts. kCancelled:
  // stopped.
  absl::Status Read(const std::vector<std::string>& tables, const JobCalls& calls);
  // The texts so far, by key.
  std::vector<FoundText> Results() const;

 private:
  absl::Status ReadFile(const std::string& path, const data::JsonColumns& members,
                        const JobCalls& calls);
  absl::Status Take(const data::Recipe::Slot& slot, const data::TextRow& row,
                    const std::vector<size_t>& places);
  absl::Status TakeText(const std::string& column, const std::string& text);

  const data::OwnedEncoder& encoder_;
  std::map<Key, bool> wanted_;
  std::map<FoundText, uint64_t> found_;
  uint64_t rows_ = 0;
};

}  // namespace cistern::app
