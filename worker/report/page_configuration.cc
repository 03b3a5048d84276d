// The values of the model files.
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "worker/report/html.h"
#include "worker/report/page_sections.h"

namespace cistern::report {
namespace {

// The value of `path`; null if the run's model file has none.
const std::string* ValueOf(const RunView& run, const std::string& path) {
  if (!run.record) return nullptr;
  for (const auto& [own, value] : run.record->values) {
    if (own == path) return &value;
  }
  return nullptr;
}

// All paths, in the order of the first run that has them.
std::vector<std::string> PathsOf(const std::vector<RunView>& runs) {
  std::vector<std::string> paths;
  std::set<std::string> known;
  for (const RunView& run : runs) {
    if (!run.record) continue;
    for (const auto& [path, value] : run.record->values) {
      if (known.insert(path).second) paths.push_back(path);
    }
  }
  return paths;
}

// The Data layer is the first one.
bool IsData(const std::string& path) {
  return absl::StartsWith(path, "layers[0]");
}

std::string Cell(const std::string* value) {
  if (value == nullptr) return "<span class=\"sub\">\xE2\x80\x93</span>";
  return absl::StrCat("<code>", EscapeHtml(*value), "</code>");
}

}  // namespace

std::string ConfigurationSection(const std::vector<RunView>& runs) {
  std::vector<HtmlTable::Column> columns = {{"Setting", false}};
  for (const RunView& run : runs) columns.push_back({run.name, false});
  HtmlTable different(columns), layers(columns), same(columns);
  for (const std::string& path : PathsOf(runs)) {
    std::vector<std::string> cells = {absl::StrCat("<code>", EscapeHtml(path), "</code>")};
    std::set<std::string> values;
    for (const RunView& run : runs) {
      cells.push_back(Cell(ValueOf(run, path)));
      if (run.record) values.insert(cells.back());
    }
    if (values.size() <= 1) {
      same.Add(cells);
    } else {
      // Two models differ in most of their layers, which would bury the other settings.
      (absl::StartsWith(path, "layers[") && !IsData(path) ? layers : different)
          .Add(cells, "differs");
    }
  }
  if (different.empty() && layers.empty() && same.empty()) return "";
  std::string body = different.empty() ? "" : different.Html("Settings that differ");
  if (!layers.empty()) {
    absl::StrAppend(&body, "<details><summary>Layers that differ</summary>\n", layers.Html(""),
                    "</details>\n");
  }
  if (runs.size() > 1 && body.empty()) body = NoteHtml("All settings are equal.");
  if (!same.empty()) {
    absl::StrAppend(&body, "<details><summary>",
                    runs.size() == 1 ? "All settings" : "Settings that are equal", "</summary>\n",
                    same.Html(""), "</details>\n");
  }
  return SectionHtml("configuration", "Configuration", body);
}

}  // namespace cistern::report
