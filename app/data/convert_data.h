// Text converted to a data set, for a model file that a person writes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "app/job_calls.h"
#include "common/base/status.h"
#include "worker/data/prepare/convert.h"

namespace cistern::app {

enum class DataPart { kAll, kTrain, kTest };

struct ConvertDataOptions : data::ConvertOptions {
  // kTest: a tenth of the rows, by a hash of their numbers; kTrain: the others.
  DataPart part = DataPart::kAll;
};

// The words of options that are one of several, as people type them; those of the format are
// data::TextFormatWords().
inline constexpr std::pair<const char*, DataPart> kDataParts[] = {
    {"all", DataPart::kAll}, {"train", DataPart::kTrain}, {"test", DataPart::kTest}};
inline constexpr std::pair<const char*, data::DenseTransform> kDenseTransforms[] = {
    {"auto", data::DenseTransform::kAuto},
    {"none", data::DenseTransform::kNone},
    {"log1p", data::DenseTransform::kLog1p},
    {"standardize", data::DenseTransform::kStandardize}};
inline constexpr std::pair<const char*, data::StandIn> kStandIns[] = {
    {"none", data::StandIn::kNone}, {"key", data::StandIn::kKey}};
inline constexpr std::pair<const char*, data::KeyMode> kKeyModes[] = {
    {"auto", data::KeyMode::kAuto},
    {"raw", data::KeyMode::kRaw},
    {"hash", data::KeyMode::kHash},
    {"signed", data::KeyMode::kSigned}};
inline constexpr std::pair<const char*, data::LibsvmSlots> kLibsvmSlots[] = {
    {"position", data::LibsvmSlots::kPosition}, {"single", data::LibsvmSlots::kSingle}};
inline constexpr std::pair<const char*, data::NormCheck> kNormChecks[] = {
    {"sum", data::NormCheck::kSum}, {"none", data::NormCheck::kNone}};

// Converts, and notes what is odd about the data; its columns of numbers that became keys
// (ConvertSummary::number_slots) are the caller's to mention. progress: as for Convert; the job
// also ends when `calls` stops it.
//
// Errors of Convert, with a missing file as kInvalidArgument; kInvalidArgument, with options and a
// fix: an option beside a recipe, which says as much already.
absl::StatusOr<data::ConvertSummary> ConvertData(
    ConvertDataOptions options, const JobCalls& calls,
    const data::ConvertProgressCallback& progress = nullptr);

// The first option that is given beside a recipe although the recipe decides it; "" for none.
std::string OptionBesideRecipe(const data::ConvertOptions& options);

// The label_dim of a model for the data: the weight is no label of it.
uint32_t LabelDimOf(const data::ConvertSummary& summary);

// Of one label with both classes: "positive" or "negative", whichever has weight 0 in all samples
// while the other has not, so that a model would not learn it; null if there is none.
const char* WeightlessClassOf(const data::ConvertSummary& summary);

nlohmann::ordered_json JsonOf(const data::ConvertSummary& summary);

}  // namespace cistern::app
