#include "python/binding/errors.h"

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "cli/terminal/exit_code.h"

namespace cistern::python {
namespace {

namespace nb = nanobind;

// The message, followed by the keyword arguments that decide the matter: "... (key_bits=)". An
// option of another program or command is written as it is typed there.
std::string MessageInPython(const absl::Status& status) {
  std::vector<std::string> words = OptionsOf(status);
  for (std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (absl::StrContains(name, '.')) {
      word = cli::FlagOf(word);
    } else if (!absl::StrContains(word, '=')) {
      absl::StrAppend(&word, "=");
    }
  }
  const std::string suffix =
      words.empty() ? "" : absl::StrCat(" (", absl::StrJoin(words, ", "), ")");
  return absl::StrCat(status.message(), suffix);
}

// Messages quote paths, which are any bytes.
nb::object TextOf(const std::string& text) {
  return nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

void SetError(const absl::Status& status, const std::string& report) {
  const nb::object make = nb::module_::import_("cistern_ps.errors").attr("make_error");
  const nb::object error = make(TextOf(MessageInPython(status)), TextOf(FixOf(status)),
                                static_cast<int>(cli::ExitCodeOf(status)),
                                absl::StatusCodeToString(status.code()).c_str());
  if (!report.empty()) {
    error.attr("report") = nb::module_::import_("json").attr("loads")(TextOf(report));
  }
  PyErr_SetObject(error.type().ptr(), error.ptr());
}

}  // namespace

void TranslateErrors() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const StatusError& error) {
      SetError(error.status(), error.report());
    }
  });
}

}  // namespace cistern::python
