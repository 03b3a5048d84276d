#include "app/verify/verify_online.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/strings/str_format.h"
#include "app/model/export_source.h"
#include "app/state/saved_place.h"
#include "app/state/saved_rows.h"
#include "common/base/json_depth.h"
#include "serve/predictor/open_predictor.h"
#include "serve/predictor/predict_data.h"
#include "serve/predictor/served_state.h"
#include "worker/export/serving/serving_model.h"
#include "worker/model/graph/model_summary.h"

namespace cistern::app {
namespace {

using Json = nlohmann::ordered_json;

// A line of the log (serve/server/request_log.h).
struct LoggedRequest {
  uint64_t line = 0;
  std::string id, serving;
  uint64_t commit = 0, samples = 0;
  std::optional<uint64_t> unseen;
  std::vector<float> dense, predictions;
  struct Input {
    std::vector<Key> keys;
    std::vector<uint32_t> offsets;
    std::vector<float> weights;
  };
  std::vector<Input> inputs;

  serve::PredictRequest Request() const {
    serve::PredictRequest request;
    request.samples = samples;
    request.dense = dense;
    for (const Input& input : inputs) {
      request.inputs.push_back({input.keys, input.offsets, input.weights});
    }
    return request;
  }
};

absl::StatusOr<LoggedRequest> ParseLine(const std::string& text) {
  if (JsonDepth(text) > kMaxJsonDepth) return absl::DataLossError("nested too deeply");
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  LoggedRequest request;
  try {
    request.commit = json.at("commit").get<uint64_t>();
    request.id = json.at("id").get<std::string>();
    request.samples = json.at("samples").get<uint64_t>();
    if (json.contains("serving")) request.serving = json.at("serving").get<std::string>();
    if (json.contains("unseen_keys")) request.unseen = json.at("unseen_keys").get<uint64_t>();
    request.dense = json.at("dense").get<std::vector<float>>();
    request.predictions = json.at("probability").get<std::vector<float>>();
    for (const Json& input : json.at("inputs")) {
      request.inputs.push_back({input.at("keys").get<std::vector<Key>>(),
                                input.at("offsets").get<std::vector<uint32_t>>(),
                                input.value("weights", std::vector<float>())});
    }
  } catch (const Json::exception&) {
    return absl::DataLossError("not a line of a request log");
  }
  return request;
}

// Visits the lines of the log. A last line that was cut off is left out: the server may still be
// writing it.
absl::Status ForEachLine(const std::string& path,
                         const std::function<absl::Status(const LoggedRequest&)>& visit) {
  std::ifstream file(path);
  if (!file) {
    return absl::InvalidArgumentError(absl::StrCat("cannot open ", path, ": no such request log"));
  }
  std::string text;
  for (uint64_t line = 1; std::getline(file, text); ++line) {
    absl::StatusOr<LoggedRequest> request = ParseLine(text);
    if (!request.ok() && file.eof()) break;
    if (!request.ok()) {
      return AddContext(request.status(), absl::StrCat(path, ": line ", line));
    }
    request->line = line;
    CISTERN_RETURN_IF_ERROR(visit(*request));
  }
  return absl::OkStatus();
}

// The model of one commit, exported again into a temporary folder.
class CommitAgain {
 public:
  CommitAgain(const VerifyOnlineOptions& options, const ServingVersion& served)
      : options_(options), served_(served) {
    // Several may run at once in a process.
    static std::atomic<uint64_t> made{0};
    root_ = std::filesystem::temp_directory_path() /
            absl::StrCat("cistern-verify-online-", getpid(), "-", made++);
  }
  ~CommitAgain() { RemoveTree(files_, root_).IgnoreError(); }

  absl::Status Make(uint64_t commit) {
    CISTERN_RETURN_IF_ERROR(RemoveTree(files_, root_));
    CISTERN_ASSIGN_OR_RETURN(const model::ModelConfig config,
                             serve::ReadServedConfig(options_.serving));
    CISTERN_ASSIGN_OR_RETURN(
        const std::string text,
        ReadWhole(files_, absl::StrCat(options_.serving, "/", served_.model.path),
                  served_.model.bytes));
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<SavedRows> rows,
                             SavedRows::Open(files_, {options_.state, commit}));
    ThreadPool pool(ThreadsOf(options_.threads));
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<CommittedModel> model,
                             ReadCommittedModel(*rows, pool));
    CISTERN_RETURN_IF_ERROR(CheckModelFile(config, *model));
    CISTERN_RETURN_IF_ERROR(WriteServingModel(files_, config,
                                              {served_.name + ".json", text, served_.overrides},
                                              *model, {root_, served_.precision, 1})
                                .status());
    CISTERN_ASSIGN_OR_RETURN(
        predictor_,
        serve::OpenPredictor(
            root_, {.threads = 1, .max_samples = SIZE_MAX, .max_keys = SIZE_MAX, .poll_ms = 0}));
    return absl::OkStatus();
  }

  serve::Predictor& predictor() { return *predictor_; }
  const std::string& root() const { return root_; }

 private:
  const VerifyOnlineOptions& options_;
  const ServingVersion& served_;
  LocalFileSystem files_;
  std::string root_;
  std::unique_ptr<serve::Predictor> predictor_;
};

absl::StatusOr<std::shared_ptr<const serve::ServedState>> OpenCommit(const std::string& root,
                                                                     uint64_t commit) {
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> folders, VersionsIn(files, root));
  for (const std::string& folder : folders) {
    CISTERN_ASSIGN_OR_RETURN(const ServingVersion version, ReadVersion(files, root, folder, 0));
    if (version.number() != commit) continue;
    CISTERN_ASSIGN_OR_RETURN(const ServingHead head, HeadOf(files, root, folder));
    return serve::ServedState::Open(root, head, nullptr, /*verify=*/false);
  }
  return absl::NotFoundError(absl::StrCat(root, " no longer has commit ", commit));
}

// The layer that owns parameter `index` of the table "dense".
std::string LayerOf(const model::ModelConfig& config, size_t index) {
  const absl::StatusOr<model::ModelSummary> summary = model::Summarize(config);
  if (!summary.ok()) return "";
  for (const model::LayerSummary& layer : summary->layers) {
    if (index < layer.parameters)
      return absl::StrCat("layer '", layer.name, "', parameter ", index);
    index -= layer.parameters;
  }
  return "";
}

// Where the served files first differ from those made from the state, for the keys of `request`.
std::string CauseOf(const serve::ServedState& served, const serve::ServedState& again,
                    const LoggedRequest& request) {
  for (size_t t = 0; t < served.tables().size() && t < again.tables().size(); ++t) {
    const model::EmbeddingConfig& embedding = again.config().embeddings[t];
    const std::vector<Key>& keys = request.inputs[embedding.input].keys;
    const size_t dim = embedding.vec_size;
    std::vector<float> here(keys.size() * dim), there(keys.size() * dim);
    served.tables()[t]->Lookup(keys, here.data(), dim);
    again.tables()[t]->Lookup(keys, there.data(), dim);
    for (size_t i = 0; i < here.size(); ++i) {
      if (here[i] == there[i]) continue;
      return absl::StrFormat(
          "embedding '%s', key %d, weight %d: %.9g was served, the state has "
          "%.9g",
          embedding.name, keys[i / dim], i % dim, here[i], there[i]);
    }
  }
  for (size_t t = 0; t < served.dense().size() && t < again.dense().size(); ++t) {
    const std::vector<float>&here = served.dense()[t], &there = again.dense()[t];
    for (size_t i = 0; i < here.size() && i < there.size(); ++i) {
      if (std::memcmp(&here[i], &there[i], sizeof(float)) == 0) continue;
      const std::string layer = t == 0 ? LayerOf(again.config(), i) : "running statistics";
      return absl::StrFormat("%s: %.9g was served, the state has %.9g", layer, here[i], there[i]);
    }
  }
  return "the served files equal the state: the request, its log, or the program that predicted "
         "differs";
}

absl::Status CompareOne(const VerifyOnlineOptions& options, const LoggedRequest& logged,
                        CommitAgain& again, VerifyOnlineResult* result) {
  std::vector<float> predictions(logged.predictions.size());
  serve::ServedVersion version;
  uint64_t unseen = 0;
  const absl::Status predicted =
      again.predictor().Predict(logged.Request(), absl::MakeSpan(predictions), &version, &unseen);
  if (!predicted.ok()) {
    return absl::DataLossError(
        absl::StrCat(options.log, ": line ", logged.line, ": ", predicted.message()));
  }
  ++result->requests;
  result->samples += logged.samples;
  result->commits.insert(logged.commit);
  for (size_t i = 0; i < predictions.size(); ++i) {
    if (predictions[i] == logged.predictions[i]) continue;
    if (++result->differences > 1) return absl::OkStatus();
    result->first = absl::StrFormat(
        "%s: line %d (request '%s', commit %d): sample %d: %.9g was served, expected %.9g",
        options.log, logged.line, logged.id, logged.commit, i * logged.samples / predictions.size(),
        logged.predictions[i], predictions[i]);
    const auto served = OpenCommit(options.serving, logged.commit);
    const auto fresh = OpenCommit(again.root(), logged.commit);
    absl::StrAppend(&result->first, "; ",
                    served.ok() && fresh.ok() ? CauseOf(**served, **fresh, logged)
                                              : std::string(served.status().message()));
    return absl::OkStatus();
  }
  if (logged.unseen.value_or(unseen) != unseen && ++result->differences == 1) {
    result->first = absl::StrFormat(
        "%s: line %d (request '%s', commit %d): %d unseen keys were counted, expected %d",
        options.log, logged.line, logged.id, logged.commit, *logged.unseen, unseen);
  }
  return absl::OkStatus();
}

// options.serving, or else the folder that the first line of the log names.
absl::StatusOr<VerifyOnlineOptions> WithServing(VerifyOnlineOptions options) {
  if (!options.serving.empty()) return options;
  const absl::Status read = ForEachLine(options.log, [&](const LoggedRequest& request) {
    options.serving = request.serving;
    return absl::CancelledError();
  });
  if (!absl::IsCancelled(read)) CISTERN_RETURN_IF_ERROR(read);
  if (!options.serving.empty()) return options;
  return WithFix(WithOptions(absl::InvalidArgumentError(absl::StrCat(
                                 options.log, " does not name the folder that was served")),
                             {"serving"}),
                 "name it");
}

// Whether the state has the commit. True if that cannot be told.
bool HasCommit(FileSystem& files, const std::string& state, uint64_t commit) {
  const auto folder = FindState(files, state);
  if (!folder.ok()) return true;
  const absl::StatusOr<std::vector<uint64_t>> commits = (*folder)->Commits();
  return !commits.ok() || std::find(commits->begin(), commits->end(), commit) != commits->end();
}

// The versions whose number is a pass: a saved model, from which they were exported, names no
// commit.
absl::StatusOr<std::set<uint64_t>> VersionsWithoutCommit(FileSystem& files,
                                                         const std::string& root) {
  std::set<uint64_t> numbers;
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> folders, VersionsIn(files, root));
  for (const std::string& folder : folders) {
    const absl::StatusOr<ServingVersion> version = ReadVersion(files, root, folder, 0);
    if (version.ok() && version->commit == 0) numbers.insert(version->number());
  }
  return numbers;
}

}  // namespace

absl::Status VerifyOnlineResult::outcome() const {
  if (differences > 0) return absl::FailedPreconditionError(first);
  if (requests == 0) return absl::FailedPreconditionError("no request could be recomputed");
  return absl::OkStatus();
}

absl::StatusOr<VerifyOnlineResult> VerifyOnline(const VerifyOnlineOptions& given,
                                                const JobCalls& calls) {
  CISTERN_ASSIGN_OR_RETURN(const VerifyOnlineOptions options, WithServing(given));
  LocalFileSystem files;
  const absl::StatusOr<ServingHead> head = ReadHead(files, options.serving);
  if (!head.ok()) {
    absl::Status status = head.status();
    if (absl::IsNotFound(status)) status = WithCode(status, absl::StatusCode::kInvalidArgument);
    return WithFix(WithOptions(status, {"serving"}), "name the folder that was served");
  }
  CISTERN_ASSIGN_OR_RETURN(const ServingVersion served,
                           ReadVersion(files, options.serving, head->folder, head->xxh3));
  std::set<uint64_t> commits;
  CISTERN_RETURN_IF_ERROR(ForEachLine(options.log, [&](const LoggedRequest& request) {
    commits.insert(request.commit);
    return absl::OkStatus();
  }));
  CISTERN_ASSIGN_OR_RETURN(const std::set<uint64_t> without_commit,
                           VersionsWithoutCommit(files, options.serving));
  VerifyOnlineResult result;
  CommitAgain again(options, served);
  AmountCounter counter(calls, "verifying", "commits");
  counter.Expect(commits.size());
  for (const uint64_t commit : commits) {
    CISTERN_RETURN_IF_ERROR(calls.CheckStop());
    if (without_commit.count(commit) != 0) {
      result.without_commit.insert(commit);
    } else if (!HasCommit(files, options.state, commit)) {
      result.missing.insert(commit);
    } else {
      CISTERN_RETURN_IF_ERROR(again.Make(commit));
      CISTERN_RETURN_IF_ERROR(ForEachLine(options.log, [&](const LoggedRequest& request) {
        return request.commit == commit ? CompareOne(options, request, again, &result)
                                        : absl::OkStatus();
      }));
    }
    counter.Done();
  }
  return result;
}

nlohmann::ordered_json JsonOf(const VerifyOnlineResult& result) {
  nlohmann::ordered_json json;
  json["requests"] = result.requests;
  json["samples"] = result.samples;
  json["differences"] = result.differences;
  json["commits"] = result.commits;
  json["missing_commits"] = result.missing;
  json["versions_without_commit"] = result.without_commit;
  if (result.differences > 0) json["first_difference"] = result.first;
  return json;
}

}  // namespace cistern::app
