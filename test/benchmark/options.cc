#include "test/benchmark/options.h"

#include <CLI/CLI.hpp>

namespace cistern {

struct Options::Parser {
  CLI::App app;
};

Options::Options(const std::string& about) : parser_(std::make_unique<Parser>()) {
  parser_->app.description(about);
}

Options::~Options() = default;

void Options::Add(const char* name, std::string* value, const char* help) {
  parser_->app.add_option(name, *value, help);
}
void Options::Add(const char* name, uint64_t* value, const char* help) {
  parser_->app.add_option(name, *value, help);
}
void Options::Add(const char* name, int* value, const char* help) {
  parser_->app.add_option(name, *value, help);
}
void Options::Add(const char* name, double* value, const char* help) {
  parser_->app.add_option(name, *value, help);
}
void Options::Add(const char* name, bool* value, const char* help) {
  parser_->app.add_flag(name, *value, help);
}
void Options::Require(const char* name, std::string* value, const char* help) {
  parser_->app.add_option(name, *value, help)->required();
}

std::optional<int> Options::Parse(int argc, char** argv) {
  try {
    parser_->app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return parser_->app.exit(error);
  }
  return std::nullopt;
}

}  // namespace cistern
