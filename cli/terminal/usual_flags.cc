#include "cli/terminal/usual_flags.h"

#include <algorithm>
#include <initializer_list>

#include "absl/strings/string_view.h"

namespace cistern::cli {
namespace {

struct UsualFlag {
  std::initializer_list<absl::string_view> typed;
  std::initializer_list<absl::string_view> own;  // the first one that the command has
};

const UsualFlag kUsualFlags[] = {
    {{"--epochs", "--epoch", "--num-epochs", "--n-epochs", "--max-epochs"},
     {"--set solver.num_epochs=N"}},
    {{"--batch-size", "--batchsize", "--batch"}, {"--set solver.batchsize=N"}},
    {{"--lr", "--learning-rate", "--eta"},
     {"--learning-rate X", "--set optimizer.adam_hparam.learning_rate=X"}},
    {{"--random-seed", "--random-state", "--seed"}, {"--seed", "--set solver.seed=N"}},
    {{"--patience", "--early-stopping", "--early-stopping-rounds"}, {"--set cistern.patience=N"}},
    {{"--target", "--target-column", "--label-column", "--label-col", "--y"}, {"--label"}},
    {{"--cat", "--cat-features", "--categorical", "--categorical-features"}, {"--sparse"}},
    {{"--numeric", "--numerical", "--continuous"}, {"--dense"}},
    {{"--drop", "--exclude", "--ignore-columns"}, {"--ignore"}},
    {{"--sep"}, {"--delimiter"}},
    {{"--weights", "--sample-weight", "--weight-column"}, {"--weight"}},
    {{"--validation", "--val", "--eval-data", "--eval-set"}, {"--valid", "--data"}},
    {{"-", "--input", "--input-file", "--file", "--table", "--test", "--test-data", "--valid",
      "--train", "--data"},
     {"--input", "--data"}},
    {{"--output", "--output-dir", "--output-file", "-o", "--save-dir", "--model-dir", "--run"},
     {"--out", "--output"}},
    {{"--out"}, {"--output"}},
    {{"--gpu", "--gpus", "--cuda"}, {"--device cuda"}},
    {{"--force", "-f"}, {"--overwrite"}},
};

}  // namespace

std::string OwnFlagFor(const std::string& typed, const std::vector<std::string>& own) {
  const auto has = [&](absl::string_view words) {
    return std::count(own.begin(), own.end(), words.substr(0, words.find(' '))) > 0;
  };
  for (const UsualFlag& usual : kUsualFlags) {
    if (std::count(usual.typed.begin(), usual.typed.end(), typed) == 0) continue;
    const auto found = std::find_if(usual.own.begin(), usual.own.end(), has);
    if (found != usual.own.end()) return std::string(*found);
  }
  return "";
}

}  // namespace cistern::cli
