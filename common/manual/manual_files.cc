#include "common/manual/manual_files.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/io/new_file.h"
#include "common/manual/completion.h"
#include "common/manual/manual_page.h"

namespace cistern {
namespace {

void AddPages(const CommandManual& command, const std::string& program,
              std::vector<ManualFile>* files) {
  files->push_back(
      {absl::StrCat("man/man1/", PageName(command), ".1"), ManualPage(command, program)});
  for (const CommandManual& below : command.commands) AddPages(below, program, files);
}

}  // namespace

std::vector<ManualFile> ManualFiles(const CommandManual& manual, const std::string& program) {
  std::vector<ManualFile> files;
  AddPages(manual, program, &files);
  const std::string& name = manual.name;
  files.push_back({"bash-completion/completions/" + name, BashCompletion(manual)});
  files.push_back({"zsh/site-functions/_" + name, ZshCompletion(manual)});
  files.push_back(
      {absl::StrCat("fish/vendor_completions.d/", name, ".fish"), FishCompletion(manual)});
  return files;
}

std::optional<absl::Status> WriteManual(const CLI::App& app, const std::string& program, int argc,
                                        const char* const* argv, FileSystem& files) {
  if (argc != 3 || absl::string_view(argv[1]) != "--manual") return std::nullopt;
  for (const ManualFile& file : ManualFiles(ManualOf(app), program)) {
    CISTERN_RETURN_IF_ERROR(WriteWhole(files, absl::StrCat(argv[2], "/", file.path), file.text));
  }
  return absl::OkStatus();
}

}  // namespace cistern
