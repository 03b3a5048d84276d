#include "worker/model/config/model_template.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace cistern {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::pair<ModelKind, const char*> kWords[] = {
    {ModelKind::kLr, "lr"},         {ModelKind::kFm, "fm"},   {ModelKind::kWdl, "wdl"},
    {ModelKind::kDeepFm, "deepfm"}, {ModelKind::kDcn, "dcn"}, {ModelKind::kDcnV2, "dcnv2"},
    {ModelKind::kDlrm, "dlrm"}};

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
  std::string Dense(const std::string& top, const std::string& bottom, uint32_t width);
  // The same with one output, which is the logit or a part of it and holds its bias.
  std::string BiasedLogit(const std::string& top, const std::string& bottom);
  // A deep network over `bottom`, without its last layer.
  std::string Deep(const std::string& bottom);
  void AddData();
  void AddEmbedding();
  // The sum of the weights of all slots and dense features: [b, 1].
  std::string FirstOrder();
  // The vectors of all slots, side by side.
  std::string SlotVectors();
  // Everything that a deep network reads.
  std::string AllInputs();
  std::string Pairs();  // of a factorization machine: [b, 1]
  std::string CrossV2();
  std::string Interaction();
  std::string Logit();

  bool has_dense() const { return data_.dense_dim > 0; }
  bool has_vectors() const { return kind_ != ModelKind::kLr; }
  bool has_weights() const {
    return kind_ == ModelKind::kLr || kind_ == ModelKind::kFm || kind_ == ModelKind::kWdl ||
           kind_ == ModelKind::kDeepFm;
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

std::string Layers::Dense(const std::string& top, const std::string& bottom, uint32_t width) {
  return Add("InnerProduct", top, bottom,
             {{"fc_param",
               {{"num_output", width}, {"weight_init", "XavierNorm"}, {"bias_init", "Zero"}}}});
}

// The bias starts where a model ends that knows the share of positives alone: where clicks are
// rare, the first epochs would else be spent on learning it.
std::string Layers::BiasedLogit(const std::string& top, const std::string& bottom) {
  Dense(top, bottom, 1);
  if (data_.positives <= 0 || data_.positives >= 1) return top;
  Json& constants = layers_.back()["fc_param"];
  const double log_odds = std::log(data_.positives / (1 - data_.positives));
  constants.erase("bias_init");
  constants["bias_value"] = std::round(log_odds * 1e4) / 1e4;
  return top;
}

std::string Layers::Deep(const std::string& bottom) {
  std::string top = bottom;
  for (size_t i = 0; i < sizes_.hidden.size(); ++i) {
    const std::string number = absl::StrCat(i + 1);
    top = Dense("fc" + number, top, sizes_.hidden[i]);
    if (sizes_.batch_norm) {
      top = Add("BatchNorm", "bn" + number, top, {{"bn_param", Json::object()}});
    }
    top = Add("ReLU", "relu" + number, top);
    if (sizes_.dropout > 0) {
      top = Add("Dropout", "dropout" + number, top, {{"rate", sizes_.dropout}});
    }
  }
  return top;
}

void Layers::AddData() {
  Json layer = {{"name", "data"}, {"type", "Data"}, {"format", "Norm"}, {"source", data_.source}};
  if (!data_.eval_source.empty()) layer["eval_source"] = data_.eval_source;
  layer["check"] = "Sum";
  layer["label"] = {{"top", "label"}, {"label_dim", data_.label_dim}};
  layer["dense"] = {{"top", "dense"}, {"dense_dim", data_.dense_dim}};
  Json sparse = {{"top", "slots"}, {"type", "DistributedSlot"}, {"slot_num", data_.slot_num}};
  if (!data_.several_values) sparse["max_feature_num_per_sample"] = data_.slot_num;
  layer["sparse"] = Json::array({sparse});
  layers_.push_back(layer);
}

void Layers::AddEmbedding() {
  Add("DistributedSlotSparseEmbeddingHash", "embedding", "slots",
      {{"sparse_embedding_hparam",
        {{"embedding_vec_size", row()}, {"combiner", data_.several_values ? "mean" : "sum"}}}});
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
  Add("Reshape", "slot_weights", has_vectors() ? "weights" : "embedding",
      {{"leading_dim", data_.slot_num}});
  const std::string slots = Add("ReduceSum", "slot_sum", "slot_weights", {{"axis", 1}});
  const std::string dense = BiasedLogit("dense_sum", has_dense() ? "dense" : slots);
  // Without dense features this is a scale and the bias.
  return has_dense() ? Add("Add", "first_order", Json::array({slots, dense})) : dense;
}

std::string Layers::AllInputs() {
  const std::string slots = SlotVectors();
  if (!has_dense()) return slots;
  return Add("Concat", "inputs", Json::array({slots, "dense"}));
}

std::string Layers::Pairs() {
  std::string vectors = "slot_vectors";
  if (has_dense()) {
    Add("Multiply", "dense_vectors", "dense", {{"weight_dims", {data_.dense_dim, vector()}}});
    vectors = Add("Concat", "all_vectors", Json::array({vectors, "dense_vectors"}));
  }
  Add("FmOrder2", "pairs", vectors, {{"out_dim", vector()}});
  return Add("ReduceSum", "second_order", "pairs", {{"axis", 1}});
}

// x[l + 1] = x[0] * (W x[l] + b) + x[l], elementwise products.
std::string Layers::CrossV2() {
  const std::string first = has_dense() ? "inputs" : "slot_vectors";
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
  if (!has_dense()) return Add("Concat", "top_inputs", Json::array({pairs, "slot_vectors"}));
  SlotVectors();
  return Add("Concat", "top_inputs", Json::array({pairs, "slot_vectors"}));
}

std::string Layers::Logit() {
  switch (kind_) {
    case ModelKind::kLr:
      return FirstOrder();
    case ModelKind::kFm:
      SlotVectors();
      return Add("Add", "logit", Json::array({FirstOrder(), Pairs()}));
    case ModelKind::kWdl:
      return Add("Add", "logit",
                 Json::array({FirstOrder(), Dense("deep_logit", Deep(AllInputs()), 1)}));
    case ModelKind::kDeepFm: {
      const std::string deep = Dense("deep_logit", Deep(AllInputs()), 1);
      return Add("Add", "logit", Json::array({FirstOrder(), Pairs(), deep}));
    }
    case ModelKind::kDcn: {
      const std::string inputs = AllInputs();
      Add("MultiCross", "cross", inputs,
          {{"mc_param", {{"num_layers", sizes_.crosses}, {"weight_init", "XavierUniform"}}}});
      return BiasedLogit("logit", Add("Concat", "both", Json::array({"cross", Deep(inputs)})));
    }
    case ModelKind::kDcnV2: {
      const std::string inputs = AllInputs(), cross = CrossV2();
      return BiasedLogit("logit", Add("Concat", "both", Json::array({cross, Deep(inputs)})));
    }
    case ModelKind::kDlrm:
      break;
  }
  return BiasedLogit("logit", Deep(Interaction()));
}

Json Layers::Build() {
  AddData();
  AddEmbedding();
  Add("BinaryCrossEntropyLoss", "loss", Json::array({Logit(), "label"}));
  for (Json& layer : layers_) {
    for (const auto& [name, comment] : kLayerComments) {
      if (layer.at("name") == name) layer["comment"] = comment;
    }
  }
  return layers_;
}

Json Settings(const TemplateData& data, const TemplateSizes& sizes) {
  Json cistern = {{"comment",
                   "Settings that HugeCTR has no key for: regularization, early stopping on the "
                   "log loss of the evaluation data, and rules for the rows of each embedding."},
                  {"init_scheme", "exact"},
                  {"shuffle", true},
                  {"embedding_l2", sizes.embedding_l2},
                  {"clip_norm", 10}};
  if (data.weighted) cistern["sample_weights"] = true;
  if (!data.eval_source.empty()) {
    cistern.update({{"eval_every_epoch", true},
                    {"monitor", "LogLoss"},
                    {"plateau_factor", 0.3},
                    {"plateau_min_lr", 1e-6},
                    {"plateau_min_gain", 5e-4},
                    {"patience", sizes.patience},
                    {"keep_best", true}});
  }
  cistern["embeddings"]["embedding"] = {
      {"initializer", {{"type", "Normal"}, {"range", sizes.row_range}}},
      {"optimizer",
       {{"type", "Adam"}, {"learning_rate", sizes.row_learning_rate}, {"epsilon", 1e-8}}}};
  return cistern;
}

}  // namespace

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

uint64_t RarerClass(uint64_t samples, double positives) {
  if (positives <= 0 || positives >= 1) return samples;
  const double share = std::min(positives, 1 - positives);
  return static_cast<uint64_t>(std::llround(share * static_cast<double>(samples)));
}

TemplateSizes SizesFor(ModelKind kind, uint64_t samples, uint64_t keys, uint64_t rarer) {
  constexpr uint64_t kSmall = 100000, kLarge = 5000000;
  TemplateSizes sizes;
  const bool small = samples < kSmall, large = samples >= kLarge;
  const bool rare_keys = keys > samples / 2;
  const bool shallow = kind == ModelKind::kLr || kind == ModelKind::kFm;
  const bool rare_class = rarer < kMinRarerForDeep && !shallow;
  sizes.vector = small ? 8 : large ? 16 : 10;
  sizes.hidden = small   ? std::vector<uint32_t>{128, 64}
                 : large ? std::vector<uint32_t>{400, 400, 400}
                         : std::vector<uint32_t>{256, 128};
  sizes.batch_norm = !rare_keys && !rare_class;
  sizes.dropout = small ? 0.1 : 0.2;
  sizes.crosses = small ? 2 : 3;
  // Rules that count epochs need epochs of enough steps, and a small table needs enough epochs.
  constexpr uint64_t kStepsOfEpoch = 256, kSteps = 5000;
  constexpr uint32_t kMaxEpochs = 60;
  sizes.batch = 8;
  while (sizes.batch < 4096 && samples / (2 * sizes.batch) >= kStepsOfEpoch) sizes.batch *= 2;
  const uint64_t steps = std::max<uint64_t>(samples / sizes.batch, 1);
  sizes.epochs = std::clamp(static_cast<uint32_t>(kSteps / steps), shallow ? 40u : 20u, kMaxEpochs);
  sizes.patience = std::max(rare_class ? 5u : 3u,
                            static_cast<uint32_t>((3 * kStepsOfEpoch + steps - 1) / steps));
  sizes.learning_rate = shallow ? 0.005 : 0.001;
  sizes.row_learning_rate = rare_keys ? 0.0002 : 0.003;
  sizes.embedding_l2 = rare_keys ? 1e-2 : shallow ? 1e-4 : 0.05;
  if (kind == ModelKind::kLr && rare_keys) {  // a weight a key can learn faster than a vector
    sizes.row_learning_rate = 0.001;
    sizes.embedding_l2 = 1e-3;
  }
  if (rare_class) {
    sizes.hidden = {32, 16};
    sizes.learning_rate = 0.0005;
    sizes.row_learning_rate = std::min(sizes.row_learning_rate, 0.001);
    sizes.row_range = 0.001;
    sizes.embedding_l2 = 1e-3;
  }
  return sizes;
}

Json ModelTemplate(ModelKind kind, const TemplateData& data, const TemplateSizes& sizes) {
  Json file;
  file["solver"] = {{"comment",
                     "Written by cistern init. docs/configuration.md explains each key; change "
                     "what you like. Training ends after num_epochs, or earlier (patience)."},
                    {"lr_policy", "fixed"},
                    {"num_epochs", sizes.epochs},
                    {"batchsize", sizes.batch},
                    {"batchsize_eval", std::max<uint32_t>(sizes.batch, 4096)},
                    {"display", 200},
                    {"eval_metrics", {"AUC"}},
                    {"input_key_type", data.wide_keys ? "I64" : "I32"},
                    {"seed", 1}};
  file["optimizer"] = {
      {"comment", "Of the dense weights; cistern.embeddings sets that of the rows."},
      {"type", "Adam"},
      {"update_type", "Local"},
      {"adam_hparam", {{"learning_rate", sizes.learning_rate}, {"epsilon", 1e-8}}}};
  file["cistern"] = Settings(data, sizes);
  file["layers"] = Layers(kind, data, sizes).Build();
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

}  // namespace cistern
