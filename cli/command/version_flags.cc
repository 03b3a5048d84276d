#include "cli/command/version_flags.h"

namespace cistern {

ServingOptions VersionFlags::options() const {
  return {out, *PrecisionOf(precision), keep};  // precision: a Choice flag
}

void AddVersionFlags(Command& command, VersionFlags* flags) {
  command.Flag("--out", &flags->out,
               {"DIR", "The serving folder; its HEAD names the new version when that is complete.",
                "--out serving", kRequired});
  command.Choice("--precision", &flags->precision,
                 {"float32|float16|bfloat16|int8",
                  "How rows are stored; int8: row-wise, with a float16 scale and offset.",
                  "--precision int8"});
  command.Flag("--keep", &flags->keep,
               {"INT", "The number of versions to keep, at least 1.", "--keep 5"});
}

absl::StatusOr<ModelText> ReadModelText(const ModelFlags& model) {
  constexpr uint64_t kMostBytes = uint64_t{64} << 20;
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(std::string text, ReadWhole(files, model.config, kMostBytes));
  return ModelText{model.config, std::move(text), model.set};
}

}  // namespace cistern
