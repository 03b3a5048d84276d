#include "python/binding/errors.h"

#include <nanobind/nanobind.h>

#include <string>

#include "cli/terminal/exit_code.h"

namespace cistern::python {
namespace {

namespace nb = nanobind;

void SetError(const absl::Status& status) {
  const nb::object make = nb::module_::import_("cistern_ps.errors").attr("make_error");
  const nb::object error =
      make(std::string(status.message()).c_str(), FixOf(status).c_str(),
           static_cast<int>(ExitCodeOf(status)), absl::StatusCodeToString(status.code()).c_str());
  PyErr_SetObject(error.type().ptr(), error.ptr());
}

}  // namespace

void TranslateErrors() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const StatusError& error) {
      SetError(error.status());
    }
  });
}

}  // namespace cistern::python
