#include "python/binding/keywords.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "app/data/table_options.h"
#include "common/base/nearest_name.h"
#include "python/binding/errors.h"

namespace cistern::python {
namespace {

using Path = std::filesystem::path;

[[noreturn]] void ThrowType(const char* name, const char* type, const nb::object& value) {
  const std::string got = nb::cast<std::string>(value.type().attr("__name__"));
  throw nb::type_error(absl::StrCat(name, ": expected ", type, "; got ", got).c_str());
}

}  // namespace

nb::object Keywords::Find(const char* name) {
  read_.emplace_back(name);
  return given_.contains(name) ? nb::object(given_[name]) : nb::none();
}

template <class T>
void Keywords::ReadAs(const char* name, const char* type, T* value) {
  const nb::object given = Find(name);
  if (!given.is_none() && !nb::try_cast(given, *value)) ThrowType(name, type, given);
}

void Keywords::Read(const char* name, std::string* value) {
  ReadAs(name, "a str", value);
}
void Keywords::Read(const char* name, uint64_t* value) {
  ReadAs(name, "an integer of 0 or more", value);
}
void Keywords::Read(const char* name, double* value) {
  ReadAs(name, "a number", value);
}
void Keywords::Read(const char* name, bool* value) {
  ReadAs(name, "a bool", value);
}

void Keywords::Read(const char* name, std::vector<uint64_t>* values) {
  ReadAs(name, "a sequence of integers of 0 or more", values);
}

void Keywords::Read(const char* name, std::vector<std::string>* values) {
  const nb::object given = Find(name);
  std::string one;
  if (given.is_none()) return;
  if (nb::try_cast(given, one)) {
    *values = {one};
  } else if (!nb::try_cast(given, *values)) {
    ThrowType(name, "a sequence of str", given);
  }
}

void Keywords::ReadNames(const char* name, std::vector<std::string>* values) {
  std::vector<std::string> given;
  Read(name, &given);
  if (given.size() == 1) {
    *values = absl::StrSplit(given[0], ',');
  } else if (!given.empty()) {
    *values = std::move(given);
  }
}

void Keywords::ReadGroups(const char* name, std::vector<std::string>* values) {
  std::vector<std::string> given;
  Read(name, &given);
  const bool has_groups = std::any_of(given.begin(), given.end(), [](const std::string& text) {
    return absl::StrContains(text, ',');
  });
  if (!given.empty()) {
    *values = has_groups ? given : std::vector<std::string>{absl::StrJoin(given, ",")};
  }
}

void Keywords::ReadCharacter(const char* name, char* value) {
  std::string word;
  Read(name, &word);
  if (word.empty()) return;
  const absl::StatusOr<char> character = app::ParseCharacter(word);
  if (!character.ok()) throw StatusError(WithOptions(character.status(), {name}));
  *value = *character;
}

void Keywords::ReadPath(const char* name, std::string* value) {
  Path path(*value);
  ReadAs(name, "a path", &path);
  *value = path.string();
}

void Keywords::ReadPaths(const char* name, std::vector<std::string>* values) {
  const nb::object given = Find(name);
  Path one;
  std::vector<Path> all;
  if (given.is_none()) return;
  if (nb::try_cast(given, one)) {
    all = {one};
  } else if (!nb::try_cast(given, all)) {
    ThrowType(name, "a path, or a sequence of paths", given);
  }
  values->assign(all.begin(), all.end());
}

size_t Keywords::IndexOfWord(const char* name, const std::vector<std::string>& words) {
  std::string word;
  Read(name, &word);
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end() && !word.empty()) {
    throw StatusError(absl::InvalidArgumentError(
        absl::StrCat(name, "='", word, "': expected one of ", absl::StrJoin(words, ", "))));
  }
  return static_cast<size_t>(found - words.begin());
}

void Keywords::CheckAllRead(const std::string& what) const {
  for (const auto& [key, value] : given_) {
    const std::string name = nb::cast<std::string>(key);
    if (std::find(read_.begin(), read_.end(), name) != read_.end()) continue;
    throw StatusError(absl::InvalidArgumentError(
        absl::StrCat(what, " has no option '", name, "'", Suggest(name, read_))));
  }
}

}  // namespace cistern::python
