// Random data in the shape of a model, or in a shape of its own.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/prepare/generate.h"

namespace cistern::app {

struct GenerateDataOptions : data::GenerateOptions {  // `data` is filled from the options below
  // A model file whose Data layer has format and shape, with its overrides. Without one:
  std::string model;
  std::vector<std::string> set;
  data::DataFormat format = data::DataFormat::kNorm;
  uint64_t labels = 1, dense = 0, slots = 0;      // slots 0: as many as slot_sizes
  data::NormCheck check = data::NormCheck::kSum;  // Norm
  int key_bits = 64;                              // Norm
  bool float_label_dense = false;                 // Raw
  // The number of distinct keys of each slot; empty: those of the model, or keys_per_slot.
  std::vector<uint64_t> slot_sizes;
  uint64_t keys_per_slot = 1000;
};

struct GeneratedData : data::GenerateSummary {
  data::GenerateOptions made_with;
};

// Returns the errors of Generate. kInvalidArgument, naming the options: an option is given that the
// model already decides; the shape is missing or too large.
absl::StatusOr<GeneratedData> GenerateData(GenerateDataOptions options,
                                           const std::function<bool(uint64_t)>& progress = nullptr);

// The first option that is given beside a model although the model decides it; "" for none.
std::string OptionBesideModel(const GenerateDataOptions& options);

nlohmann::ordered_json JsonOf(const GeneratedData& data);

}  // namespace cistern::app
