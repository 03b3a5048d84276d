// Options of a job as a dict of Python, read by name.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "python/binding/arrays.h"

namespace cistern::python {

// Each call reads one keyword; one that is missing or None leaves *value as it is. A value of
// another type is a TypeError that names the keyword.
//
// Threads: under the GIL.
class Keywords {
 public:
  explicit Keywords(nb::dict given) : given_(std::move(given)) {}

  void Read(const char* name, std::string* value);
  void Read(const char* name, uint64_t* value);
  void Read(const char* name, double* value);
  void Read(const char* name, bool* value);
  void Read(const char* name, std::vector<std::string>* values);  // one text, or a sequence of them
  void Read(const char* name, std::vector<uint64_t>* values);
  // A sequence of texts, or one text that holds several between commas.
  void ReadNames(const char* name, std::vector<std::string>* values);
  // A sequence of groups, each names between commas; or one group, as a text or a sequence of
  // names.
  void ReadGroups(const char* name, std::vector<std::string>* values);
  void ReadCharacter(const char* name, char* value);  // as app::ParseCharacter
  // A path, or a sequence of paths: str of any bytes (os.fsencode), or os.PathLike.
  void ReadPath(const char* name, std::string* value);
  void ReadPaths(const char* name, std::vector<std::string>* values);
  // One of the words, as its value. kInvalidArgument: none of them.
  template <class T>
  void ReadWord(const char* name, std::initializer_list<std::pair<const char*, T>> words,
                T* value) {
    ReadWord<T, decltype(words)>(name, words, value);
  }

  template <class T, class Words>
  void ReadWord(const char* name, const Words& words, T* value) {
    std::vector<std::string> known;
    for (const auto& [word, meaning] : words) known.emplace_back(word);
    const size_t at = IndexOfWord(name, known);
    if (at < known.size()) *value = (std::begin(words) + at)->second;
  }

  // kInvalidArgument: a keyword that nobody has read, with the nearest known one. what: what has
  // these keywords, "export onnx".
  void CheckAllRead(const std::string& what) const;

 private:
  nb::object Find(const char* name);
  size_t IndexOfWord(const char* name, const std::vector<std::string>& words);
  template <class T>
  void ReadAs(const char* name, const char* type, T* value);

  const nb::dict given_;
  std::vector<std::string> read_;
};

}  // namespace cistern::python
