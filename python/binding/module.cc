// The extension module cistern_ps._native: what the package cistern_ps is made of. Its interface
// is not public; cistern_ps/*.py documents the package.
#include "python/binding/module.h"

#include "common/base/log.h"
#include "python/binding/errors.h"
#include "python/binding/fleet.h"
#include "python/binding/gil.h"
#include "python/binding/text_jobs.h"

NB_MODULE(_native, module) {
  // Notes of embedded servers belong into a log, not between the lines of a notebook.
  cistern::SetLogLevel("warning");
  cistern::python::WatchInterpreterEnd();
  cistern::python::TranslateErrors();
  cistern::python::BindFleet(module);
  cistern::python::BindRows(module);
  cistern::python::BindData(module);
  cistern::python::BindServing(module);
  cistern::python::BindJobs(module);
  cistern::python::BindStepRun(module);
  cistern::python::BindFileJobs(module);
  cistern::python::BindTextJobs(module);
}
