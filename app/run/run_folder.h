// Checks the folder of a training run before the run starts: what an earlier run left there,
// and whether this run may continue or replace it.
//
//   OUT/metrics.jsonl, OUT/model/, OUT/snapshot-<iteration>/, OUT/best/   written by the run
//   OUT/state/   commits of embedded servers, if the run keeps them
//   OUT/model.json, OUT/recipe.json, OUT/vocabulary.txt   what the run was trained with: the folder
//   is a whole model, which eval, predict and export accept
#pragma once

#include <optional>
#include <string>

#include "common/base/status.h"
#include "worker/data/recipe/recipe_folder.h"

namespace cistern::app {

struct RunFolder {
  std::string out;
  bool embedded = true;    // the servers run in this process
  bool keep_state = true;  // whether embedded servers keep their commits in it
  bool resume = false, overwrite = false;

  // Embedded servers keep their state in state_root()/state; empty: they keep none.
  std::string state_root() const { return embedded && keep_state ? out : ""; }
};

// Checks that the options agree with each other and with the contents of the folder. Removes the
// state in the folder if `overwrite` is set or if nothing was ever committed to it.
//
// kInvalidArgument, with a fix: the options conflict, or do not say what to do with an earlier run.
// kFailedPrecondition: another process uses the state.
absl::Status PrepareRunFolder(const RunFolder& run);

// kInvalidArgument, with a fix: it is a file.
absl::Status CheckOutFolder(const std::string& out);

// For a path that is about to be written into a JSON file, which holds UTF-8 alone. what: what the
// path is, for the message. kInvalidArgument, with a fix: the path has other bytes.
absl::Status CheckNameForJson(const std::string& what, const std::string& path);

// Writes what the run is trained with, replacing that of an earlier run.
//
// model: the text of the model file with its overrides applied. recipe: of its data, if it has one.
// resume: a recipe that is there stays, unless that of the data extends it: the model reads its
// rows, whatever the layout of later data.
absl::Status WriteRunFiles(const std::string& out, const std::string& model,
                           const std::optional<data::FoundRecipe>& recipe, bool resume);
// Replaces the recipe of a run by the one that it continues with (CheckRunRecipe).
absl::Status UpdateRunRecipe(const std::string& out,
                             const std::optional<data::FoundRecipe>& recipe);

// The model file of a run folder.
inline constexpr char kRunModelFile[] = "model.json";

// Whether `path` is the folder of a training run: it holds a model file and metrics.
bool IsRunFolder(const std::string& path);

// kPermissionDenied: `path` is a folder that this user may not read or enter, so that nothing is
// found in it.
absl::Status CheckReadable(const std::string& path);

// The run folder that a folder of its rows belongs to: RUN for RUN/model, RUN/best, RUN/state and
// RUN/snapshot-100, else `dir` itself.
std::string RunOf(const std::string& dir);

}  // namespace cistern::app
