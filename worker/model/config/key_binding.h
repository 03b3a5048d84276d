// Where the values of keys go. A row of the grammar names the member that its value is stored in,
// so that no reader repeats the key:
//
//   Count({"display", &SolverConfig::display}, "iterations between progress lines; 0: none")
//
// A word is stored as text, or in a bool or an enum as its place among the words of the key.
//
// Included by .cc files only: the JSON library is slow to compile.
#pragma once

#include <algorithm>
#include <any>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "worker/model/config/grammar.h"
#include "worker/model/config/json_document.h"

namespace cistern::model {

// Stores the values of `json`, which the check has passed, in the members that `keys` name. The
// keys of an object without a member of its own belong to the struct around it. Members of absent
// keys keep their values.
//
// target: a pointer to a struct. Keys of other structs are left out.
inline void StoreValues(const std::vector<KeyGrammar>& keys, const Json& json,
                        const std::any& target) {
  for (const KeyGrammar& key : keys) {
    const auto value = json.find(key.name);
    if (value == json.end()) continue;
    if (key.store != nullptr) {
      key.store(key, *value, target);
    } else if (key.kind == JsonKind::kObject) {
      StoreValues(key.object->keys, *value, target);
    }
  }
}

template <typename M>
void StoreValue(const KeyGrammar& key, const Json& value, M* member) {
  [[maybe_unused]] const auto place = [&] {
    const auto word = std::find(key.words.begin(), key.words.end(), value.get<std::string>());
    return word - key.words.begin();
  };
  if constexpr (std::is_aggregate_v<M>) {
    StoreValues(key.object->keys, value, member);
  } else if constexpr (std::is_enum_v<M>) {
    *member = static_cast<M>(place());
  } else if constexpr (std::is_same_v<M, bool>) {
    *member = value.is_boolean() ? value.get<bool>() : place() > 0;
  } else {
    *member = value.get<M>();
  }
}

template <typename M>
void StoreValue(const KeyGrammar& key, const Json& value, std::optional<M>* member) {
  StoreValue(key, value, &member->emplace());
}

// The name of a key, and the member that its value goes to, if its row has one.
struct BoundName {
  BoundName(const char* key) : name(key) {}             // NOLINT
  BoundName(std::string key) : name(std::move(key)) {}  // NOLINT
  template <typename T, typename M>
  BoundName(const char* key, M T::*member)
      : name(key),
        store([member](const KeyGrammar& row, const Json& value, const std::any& target) {
          if (T* const* to = std::any_cast<T*>(&target)) StoreValue(row, value, &((*to)->*member));
        }) {}

  std::string name;
  KeyStore store;
};

}  // namespace cistern::model
