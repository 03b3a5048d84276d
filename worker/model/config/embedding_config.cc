// Reader of embedding layers: the model's view and the spec of the table that the servers create.
#include <algorithm>

#include "absl/strings/match.h"
#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/names.h"
#include "common/base/nearest_name.h"
#include "common/value/accessor.h"
#include "common/value/value_layout.h"
#include "worker/data/format/slot_sizes.h"
#include "worker/model/config/config_readers.h"

namespace cistern::model {
namespace {

absl::Status FindInput(const Json& json, const std::string& path, const DataConfig& data,
                       EmbeddingConfig* embedding) {
  if (json.at("bottom").size() != 1 || json.at("top").size() != 1) {
    return ConfigError(path, "an embedding must have one bottom and one top");
  }
  embedding->bottom = json.at("bottom")[0];
  embedding->top = json.at("top")[0];
  std::vector<std::string> inputs;
  for (size_t i = 0; i < data.sparse.size(); ++i) {
    inputs.push_back(data.sparse[i].top);
    if (inputs.back() != embedding->bottom) continue;
    embedding->input = i;
    return absl::OkStatus();
  }
  return ConfigError(path + ".bottom",
                     absl::StrCat("the Data layer has no sparse input '", embedding->bottom, "'",
                                  Suggest(embedding->bottom, inputs)));
}

// The default is HugeCTR's: U(-0.05, 0.05), or a range that depends on the slot size if a Localized
// embedding has its own slot_size_array; with init_scheme torch, N(0, 1).
v1::Initializer ReadInitializer(const Json* extras, bool torch, bool sized, const KeySpace& space) {
  v1::Initializer initializer;
  initializer.set_kind(torch ? v1::Initializer::NORMAL : v1::Initializer::UNIFORM);
  initializer.set_range(torch ? 1.0f : 0.05f);
  if (sized && (extras == nullptr || !extras->contains("initializer"))) {
    initializer.set_kind(v1::Initializer::SLOT_UNIFORM);
    for (const uint64_t size : space.sizes) {
      if (size > 0) initializer.mutable_slot_sizes()->add_sizes(size);  // 0: keys of the next slot
    }
  }
  if (extras == nullptr || !extras->contains("initializer")) return initializer;
  const Json& json = extras->at("initializer");
  const std::string type = json.at("type");
  initializer.set_range(json.at("range").get<float>());
  if (type == "Normal") initializer.set_kind(v1::Initializer::NORMAL);
  if (type == "Zero") {
    initializer.set_kind(v1::Initializer::ZERO);
    initializer.set_range(0);
  }
  return initializer;
}

// Rules that the file does not give stay unset, which keeps them out of the schema hash.
void ReadLifecycle(const Json& extras, v1::CtrRules* rules) {
  const auto read = [&](const char* key, void (v1::CtrRules::*set)(float)) {
    if (extras.contains(key)) (rules->*set)(extras.at(key).get<float>());
  };
  read("base_threshold", &v1::CtrRules::set_base_threshold);
  read("delta_threshold", &v1::CtrRules::set_delta_threshold);
  read("delta_keep_days", &v1::CtrRules::set_delta_keep_days);
  read("show_click_decay_rate", &v1::CtrRules::set_show_click_decay_rate);
  read("delete_threshold", &v1::CtrRules::set_delete_threshold);
  read("delete_after_unseen_days", &v1::CtrRules::set_delete_after_unseen_days);
  if (extras.contains("day_id_decay")) {
    rules->set_day_id_decay(extras.at("day_id_decay").get<bool>());
  }
}

// Bounds that the file does not give stay unset, which keeps them out of the schema hash.
absl::Status ReadBounds(const Json& extras, v1::TableSpec* spec) {
  const bool caps = extras.contains("max_rows"), expires = extras.contains("expire_passes");
  const bool ages = extras.contains("expire_days"), admits = extras.contains("admit_after");
  if (extras.contains("evict_by") && !caps) {
    return ConfigError("cistern.embeddings." + spec->name() + ".evict_by",
                       "chooses among the rows above max_rows, which is not set");
  }
  if (!caps && !expires && !ages && !admits) return absl::OkStatus();
  v1::TableBounds* const bounds = spec->mutable_bounds();
  if (caps) bounds->set_max_rows(extras.at("max_rows").get<uint64_t>());
  if (expires) bounds->set_expire_passes(extras.at("expire_passes").get<uint32_t>());
  if (ages) bounds->set_expire_days(extras.at("expire_days").get<uint32_t>());
  if (admits) bounds->set_admit_after(extras.at("admit_after").get<uint32_t>());
  const std::string order = extras.value("evict_by", "age");
  if (order == "count") bounds->set_evict_by(v1::TableBounds::COUNT);
  if (order == "show") bounds->set_evict_by(v1::TableBounds::SHOW);
  if (order == "norm") bounds->set_evict_by(v1::TableBounds::NORM);
  return absl::OkStatus();
}

absl::Status ReadCtr(const Json& extras, const std::string& path, EmbeddingConfig* embedding) {
  v1::TableSpec& spec = embedding->spec;
  if (embedding->vec_size < 2) {
    return ConfigError(path + ".sparse_embedding_hparam.embedding_vec_size",
                       "the ctr accessor needs at least 2: embed_w and one float of embedx_w");
  }
  spec.set_dim(embedding->vec_size - 1);
  spec.mutable_ctr()->set_embedx_threshold(extras.at("embedx_threshold").get<float>());
  spec.mutable_ctr()->set_nonclk_coeff(extras.at("nonclk_coeff").get<float>());
  spec.mutable_ctr()->set_click_coeff(extras.at("click_coeff").get<float>());
  spec.mutable_ctr()->set_show_scale(extras.at("show_scale").get<bool>());
  ReadLifecycle(extras, spec.mutable_ctr());
  return absl::OkStatus();
}

// The readers of the accessors that have keys of their own.
constexpr struct {
  v1::TableSpec::Accessor kind;
  absl::Status (*read)(const Json& extras, const std::string& path, EmbeddingConfig* embedding);
} kAccessorReaders[] = {{v1::TableSpec::CTR, ReadCtr}};

const Accessor& AccessorOf(const Json* extras) {
  const Accessor* const accessor = extras == nullptr
                                       ? FindAccessor(v1::TableSpec::EMBEDDING)
                                       : FindAccessor(extras->at("accessor").get<std::string>());
  CISTERN_CHECK(accessor != nullptr);  // the grammar knows the names
  return *accessor;
}

absl::Status ReadTable(const Accessor& accessor, const Json* extras, const std::string& path,
                       EmbeddingConfig* embedding) {
  embedding->spec.set_accessor(accessor.kind());
  embedding->spec.set_dim(embedding->vec_size);
  for (const auto& reader : kAccessorReaders) {
    if (reader.kind == accessor.kind()) return reader.read(*extras, path, embedding);
  }
  return absl::OkStatus();
}

absl::StatusOr<OptimizerConfig> ChooseOptimizer(const Json& json, const std::string& path,
                                                const OptimizerConfig& top_level,
                                                const Json* extras, Notes* notes) {
  const bool own = json.contains("optimizer");
  if (extras != nullptr && extras->contains("optimizer")) {
    if (own) {
      return ConfigError(path + ".optimizer",
                         absl::StrCat("cistern.embeddings.", LayerName(json),
                                      ".optimizer sets it too; keep one of them"));
    }
    return ReadRowRule(extras->at("optimizer"), "cistern.embeddings.optimizer", top_level);
  }
  if (!own) return top_level;
  return ReadOptimizer(json.at("optimizer"), path + ".optimizer", &top_level, notes);
}

// The Data layer's sizes, which are added to keys, take precedence over the embedding's own.
absl::Status ReadKeySpace(const Json& hparam, const std::string& path, const DataConfig& data,
                          EmbeddingConfig* embedding) {
  KeySpace& space = embedding->key_space;
  if (embedding->localized && hparam.contains("slot_size_array")) {
    space.sizes = hparam.at("slot_size_array").get<std::vector<uint64_t>>();
    data::SampleShape own;
    own.slot_nums = {data.sparse[embedding->input].slot_num};
    CISTERN_RETURN_IF_ERROR(AddContext(data::SlotSizes::Create(own, space.sizes).status(), path));
    const auto zero = std::find(space.sizes.begin(), space.sizes.end(), 0);
    if (zero != space.sizes.end() && data.slot_sizes.empty()) {
      return ConfigError(
          absl::StrCat(path, ".slot_size_array[", zero - space.sizes.begin(), "]"),
          "is 0: slots share keys by the slot_size_array of the Data layer (Raw, Parquet) only");
    }
  }
  if (data.slot_sizes.empty()) return absl::OkStatus();
  for (size_t i = 0; i < embedding->input; ++i) space.first += data.sparse[i].slot_num;
  for (size_t slot = 0; slot < space.sizes.size(); ++slot) {
    const uint64_t of_data = data.slot_sizes[space.first + slot];
    if (space.sizes[slot] == of_data) continue;
    return ConfigError(absl::StrCat(path, ".slot_size_array[", slot, "]"),
                       absl::StrCat("is ", space.sizes[slot], ", but layers[0].slot_size_array[",
                                    space.first + slot, "], the same slot, is ", of_data,
                                    ": make them agree, or leave this array out"));
  }
  space.sizes = data.slot_sizes;
  return absl::OkStatus();
}

}  // namespace

std::string LayerName(const Json& json) {
  const std::string name = json.value("name", "");
  if (!name.empty()) return name;
  return json.contains("top") && !json.at("top").empty() ? json.at("top")[0].get<std::string>()
                                                         : "";
}

absl::StatusOr<EmbeddingConfig> ReadEmbedding(const Json& json, const std::string& path,
                                              const DataConfig& data,
                                              const OptimizerConfig& default_optimizer,
                                              uint64_t seed, bool torch_init, const Json* extras,
                                              Notes* notes) {
  EmbeddingConfig embedding;
  embedding.name = LayerName(json);
  CISTERN_RETURN_IF_ERROR(AddContext(CheckName(embedding.name),
                                     path + ".name: the name of an embedding names its table"));
  CISTERN_RETURN_IF_ERROR(FindInput(json, path, data, &embedding));
  const Json& hparam = json.at("sparse_embedding_hparam");
  embedding.vec_size = hparam.at("embedding_vec_size");
  const std::string combiner = hparam.at("combiner");
  embedding.combiner = combiner == "1" || combiner == "mean" ? Combiner::kMean : Combiner::kSum;
  embedding.localized = absl::StartsWith(json.at("type").get<std::string>(), "Localized");
  embedding.one_hot = absl::EndsWith(json.at("type").get<std::string>(), "OneHot");
  CISTERN_RETURN_IF_ERROR(
      ReadKeySpace(hparam, path + ".sparse_embedding_hparam", data, &embedding));

  CISTERN_ASSIGN_OR_RETURN(embedding.optimizer,
                           ChooseOptimizer(json, path, default_optimizer, extras, notes));

  const Accessor& accessor = AccessorOf(extras);
  if (!accessor.defers_updates() && embedding.optimizer.rule.update_type != UpdateType::kLocal) {
    embedding.optimizer.rule.update_type = UpdateType::kLocal;
    notes->push_back(absl::StrCat(path, ": the ", accessor.name(),
                                  " accessor treats every update_type as Local: a step updates "
                                  "only the rows of its batch"));
  }
  embedding.spec.set_name(embedding.name);
  embedding.spec.set_seed(MixKey(seed ^ HashBytes(embedding.name)));
  *embedding.spec.mutable_rule() = ToUpdateRule(embedding.optimizer.rule);
  *embedding.spec.mutable_initializer() =
      ReadInitializer(extras, torch_init, embedding.localized && hparam.contains("slot_size_array"),
                      embedding.key_space);
  CISTERN_RETURN_IF_ERROR(ReadTable(accessor, extras, path, &embedding));
  if (extras != nullptr) {
    CISTERN_RETURN_IF_ERROR(ReadBounds(*extras, &embedding.spec));
    if (extras->at("row_type") == "bfloat16") {
      embedding.spec.set_row_type(v1::TableSpec::BFLOAT16);
    }
  }
  embedding.sums_gradients = extras != nullptr && extras->at("gradient") == "sum";
  CISTERN_RETURN_IF_ERROR(AddContext(ValueLayout::Create(embedding.spec).status(), path));
  return embedding;
}

}  // namespace cistern::model
