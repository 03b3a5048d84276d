#include "worker/model/config/model_template.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cistern::model {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::pair<ModelKind, const char*> kWords[] = {
    {ModelKind::kLr, "lr"},         {ModelKind::kFm, "fm"},     {ModelKind::kWdl, "wdl"},
    {ModelKind::kDeepFm, "deepfm"}, {ModelKind::kDcn, "dcn"},   {ModelKind::kDcnV2, "dcnv2"},
    {ModelKind::kDlrm, "dlrm"},     {ModelKind::kEsmm, "esmm"}, {ModelKind::kMmoe, "mmoe"},
    {ModelKind::kPle, "ple"}};

// The embedding of a linear part beside vectors that have none.
constexpr char kLinear[] = "linear";

// What the first layer of a type is for, in the order of the file.
constexpr std::pair<const char*, const char*> kLayerComments[] = {
    {"data", "Every sample: a label, dense features, and a key for each value of each slot."},
    {"embedding", "A row of floats for each key; the servers hold them."},
    {"split", "The first floats of a row are its vector, the last one is a weight of its own."},
    {"slot_vectors", "The vectors of all slots, side by side."},
    {"inputs", "What the deep network reads."},
    {"fc1", "The deep network: widths are num_output. More layers can be added in the same way."},
    {"pairs", "The products of all pairs of vectors."},
    {"cross", "Products of features of ever higher degree."},
    {"mix1", "A cross layer: x0 * (W x + b) + x."},
    {"experts1",
     "The networks that all labels share, side by side: a row for each in experts1_rows."},
    {"first_order", "The sum of the weights of the sample's keys and dense features."},
    {"logit", "Its sigmoid is the prediction."},
    {"loss", "What training minimizes."}};

// Adds layers to a model file, each with the name of its top.
class Layers {
 public:
  Layers(ModelKind kind, const TemplateData& data, const TemplateSizes& sizes)
      : kind_(kind), data_(data), sizes_(sizes) {}
  Json Build();

 private:
  // Adds a layer and returns its top.
  std::string Add(const std::string& type, const std::string& top, const Json& bottom,
                  const Json& more = Json::object());
  std::string Dense(const std::string& top, const std::string& bottom, uint32_t width,
                    const char* weights = "XavierNorm");
  // A deep network over all inputs with its last layer: a part of the logit.
  std::string DeepLogit();
  // The logit, whose last layer reads `bottom`; or the sum of that layer and a linear part.
  std::string LastLogit(const std::string& bottom);
  const char* first_weights() const { return sizes_.zero_linear ? "Zero" : "XavierNorm"; }
  const char* last_weights() const { return sizes_.zero_start ? "Zero" : "XavierNorm"; }
  // The same with one output, which is the logit or a part of it and holds its bias: the log-odds
  // of this share of positives.
  std::string BiasedLogit(const std::string& top, const std::string& bottom, const char* weights,
                          double positives);
  std::string BiasedLogit(const std::string& top, const std::string& bottom,
                          const char* weights = "XavierNorm") {
    return BiasedLogit(top, bottom, weights, data_.positives);
  }
  // `top`, or in training a random part of it, scaled up (sizes_.vector_dropout).
  std::string Thinned(const std::string& top);
  // A deep network over `bottom`, without its last layer. widths: from this one on.
  std::string Deep(const std::string& bottom, const std::string& prefix = "", size_t first = 0);
  void AddData();
  void AddEmbedding();
  // The sum of the weights of all slots and dense features: [b, 1].
  std::string FirstOrder();
  // The vectors of all slots, side by side.
  std::string SlotVectors();
  // Everything that a deep network reads.
  std::string AllInputs();
  std::string Pairs();  // of a factorization machine: [b, 1]
  std::string CrossV2(const std::string& first);
  std::string Interaction();
  std::string Logit();

  // What a layer of this head is called before its own name: "click_".
  std::string PrefixOf(size_t head) const;
  // The logits of all heads.
  std::vector<std::string> Esmm();
  std::vector<std::string> Mmoe();
  std::vector<std::string> Ple();
  // Networks of one layer over `bottom`, side by side: [b, count * expert()].
  std::string Experts(const std::string& top, const std::string& bottom, uint32_t count);
  // The mean of `count` experts, weighted by a softmax that reads `bottom`: [b, expert()].
  std::string Mixture(const std::string& prefix, const std::string& level, const Json& experts,
                      uint32_t count, const std::string& bottom);
  // The rest of the network of a head, over a mixture, and its logit.
  std::string HeadLogit(size_t head, const std::string& bottom, size_t first);
  uint32_t expert() const { return sizes_.hidden.front(); }
  void AddLosses();

  const char* combiner() const {
    return data_.several_values && !data_.sums_values ? "mean" : "sum";
  }
  bool has_dense() const { return data_.dense_dim > 0; }
  bool has_vectors() const { return kind_ != ModelKind::kLr; }
  bool has_weights() const {
    return kind_ == ModelKind::kLr || kind_ == ModelKind::kFm || kind_ == ModelKind::kWdl ||
           kind_ == ModelKind::kDeepFm;
  }
  // A linear part with an embedding of its own, in the kinds that have none.
  bool adds_linear() const {
    return sizes_.linear_part && !has_weights() && !PredictsSeveral(kind_);
  }
  uint32_t vector() const { return has_vectors() ? sizes_.vector : 0; }
  uint32_t row() const { return vector() + (has_weights() ? 1 : 0); }
  uint32_t input_width() const { return data_.slot_num * vector() + data_.dense_dim; }

  const ModelKind kind_;
  const TemplateData& data_;
  const TemplateSizes& sizes_;
  Json layers_ = Json::array();
};

std::string Layers::Add(const std::string& type, const std::string& top, const Json& bottom,
                        const Json& more) {
  Json layer = {{"name", top}, {"type", type}, {"bottom", bottom}, {"top", top}};
  layer.update(more);
  layers_.push_back(std::move(layer));
  return top;
}

std::string Layers::Dense(const std::string& top, const std::string& bottom, uint32_t width,
                          const char* weights) {
  return Add(
      "InnerProduct", top, bottom,
      {{"fc_param", {{"num_output", width}, {"weight_init", weights}, {"bias_init", "Zero"}}}});
}

std::string Layers::DeepLogit() {
  const std::string bottom = Deep(AllInputs());
  return Dense("deep_logit", bottom, 1, last_weights());
}

std::string Layers::LastLogit(const std::string& bottom) {
  if (!adds_linear()) return BiasedLogit("logit", bottom, last_weights());
  Dense("deep_logit", bottom, 1, last_weights());
  return Add("Add", "logit", Json::array({FirstOrder(), "deep_logit"}));
}

std::string Layers::Thinned(const std::string& top) {
  if (sizes_.vector_dropout <= 0) return top;
  const std::string thinned = absl::StrCat("thinned_", top);
  for (const Json& layer : layers_) {
    if (layer["name"] == thinned) return thinned;
  }
  return Add("Dropout", thinned, top, {{"rate", sizes_.vector_dropout}});
}

// The bias starts where a model ends that knows the share of positives alone: where clicks are
// rare, the first epochs would else be spent on learning it.
std::string Layers::BiasedLogit(const std::string& top, const std::string& bottom,
                                const char* weights, double positives) {
  Dense(top, bottom, 1, weights);
  if (positives <= 0 || positives >= 1) return top;
  Json& constants = layers_.back()["fc_param"];
  const double log_odds = std::log(positives / (1 - positives));
  constants.erase("bias_init");
  constants["bias_value"] = std::round(log_odds * 1e4) / 1e4;
  return top;
}

std::string Layers::Deep(const std::string& bottom, const std::string& prefix, size_t first) {
  std::string top = bottom;
  for (size_t i = first; i < sizes_.hidden.size(); ++i) {
    const std::string number = absl::StrCat(i + 1);
    top = Dense(absl::StrCat(prefix, "fc", number), top, sizes_.hidden[i]);
    if (sizes_.batch_norm) {
      top =
          Add("BatchNorm", absl::StrCat(prefix, "bn", number), top, {{"bn_param", Json::object()}});
    }
    top = Add("ReLU", absl::StrCat(prefix, "relu", number), top);
    if (sizes_.dropout > 0) {
      top =
          Add("Dropout", absl::StrCat(prefix, "dropout", number), top, {{"rate", sizes_.dropout}});
    }
  }
  return top;
}

void Layers::AddData() {
  Json layer = {{"name", "data"}, {"type", "Data"}, {"format", "Norm"}, {"source", data_.source}};
  if (!data_.eval_source.empty()) layer["eval_source"] = data_.eval_source;
  layer["check"] = "Sum";
  if (data_.heads.empty()) {
    layer["label"] = {{"top", "label"}, {"label_dim", data_.label_dim}};
  } else {
    Json names = Json::array();
    for (const TemplateData::Head& head : data_.heads) names.push_back(head.label);
    layer["label"] = {{"top", names}, {"label_dim", std::vector<int>(data_.heads.size(), 1)}};
  }
  layer["dense"] = {{"top", "dense"}, {"dense_dim", data_.dense_dim}};
  Json sparse = {{"top", "slots"}, {"type", "DistributedSlot"}, {"slot_num", data_.slot_num}};
  if (!data_.several_values) sparse["max_feature_num_per_sample"] = data_.slot_num;
  layer["sparse"] = Json::array({sparse});
  layers_.push_back(layer);
}

void Layers::AddEmbedding() {
  Add("DistributedSlotSparseEmbeddingHash", "embedding", "slots",
      {{"sparse_embedding_hparam", {{"embedding_vec_size", row()}, {"combiner", combiner()}}}});
  if (adds_linear()) {
    Add("DistributedSlotSparseEmbeddingHash", kLinear, "slots",
        {{"sparse_embedding_hparam", {{"embedding_vec_size", 1}, {"combiner", combiner()}}}});
  }
  if (!has_vectors() || !has_weights()) return;
  Add("Reshape", "rows", "embedding", {{"leading_dim", row()}});
  layers_.push_back({{"name", "split"},
                     {"type", "Slice"},
                     {"bottom", "rows"},
                     {"top", {"vectors", "weights"}},
                     {"ranges", Json::array({{0, vector()}, {vector(), row()}})}});
}

std::string Layers::SlotVectors() {
  return Add("Reshape", "slot_vectors", has_weights() ? "vectors" : "embedding",
             {{"leading_dim", data_.slot_num * vector()}});
}

std::string Layers::FirstOrder() {
  const char* const weights = adds_linear() ? kLinear : has_vectors() ? "weights" : "embedding";
  Add("Reshape", "slot_weights", weights, {{"leading_dim", data_.slot_num}});
  const std::string slots = Add("ReduceSum", "slot_sum", "slot_weights", {{"axis", 1}});
  const std::string dense = has_dense() ? BiasedLogit("dense_sum", "dense", first_weights())
                                        : BiasedLogit("dense_sum", slots);
  // Without dense features this is a scale and the bias.
  return has_dense() ? Add("Add", "first_order", Json::array({slots, dense})) : dense;
}

std::string Layers::AllInputs() {
  const std::string slots = SlotVectors();
  if (!has_dense()) return Thinned(slots);
  return Thinned(Add("Concat", "inputs", Json::array({slots, "dense"})));
}

std::string Layers::Pairs() {
  std::string vectors = "slot_vectors";
  if (has_dense()) {
    Json multiply = {{"weight_dims", {data_.dense_dim, vector()}}};
    if (sizes_.zero_linear) multiply["weight_init"] = "Zero";
    Add("Multiply", "dense_vectors", "dense", multiply);
    vectors = Add("Concat", "all_vectors", Json::array({vectors, "dense_vectors"}));
  }
  Add("FmOrder2", "pairs", Thinned(vectors), {{"out_dim", vector()}});
  return Add("ReduceSum", "second_order", "pairs", {{"axis", 1}});
}

// x[l + 1] = x[0] * (W x[l] + b) + x[l], elementwise products.
std::string Layers::CrossV2(const std::string& first) {
  std::string top = first;
  for (uint32_t i = 1; i <= sizes_.crosses; ++i) {
    Dense(absl::StrCat("mix", i), top, input_width());
    Add("DotProduct", absl::StrCat("product", i), Json::array({first, absl::StrCat("mix", i)}));
    top = Add("Add", absl::StrCat("cross", i), Json::array({absl::StrCat("product", i), top}));
  }
  return top;
}

// Dot products of all pairs of slots and of the dense features, which a small network turns into a
// vector. Without dense features, that network reads the slots.
std::string Layers::Interaction() {
  std::string bottom = has_dense() ? "dense" : SlotVectors();
  if (has_dense()) {
    bottom = Add("ReLU", "bottom_relu", Dense("bottom1", bottom, 4 * vector()));
  }
  bottom = Add("ReLU", "bottom", Dense("bottom2", bottom, vector()));
  const std::string pairs = Add("Interaction", "pairs", Json::array({bottom, "embedding"}));
  if (has_dense()) SlotVectors();
  return Thinned(Add("Concat", "top_inputs", Json::array({pairs, "slot_vectors"})));
}

std::string Layers::Logit() {
  switch (kind_) {
    case ModelKind::kLr:
      return FirstOrder();
    case ModelKind::kFm:
      SlotVectors();
      return Add("Add", "logit", Json::array({FirstOrder(), Pairs()}));
    case ModelKind::kWdl:
      return Add("Add", "logit", Json::array({FirstOrder(), DeepLogit()}));
    case ModelKind::kDeepFm: {
      const std::string deep = DeepLogit();
      return Add("Add", "logit", Json::array({FirstOrder(), Pairs(), deep}));
    }
    case ModelKind::kDcn: {
      const std::string inputs = AllInputs();
      Add("MultiCross", "cross", inputs,
          {{"mc_param", {{"num_layers", sizes_.crosses}, {"weight_init", "XavierUniform"}}}});
      return LastLogit(Add("Concat", "both", Json::array({Thinned("cross"), Deep(inputs)})));
    }
    case ModelKind::kDcnV2: {
      const std::string inputs = AllInputs(), cross = CrossV2(inputs);
      return LastLogit(Add("Concat", "both", Json::array({Thinned(cross), Deep(inputs)})));
    }
    default:  // kDlrm
      break;
  }
  return LastLogit(Deep(Interaction()));
}

std::string Layers::PrefixOf(size_t head) const {
  const std::string& label = data_.heads[head].label;
  const bool is_word = std::all_of(label.begin(), label.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '_';
  });
  return is_word && !label.empty() && label != "shared" ? label + "_"
                                                        : absl::StrCat("task", head + 1, "_");
}

std::string Layers::Experts(const std::string& top, const std::string& bottom, uint32_t count) {
  return Add("ReLU", top + "_relu", Dense(top, bottom, count * expert()));
}

std::string Layers::Mixture(const std::string& prefix, const std::string& level,
                            const Json& experts, uint32_t count, const std::string& bottom) {
  const auto named = [&](const char* what) { return absl::StrCat(prefix, what, level); };
  const std::string joined = experts.is_string() ? experts.get<std::string>()
                                                 : Add("Concat", named("experts_of"), experts);
  // The experts of all labels are one tensor, whose rows are made once.
  const std::string rows = experts.is_string() ? absl::StrCat("experts", level, "_rows")
                                               : absl::StrCat(named("experts_of"), "_rows");
  const bool is_made = std::any_of(layers_.begin(), layers_.end(),
                                   [&](const Json& layer) { return layer["name"] == rows; });
  if (!is_made) Add("Reshape", rows, joined, {{"leading_dim", expert()}, {"time_step", count}});
  Dense(named("gate"), bottom, count);
  Add("Softmax", named("shares"), named("gate"));
  Add("Reshape", named("share_row"), named("shares"), {{"leading_dim", count}, {"time_step", 1}});
  Add("MatrixMultiply", named("mixed"), Json::array({named("share_row"), rows}));
  return Add("Reshape", named("mixture"), named("mixed"), {{"leading_dim", expert()}});
}

std::string Layers::HeadLogit(size_t head, const std::string& bottom, size_t first) {
  const std::string prefix = PrefixOf(head);
  return BiasedLogit(prefix + "logit", Deep(bottom, prefix, first), last_weights(),
                     data_.heads[head].positives);
}

// P(label) = P(the label before it) * P(label | the label before it): each factor has a network,
// and each label a loss over all samples.
std::vector<std::string> Layers::Esmm() {
  const std::string inputs = AllInputs();
  std::vector<std::string> logits = {HeadLogit(0, inputs, 0)};
  for (size_t i = 1; i < data_.heads.size(); ++i) {
    const std::string prefix = PrefixOf(i);
    const double before = data_.heads[i - 1].positives;
    const double after = before > 0 ? data_.heads[i].positives / before : 0;
    BiasedLogit(prefix + "after_logit", Deep(inputs, prefix), last_weights(), after);
    logits.push_back(Add("ProductLogit", prefix + "logit",
                         Json::array({logits.back(), prefix + "after_logit"})));
  }
  return logits;
}

std::vector<std::string> Layers::Mmoe() {
  constexpr uint32_t kExperts = 4;
  const std::string inputs = AllInputs(), experts = Experts("experts1", inputs, kExperts);
  std::vector<std::string> logits;
  for (size_t i = 0; i < data_.heads.size(); ++i) {
    logits.push_back(HeadLogit(i, Mixture(PrefixOf(i), "1", experts, kExperts, inputs), 1));
  }
  return logits;
}

// Progressive layered extraction: on each level the gate of a label mixes the shared experts and
// its own, and that of the shared experts mixes all; the next level reads these mixtures.
std::vector<std::string> Layers::Ple() {
  constexpr uint32_t kExperts = 2, kLevels = 2;
  const size_t heads = data_.heads.size();
  std::string shared = AllInputs();
  std::vector<std::string> inputs(heads, shared);
  for (uint32_t number = 1; number <= kLevels; ++number) {
    const std::string level = absl::StrCat(number);
    Json all = Json::array({Experts("experts" + level, shared, kExperts)});
    std::vector<std::string> mixtures;
    for (size_t i = 0; i < heads; ++i) {
      const std::string prefix = PrefixOf(i);
      all.push_back(Experts(absl::StrCat(prefix, "experts", level), inputs[i], kExperts));
      mixtures.push_back(
          Mixture(prefix, level, Json::array({all.front(), all.back()}), 2 * kExperts, inputs[i]));
    }
    if (number < kLevels) {
      const uint32_t count = static_cast<uint32_t>(all.size()) * kExperts;
      shared = Mixture("shared_", level, all, count, shared);
    }
    inputs = mixtures;
  }
  std::vector<std::string> logits;
  for (size_t i = 0; i < heads; ++i) logits.push_back(HeadLogit(i, inputs[i], 1));
  return logits;
}

void Layers::AddLosses() {
  const std::vector<std::string> logits = kind_ == ModelKind::kEsmm   ? Esmm()
                                          : kind_ == ModelKind::kMmoe ? Mmoe()
                                                                      : Ple();
  for (size_t i = 0; i < logits.size(); ++i) {
    Add("BinaryCrossEntropyLoss", PrefixOf(i) + "loss",
        Json::array({logits[i], data_.heads[i].label}), {{"loss_weight", 1}});
  }
}

Json Layers::Build() {
  AddData();
  AddEmbedding();
  if (PredictsSeveral(kind_)) {
    AddLosses();
  } else {
    Add("BinaryCrossEntropyLoss", "loss", Json::array({Logit(), "label"}));
  }
  for (Json& layer : layers_) {
    for (const auto& [name, comment] : kLayerComments) {
      if (layer.at("name") == name) layer["comment"] = comment;
    }
  }
  return layers_;
}

// To four significant digits.
double Rounded(double x) {
  return std::stod(absl::StrCat(absl::SixDigits(x)));
}

// embeddings: the names of these layers.
Json Settings(const TemplateData& data, const TemplateSizes& sizes,
              const std::vector<std::string>& embeddings) {
  Json cistern = {{"comment",
                   "Settings that HugeCTR has no key for: regularization, early stopping on the "
                   "log loss of the evaluation data, and rules for the rows of each embedding."},
                  {"init_scheme", "exact"},
                  {"shuffle", true},
                  {"embedding_l2", sizes.embedding_l2},
                  {"clip_norm", 10}};
  if (data.weighted) cistern["sample_weights"] = true;
  if (data.key_weights) cistern["key_weights"] = {"slots"};
  if (data.negative_rate < 1) cistern["negative_rate"] = data.negative_rate;
  if (!data.eval_source.empty()) {
    cistern["eval_every_epoch"] = true;
    if (data.heads.empty() && data.positives > 0 && data.positives < 1) {
      cistern["calibrate"] = Rounded(data.positives);
      if (data.exact_share) cistern["calibrate_exact"] = true;
    }
  }
  if (!data.eval_source.empty() && sizes.patience > 0) {
    cistern.update({{"monitor", "LogLoss"},
                    {"plateau_factor", 0.3},
                    {"plateau_min_lr", 1e-6},
                    {"plateau_min_gain", 5e-4},
                    {"patience", sizes.patience},
                    {"keep_best", true}});
  }
  const Json rows = {
      {"initializer", {{"type", "Normal"}, {"range", sizes.row_range}}},
      {"optimizer",
       {{"type", "Adam"}, {"learning_rate", sizes.row_learning_rate}, {"epsilon", 1e-8}}}};
  for (const std::string& name : embeddings) cistern["embeddings"][name] = rows;
  return cistern;
}

}  // namespace

bool PredictsSeveral(ModelKind kind) {
  return kind == ModelKind::kEsmm || kind == ModelKind::kMmoe || kind == ModelKind::kPle;
}

const char* Word(ModelKind kind) {
  for (const auto& [known, word] : kWords) {
    if (known == kind) return word;
  }
  return "";
}

std::optional<ModelKind> ModelKindOf(absl::string_view word) {
  for (const auto& [kind, known] : kWords) {
    if (word == known) return kind;
  }
  return std::nullopt;
}

std::string ModelKindWords() {
  std::string words;
  for (const auto& [kind, word] : kWords) absl::StrAppend(&words, words.empty() ? "" : "|", word);
  return words;
}

Json ModelTemplate(ModelKind kind, const TemplateData& data, const TemplateSizes& sizes) {
  CISTERN_CHECK(PredictsSeveral(kind) ? data.heads.size() > 1 : data.heads.empty());
  Json file;
  file["solver"] = {{"comment",
                     "Written by cistern init. docs/configuration.md explains each key; change "
                     "what you like. Training ends after num_epochs, or earlier (patience)."},
                    {"lr_policy", "fixed"},
                    {"num_epochs", sizes.epochs},
                    {"batchsize", sizes.batch},
                    {"batchsize_eval", sizes.batch < 4096 ? 4096 : sizes.batch},
                    {"display", 200},
                    {"eval_metrics", {"AUC"}},
                    {"input_key_type", data.wide_keys ? "I64" : "I32"},
                    {"seed", 1}};
  file["optimizer"] = {
      {"comment", "Of the dense weights; cistern.embeddings sets that of the rows."},
      {"type", "Adam"},
      {"update_type", "Local"},
      {"adam_hparam", {{"learning_rate", sizes.learning_rate}, {"epsilon", 1e-8}}}};
  const Json layers = Layers(kind, data, sizes).Build();
  std::vector<std::string> embeddings;
  for (const Json& layer : layers) {
    if (layer.contains("sparse_embedding_hparam")) embeddings.push_back(layer.at("name"));
  }
  file["cistern"] = Settings(data, sizes, embeddings);
  file["layers"] = layers;
  return file;
}

std::string ModelTemplateText(ModelKind kind, const TemplateData& data,
                              const TemplateSizes& sizes) {
  const Json file = ModelTemplate(kind, data, sizes);
  std::string text = "{\n";
  for (const auto& [key, value] : file.items()) {
    if (key == "layers") break;
    absl::StrAppend(&text, "  ", Json(key).dump(), ": {");
    const char* comma = "\n";
    for (const auto& [name, setting] : value.items()) {
      absl::StrAppend(&text, comma, "    ", Json(name).dump(), ": ", setting.dump());
      comma = ",\n";
    }
    absl::StrAppend(&text, "\n  },\n");
  }
  absl::StrAppend(&text, "  \"layers\": [");
  const char* comma = "\n";
  for (const Json& layer : file["layers"]) {
    absl::StrAppend(&text, comma, "    ", layer.dump());
    comma = ",\n";
  }
  return absl::StrCat(text, "\n  ]\n}\n");
}

}  // namespace cistern::model
