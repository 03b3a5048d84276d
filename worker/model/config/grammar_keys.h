// Builders for the entries of the grammar tables in grammar*.cc.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "worker/model/config/key_binding.h"

namespace cistern::model::grammar {

using Keys = std::vector<KeyGrammar>;

inline constexpr double kAnySize = 1.8446744073709550e19;  // the largest double below 2^64

inline KeyGrammar MakeKey(BoundName name, JsonKind kind, std::string meaning) {
  KeyGrammar key;
  key.name = std::move(name.name);
  key.store = std::move(name.store);
  key.kind = kind;
  key.meaning = std::move(meaning);
  if (kind == JsonKind::kNumber || kind == JsonKind::kNumbers)
    key.max = std::numeric_limits<float>::max();
  return key;
}
inline KeyGrammar Word(BoundName name, std::vector<std::string> words, std::string meaning) {
  KeyGrammar key = MakeKey(std::move(name), JsonKind::kWord, std::move(meaning));
  key.words = std::move(words);
  return key;
}
inline KeyGrammar Object(BoundName name, JsonKind kind, const ObjectGrammar& object,
                         std::string meaning) {
  KeyGrammar key = MakeKey(std::move(name), kind, std::move(meaning));
  key.object = &object;
  return key;
}
inline KeyGrammar Bool(BoundName name, std::string meaning) {
  return MakeKey(std::move(name), JsonKind::kBool, std::move(meaning));
}
inline KeyGrammar Count(BoundName name, std::string meaning) {
  return MakeKey(std::move(name), JsonKind::kCount, std::move(meaning));
}
// Of 0 or more, unless AtLeast or Above says otherwise.
inline KeyGrammar Number(BoundName name, std::string meaning) {
  return MakeKey(std::move(name), JsonKind::kNumber, std::move(meaning));
}
inline KeyGrammar String(BoundName name, std::string meaning) {
  return MakeKey(std::move(name), JsonKind::kString, std::move(meaning));
}
inline KeyGrammar Strings(BoundName name, std::string meaning) {
  return MakeKey(std::move(name), JsonKind::kStrings, std::move(meaning));
}
inline KeyGrammar Anything(BoundName name, std::string note) {
  return MakeKey(std::move(name), JsonKind::kAnything, "not read").Note(std::move(note));
}

inline Keys operator+(Keys a, const Keys& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Objects and keys that several tables share.
const ObjectGrammar& OptimizerGrammar();
Keys AdamConstantKeys();
Keys ScheduleKeys();

}  // namespace cistern::model::grammar
