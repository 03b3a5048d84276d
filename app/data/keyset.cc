#include "app/data/keyset.h"

#include "absl/strings/str_join.h"
#include "app/data/missing_file.h"
#include "common/io/new_file.h"
#include "worker/model/config/model_config.h"
#include "worker/model/layer/layer_list.h"

namespace cistern::app {
namespace {

// Takes the format and shape of the data from the model.
absl::StatusOr<data::KeysetOptions> ReadOptions(const ModelKeysetOptions& given) {
  CISTERN_ASSIGN_OR_RETURN(const model::ModelConfig config,
                           model::LoadModelConfig(given.model, given.set, model::LayerGrammars()));
  data::KeysetOptions options;
  options.data = model::DataSetOf(
      config, given.data.empty() ? config.data.source : absl::StrJoin(given.data, ","));
  if (given.data.empty()) options.data.num_samples = config.data.num_samples;
  options.wide_keys = given.key_bits == 0 ? data::HasWideKeys(options.data) : given.key_bits == 64;
  if (given.input.empty()) return options;
  std::vector<std::string> tops;
  for (size_t i = 0; i < config.data.sparse.size(); ++i) {
    tops.push_back(config.data.sparse[i].top);
    if (tops.back() == given.input) options.input = static_cast<int>(i);
  }
  if (options.input >= 0) return options;
  return WithOptions(
      absl::InvalidArgumentError(absl::StrCat(given.model, " has no sparse input '", given.input,
                                              "': it has ", absl::StrJoin(tops, ", "))),
      {"input"});
}

}  // namespace

absl::StatusOr<ModelKeyset> KeysetOfModel(const ModelKeysetOptions& given) {
  const absl::StatusOr<data::KeysetOptions> options = MissingIsWrong(ReadOptions(given));
  if (!options.ok()) return options.status();
  if (!given.check) CISTERN_RETURN_IF_ERROR(NewFile::Check(given.file, {given.model}));
  LocalFileSystem files;
  const absl::StatusOr<data::KeysetSummary> summary =
      MissingIsWrong(given.check ? data::CheckKeyset(*options, given.file)
                                 : data::WriteKeyset(files, *options, given.file));
  if (!summary.ok()) return summary.status();
  return ModelKeyset{*summary, options->wide_keys};
}

}  // namespace cistern::app
