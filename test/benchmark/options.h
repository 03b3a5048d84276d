// Options of a benchmark. CLI11 is compiled once, apart: its templates take longer than a
// benchmark.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace cistern {

// Threads: one at a time.
class Options {
 public:
  explicit Options(const std::string& about);
  ~Options();

  // name: "--rows". *value is the default, and changes when the option is given.
  void Add(const char* name, std::string* value, const char* help = "");
  void Add(const char* name, uint64_t* value, const char* help = "");
  void Add(const char* name, int* value, const char* help = "");
  void Add(const char* name, double* value, const char* help = "");
  // An option that has no value.
  void Add(const char* name, bool* value, const char* help = "");
  // An option that must be given.
  void Require(const char* name, std::string* value, const char* help = "");

  // Returns the exit code if the program ends here: after --help, or an error, which is printed.
  std::optional<int> Parse(int argc, char** argv);

 private:
  struct Parser;
  const std::unique_ptr<Parser> parser_;
};

}  // namespace cistern
