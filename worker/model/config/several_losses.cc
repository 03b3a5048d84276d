#include "worker/model/config/several_losses.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "worker/model/config/config_readers.h"

namespace cistern::model {
namespace {

struct Head {
  std::string label, logit;
  uint64_t columns = 1;
  double weight = 1;
  size_t losses = 0;
};

bool IsLossType(const Json& layer) {
  return layer.is_object() && layer.contains("type") && layer.at("type").is_string() &&
         absl::EndsWith(layer.at("type").get<std::string>(), "CrossEntropyLoss");
}

absl::StatusOr<std::vector<Head>> ReadHeads(const Json& label) {
  const std::string path = "layers[0].label";
  const Json& tops = label.at("top");
  std::vector<Head> heads;
  for (const Json& top : tops) {
    if (!top.is_string()) return ConfigError(path + ".top", "must be names");
    const std::string name = top.get<std::string>();
    const bool again = std::any_of(heads.begin(), heads.end(),
                                   [&](const Head& head) { return head.label == name; });
    if (again) return ConfigError(path + ".top", absl::StrCat("names '", name, "' twice"));
    heads.push_back({name, ""});
  }
  if (heads.empty()) return ConfigError(path + ".top", "names no label");
  const auto dims = label.find("label_dim");
  if (dims == label.end() || !dims->is_array() || dims->size() != heads.size()) {
    return ConfigError(path + ".label_dim",
                       absl::StrCat("must be ", heads.size(), " numbers, one for each label"));
  }
  for (size_t i = 0; i < heads.size(); ++i) {
    constexpr uint64_t kMaxColumns = 1024;
    const Json& dim = dims->at(i);
    if (!dim.is_number_unsigned() || dim.get<uint64_t>() < 1 || dim.get<uint64_t>() > kMaxColumns) {
      return ConfigError(absl::StrCat(path, ".label_dim[", i, "]"),
                         absl::StrCat("must be an integer from 1 to ", kMaxColumns));
    }
    heads[i].columns = dim.get<uint64_t>();
  }
  return heads;
}

// Takes one loss layer. loss: the joint one, which gets its regularizer.
absl::Status TakeLoss(const Json& layer, const std::string& path, std::vector<Head>* heads,
                      Json* loss) {
  if (layer.at("type") != "BinaryCrossEntropyLoss") {
    return ConfigError(path + ".type",
                       "a label of several has a BinaryCrossEntropyLoss of its own");
  }
  const auto bottoms = layer.find("bottom");
  if (bottoms == layer.end() || !bottoms->is_array() || bottoms->size() != 2 ||
      !bottoms->at(0).is_string() || !bottoms->at(1).is_string()) {
    return ConfigError(path + ".bottom", "must be [logit, label]");
  }
  const std::string label = bottoms->at(1).get<std::string>();
  const auto head = std::find_if(heads->begin(), heads->end(),
                                 [&](const Head& one) { return one.label == label; });
  if (head == heads->end()) {
    return ConfigError(path + ".bottom", absl::StrCat("'", label, "' is no label of layers[0]"));
  }
  if (++head->losses > 1) {
    return ConfigError(path + ".bottom", absl::StrCat("label '", label, "' has a loss already"));
  }
  head->logit = bottoms->at(0).get<std::string>();
  if (const auto weight = layer.find("loss_weight"); weight != layer.end()) {
    if (!weight->is_number() || !(weight->get<double>() >= 0 && weight->get<double>() <= 1e6)) {
      return ConfigError(path + ".loss_weight", "must be a number from 0 to 1e+06");
    }
    head->weight = weight->get<double>();
  }
  for (const auto& [key, value] : layer.items()) {
    if (key == "name" || key == "type" || key == "bottom" || key == "top" || key == "loss_weight") {
      continue;
    }
    const auto before = loss->find(key);
    if (before != loss->end() && *before != value) {
      return ConfigError(absl::StrCat(path, ".", key),
                         "the losses of several labels have one regularizer: give all the same");
    }
    (*loss)[key] = value;
  }
  return absl::OkStatus();
}

bool HasName(const Json& layers, const std::string& name) {
  const auto is_top = [&](const Json& top) {
    return top == name || (top.is_array() && std::count(top.begin(), top.end(), name) > 0);
  };
  return std::any_of(layers.begin(), layers.end(), [&](const Json& layer) {
    return layer.is_object() &&
           (layer.value("name", Json()) == name || is_top(layer.value("top", Json())));
  });
}

std::string FreeName(const Json& layers, std::string name) {
  while (HasName(layers, name)) name += "_";
  return name;
}

}  // namespace

absl::Status JoinLosses(Json* file, std::vector<std::string>* names) {
  names->clear();
  const auto found = file->find("layers");
  if (found == file->end() || !found->is_array() || found->empty()) return absl::OkStatus();
  Json& layers = *found;
  Json& data = layers.front();
  if (!data.is_object() || !data.contains("label") || !data.at("label").is_object()) {
    return absl::OkStatus();
  }
  Json& label = data.at("label");
  if (!label.contains("top") || !label.at("top").is_array()) return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(std::vector<Head> heads, ReadHeads(label));
  Json kept = Json::array(), loss = Json::object();
  for (size_t i = 0; i < layers.size(); ++i) {
    if (!IsLossType(layers[i])) {
      kept.push_back(layers[i]);
      continue;
    }
    CISTERN_RETURN_IF_ERROR(TakeLoss(layers[i], absl::StrCat("layers[", i, "]"), &heads, &loss));
  }
  std::vector<std::string> labels, logits;
  uint64_t columns = 0;
  for (const Head& head : heads) {
    if (head.losses == 0) {
      return ConfigError("layers[0].label.top",
                         absl::StrCat("label '", head.label, "' has no BinaryCrossEntropyLoss"));
    }
    labels.push_back(head.label);
    logits.push_back(head.logit);
    columns += head.columns;
  }
  Json weights = Json::array();
  for (const Head& head : heads) {
    for (uint64_t column = 0; column < head.columns; ++column) {
      names->push_back(head.columns == 1 ? head.label : absl::StrCat(head.label, "[", column, "]"));
      weights.push_back(head.weight * static_cast<double>(columns) /
                        static_cast<double>(head.columns));
    }
  }
  const std::string joined = FreeName(kept, absl::StrJoin(labels, "+"));
  std::string all = logits.front();
  if (logits.size() > 1) {
    all = FreeName(kept, "all_logits");
    kept.push_back({{"name", all}, {"type", "Concat"}, {"bottom", logits}, {"top", all}});
  }
  loss["name"] = FreeName(kept, "loss");
  loss["type"] = "MultiCrossEntropyLoss";
  loss["bottom"] = {all, joined};
  loss["top"] = loss["name"];
  loss["target_weight"] = weights;
  kept.push_back(loss);
  kept.front().at("label") = {{"top", joined}, {"label_dim", columns}};
  layers = kept;
  return absl::OkStatus();
}

}  // namespace cistern::model
