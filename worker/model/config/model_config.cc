#include "worker/model/config/model_config.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "common/base/nearest_name.h"
#include "common/io/file.h"
#include "common/value/accessor.h"
#include "worker/data/recipe/text_format.h"
#include "worker/model/config/config_readers.h"
#include "worker/model/config/grammar_check.h"
#include "worker/model/config/key_binding.h"
#include "worker/model/config/several_losses.h"

namespace cistern::model {
namespace {

// A model of 100,000 layers takes about 20 MB.
constexpr uint64_t kMaxModelFileBytes = uint64_t{64} << 20;

// The object cistern.embeddings.`name`, or null if there is none.
const Json* ExtrasOf(const Json& root, const std::string& name) {
  const Json& cistern = root.at("cistern");
  if (!cistern.contains("embeddings")) return nullptr;
  const auto it = cistern.at("embeddings").find(name);
  return it == cistern.at("embeddings").end() ? nullptr : &*it;
}

absl::Status CheckEmbeddingNames(const Json& root, const std::vector<EmbeddingConfig>& embeddings) {
  std::vector<std::string> names;
  for (const EmbeddingConfig& embedding : embeddings) {
    if (embedding.name == "dense" || embedding.name == "dense_state") {
      return ConfigError("layers", absl::StrCat("an embedding cannot be named '", embedding.name,
                                                "': the dense parameters' table has that name"));
    }
    if (std::find(names.begin(), names.end(), embedding.name) != names.end()) {
      return ConfigError("layers", absl::StrCat("two embeddings are named '", embedding.name, "'"));
    }
    names.push_back(embedding.name);
  }
  const Json& cistern = root.at("cistern");
  if (!cistern.contains("embeddings")) return absl::OkStatus();
  for (const auto& item : cistern.at("embeddings").items()) {
    if (std::find(names.begin(), names.end(), item.key()) != names.end()) continue;
    return ConfigError(
        "cistern.embeddings." + item.key(),
        absl::StrCat("no embedding layer has this name", Suggest(item.key(), names)));
  }
  return absl::OkStatus();
}

void NoteUnusedInputs(ModelConfig* config) {
  for (size_t i = 0; i < config->data.sparse.size(); ++i) {
    const bool used = std::any_of(config->embeddings.begin(), config->embeddings.end(),
                                  [i](const EmbeddingConfig& e) { return e.input == i; });
    if (used) continue;
    config->notes.push_back(absl::StrCat("layers[0].sparse[", i, "]: no embedding reads '",
                                         config->data.sparse[i].top, "'"));
  }
}

// A stream without a source is none: so an override can take the stream out of a run's file.
void DropEmptyStream(Json* root) {
  Json& cistern = root->at("cistern");
  if (cistern.contains("stream") && cistern.at("stream").at("source") == "") {
    cistern.erase("stream");
  }
}

// The default of an embedding's gradient depends on its accessor. It becomes a value of the file,
// so that a run can only be resumed with the gradient that it started with.
void FillGradients(Json* root) {
  Json& cistern = root->at("cistern");
  if (!cistern.contains("embeddings")) return;
  for (Json& extras : cistern.at("embeddings")) {
    if (extras.contains("gradient")) continue;
    extras["gradient"] = extras.at("accessor") == "ctr" ? "sum" : "mean";
  }
}

// An embedding whose rows store days needs the current day.
absl::Status SetDay(uint32_t day, EmbeddingConfig* embedding) {
  embedding->day = day;
  return AddContext(CheckDay(embedding->spec, day), "cistern.day");
}

// GAUC and the slot of its groups: each requires the other.
absl::Status SetGroupSlot(const Json& cistern, ModelConfig* config) {
  const std::vector<std::string>& metrics = config->solver.eval_metrics;
  const auto gauc = std::find(metrics.begin(), metrics.end(), "GAUC");
  if (cistern.contains("gauc_slot")) {
    CISTERN_ASSIGN_OR_RETURN(const GroupSlot group,
                             ReadGroupSlot(cistern.at("gauc_slot"), config->data));
    if (gauc == metrics.end()) {
      config->notes.push_back(
          "cistern.gauc_slot: no effect: solver.eval_metrics does not contain GAUC");
    } else {
      config->cistern.gauc_slot = group;
    }
  } else if (gauc != metrics.end()) {
    return ConfigError(
        absl::StrCat("solver.eval_metrics[", gauc - metrics.begin(), "]"),
        "GAUC needs the slot whose key is the group of a sample: set cistern.gauc_slot, for "
        "example {\"input\": \"data1\", \"slot\": 0}");
  }
  return absl::OkStatus();
}

absl::Status ReadLayers(const Json& root, const std::vector<LayerGrammar>& types,
                        ModelConfig* config) {
  const Json& layers = root.at("layers");
  if (layers.empty() || layers[0].at("type") != "Data") {
    return ConfigError(layers.empty() ? "layers" : "layers[0].type",
                       "the first layer must be Data");
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string path = absl::StrCat("layers[", i, "]");
    const LayerGrammar& grammar = *FindLayerGrammar(layers[i].at("type"), types);
    if (grammar.role == LayerRole::kData) {
      if (i > 0) return ConfigError(path, "is a second Data layer; a model has one");
      StoreValues(grammar.object.keys, layers[i], &config->data);
      CISTERN_RETURN_IF_ERROR(ReadData(layers[i], path, &config->data, &config->notes));
      config->data.weighted = config->cistern.sample_weights;
      CISTERN_RETURN_IF_ERROR(MarkKeyWeights(config->cistern.key_weights, &config->data));
      const bool trains_on_all = config->cistern.negative_rate == 1;
      if ((!trains_on_all || config->cistern.eval_negative_rate < 1) &&
          config->data.label_dim != 1) {
        return ConfigError(
            trains_on_all ? "cistern.eval_negative_rate" : "cistern.negative_rate",
            absl::StrCat("is for models of one label, and layers[0] has ", config->data.label_dim));
      }
      CISTERN_RETURN_IF_ERROR(CheckColumns(config->data, config->cistern.columns, &config->notes));
    } else if (grammar.role == LayerRole::kEmbedding) {
      CISTERN_ASSIGN_OR_RETURN(
          EmbeddingConfig embedding,
          ReadEmbedding(layers[i], path, config->data, config->optimizer, config->solver.seed,
                        config->cistern.init_scheme == "torch",
                        ExtrasOf(root, LayerName(layers[i])), &config->notes));
      CISTERN_RETURN_IF_ERROR(SetDay(config->cistern.day, &embedding));
      config->embeddings.push_back(std::move(embedding));
    } else if (grammar.expand != nullptr) {
      CISTERN_RETURN_IF_ERROR(grammar.expand(layers[i], path, &config->layers));
    } else {
      CISTERN_ASSIGN_OR_RETURN(LayerConfig layer,
                               ReadLayer(grammar, layers[i], path, &config->notes));
      config->layers.push_back(std::move(layer));
    }
  }
  CISTERN_RETURN_IF_ERROR(CheckEmbeddingNames(root, config->embeddings));
  CISTERN_RETURN_IF_ERROR(SetGroupSlot(root.at("cistern"), config));
  NoteUnusedInputs(config);
  return absl::OkStatus();
}

// HugeCTR's model files hold weights and optimizer state, but not the statistics of a row.
absl::Status CheckModelFiles(ModelConfig* config) {
  const SolverConfig& solver = config->solver;
  const std::vector<std::string>& named = solver.sparse_model_files;
  if (named.size() > config->embeddings.size()) {
    return ConfigError("solver.sparse_model_file",
                       absl::StrCat("names ", named.size(), " files, but the model has ",
                                    config->embeddings.size(), " embeddings: give one for each"));
  }
  for (size_t i = 0; i < config->embeddings.size(); ++i) {
    const EmbeddingConfig& embedding = config->embeddings[i];
    if (!HasStatistics(embedding.spec)) continue;
    if (i < named.size() && !named[i].empty()) {
      return ConfigError(absl::StrCat("solver.sparse_model_file[", i, "]"),
                         absl::StrCat("embedding '", embedding.name, "' has the accessor ",
                                      AccessorName(embedding.spec),
                                      ", whose rows such a file cannot hold: "
                                      "use \"\" here, and load saved rows with cistern load"));
    }
    if (solver.snapshot > 0 && solver.snapshot <= solver.max_iter) {
      config->notes.push_back(
          absl::StrCat("solver.snapshot: writes OUT/snapshot-N but no files at snapshot_prefix, "
                       "because HugeCTR's model files cannot hold the rows of '",
                       embedding.name, "' (accessor ctr)"));
    }
  }
  return absl::OkStatus();
}

absl::Status Read(const std::string& text, const std::vector<std::string>& overrides,
                  const std::vector<LayerGrammar>& layers, ModelConfig* config) {
  CISTERN_ASSIGN_OR_RETURN(Json root, ParseJson(text));
  for (const std::string& one : overrides) CISTERN_RETURN_IF_ERROR(ApplyOverride(one, &root));
  RemoveComments(&root);
  std::vector<std::string> labels;
  CISTERN_RETURN_IF_ERROR(JoinLosses(&root, &labels));
  CISTERN_RETURN_IF_ERROR(CheckFile(layers, &root, &config->notes));
  FillGradients(&root);
  DropEmptyStream(&root);
  config->values = FlattenJson(root);

  StoreValues(FileGrammar().keys, root, config);
  CISTERN_RETURN_IF_ERROR(ReadSolver(root.at("solver"), &config->solver, &config->notes));
  CISTERN_ASSIGN_OR_RETURN(
      config->optimizer, ReadOptimizer(root.at("optimizer"), "optimizer", nullptr, &config->notes));
  CISTERN_ASSIGN_OR_RETURN(config->precision, ReadPrecision(root.at("solver"), root.at("cistern")));
  CISTERN_RETURN_IF_ERROR(ReadLayers(root, layers, config));
  config->data.label_names = labels;
  config->optimizer.rule.update_type = UpdateType::kLocal;  // every step moves all dense parameters
  return CheckModelFiles(config);
}

bool HasTableName(const std::string& path) {
  return absl::EndsWithIgnoreCase(path, ".csv") || absl::EndsWithIgnoreCase(path, ".tsv");
}

// Whether text that is no JSON holds rows of fields. `text` begins with something to see.
bool IsTable(absl::string_view text, const std::string& path) {
  const absl::string_view line = text.substr(0, text.find('\n'));
  uint64_t files = 0;
  if (text.front() == '<' || absl::StrContains(text.substr(0, 4096), '\0')) return false;
  if (absl::SimpleAtoi(line, &files)) return false;
  return HasTableName(path) || (line.find_first_of(",;\t|") != absl::string_view::npos &&
                                line.find_first_of("{}\"") == absl::string_view::npos);
}

// The format of a line of features, "1 7:1 9:1" or "0 1:7:1 2:9:1"; null: it is none.
const data::TextFormatEntry* FeatureFormatOf(absl::string_view line) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  double label = 0;
  if (words.size() < 2 || !absl::SimpleAtod(words[0], &label)) return nullptr;
  return data::FindFeatureFormat(absl::MakeConstSpan(words).subspan(1));
}

// What a file is that should hold a JSON object but begins otherwise, and where it belongs. Empty:
// it may be JSON.
std::string OtherKind(absl::string_view text, const std::string& path) {
  constexpr char kNot[] = ", not a model file (a JSON object)";
  if (text.front() == '{' || text.front() == '[') return "";
  const bool is_utf16 = absl::StartsWith(text, "\xff\xfe") || absl::StartsWith(text, "\xfe\xff");
  const absl::string_view begin = text.substr(0, 4096);
  if (absl::StrContains(begin, '\0') && !is_utf16) {
    return absl::StrCat("is a binary file, perhaps data", kNot,
                        ": name data as the \"source\" of a model file's Data layer");
  }
  if (text.front() == '<') return absl::StrCat("is an HTML or XML page", kNot);
  const absl::string_view line = text.substr(0, text.find('\n'));
  if (const data::TextFormatEntry* const format = FeatureFormatOf(line)) {
    return absl::StrCat(
        "is ", format->word, " text", kNot,
        ": convert it to a FOLDER, and name FOLDER/file_list.txt as \"source\" of the "
        "Data layer of a model file");
  }
  uint64_t files = 0;
  if (absl::SimpleAtoi(line, &files)) {
    return absl::StrCat("is a file list of data", kNot,
                        ": name it as \"source\" of the Data layer of a model file");
  }
  if (!IsTable(text, path))
    return absl::ascii_isalpha(text.front())
               ? absl::StrCat(
                     "is text", kNot,
                     ": if it is a table, give it the ending .csv, and name what separates "
                     "its fields, such as space")
               : "";
  if (HasTableName(path)) {
    return absl::StrCat("is a table of text", kNot,
                        ": train on the table itself, which makes a model of it");
  }
  return absl::StrCat(
      "is a table of text", kNot,
      ": give it the ending .csv or .tsv and train on it, or convert it to a FOLDER, "
      "and name FOLDER/file_list.txt as \"source\" of the Data layer");
}

// How JSON that is no model file becomes a table; empty: it may be a model file.
std::string AsTable(const std::string& text, const std::string& path) {
  for (const char* const key : {"\"solver\"", "\"layers\"", "\"optimizer\"", "\"cistern\""}) {
    if (absl::StrContains(text, key)) return "";
  }
  const absl::StatusOr<Json> root = ParseJson(text);
  std::string rows = ".";
  if (root.ok() && root->is_object()) {
    if (root->empty()) return "";
    for (const auto& [name, member] : root->items()) {
      const bool has_rows = member.is_array() && !member.empty() && member.front().is_object();
      if (has_rows) rows = absl::StrCat("'.[\"", name, "\"][]'");
    }
  }
  return absl::StrCat(
      "is JSON, but no model file, which has \"layers\": if it is a table, write an object a line "
      "(JSON Lines): jq -c ",
      rows, " ", path, " > table.jsonl");
}

}  // namespace

absl::StatusOr<ModelConfig> ParseModelConfig(const std::string& text, const std::string& path,
                                             const std::vector<std::string>& overrides,
                                             const std::vector<LayerGrammar>& layers) {
  ModelConfig config;
  config.path = path;
  CISTERN_RETURN_IF_ERROR(AddContext(Read(text, overrides, layers, &config), path));
  return config;
}

absl::StatusOr<std::string> WithOverrides(const std::string& text,
                                          const std::vector<std::string>& overrides) {
  if (overrides.empty()) return text;
  CISTERN_ASSIGN_OR_RETURN(Json root, ParseJson(text));
  for (const std::string& one : overrides) CISTERN_RETURN_IF_ERROR(ApplyOverride(one, &root));
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<ModelConfig> LoadModelConfig(const std::string& path,
                                            const std::vector<std::string>& overrides,
                                            const std::vector<LayerGrammar>& layers) {
  const absl::StatusOr<std::string> text = ReadFile(path, kMaxModelFileBytes);
  if (!text.ok()) {
    return absl::NotFoundError(absl::StrCat(
        text.status().message(), "; name a table, a model file, or the folder of a run"));
  }
  const size_t first = text->find_first_not_of(" \t\r\n");
  if (first != std::string::npos) {
    const absl::string_view from = absl::string_view(*text).substr(first);
    const std::string other = OtherKind(from, path);
    absl::Status wrong = absl::InvalidArgumentError(absl::StrCat(path, ": ", other));
    if (const auto* const format = FeatureFormatOf(from.substr(0, from.find('\n')))) {
      wrong = WithOptions(wrong, {absl::StrCat("data.convert.format=", format->word)});
    }
    if (!other.empty()) return IsTable(from, path) ? WithKind(wrong, ErrorKind::kTable) : wrong;
  }
  absl::StatusOr<ModelConfig> config = ParseModelConfig(*text, path, overrides, layers);
  if (config.ok()) return config;
  const bool is_object = first != std::string::npos && (*text)[first] == '{';
  const std::string as_table = is_object ? AsTable(*text, path) : "";
  if (as_table.empty()) return config;
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", as_table));
}

}  // namespace cistern::model
