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

// What is wrong with the weights of samples to train on; empty: nothing that is known.
//   - Of one label with both classes, all weights of one class are 0, and those of the other are
//     not: a model would not learn it.
//   - They make samples count as fewer than kMinEqualSamples of one weight, sum(w)^2 / sum(w^2)
//     (Kish 1965): the model would be of these alone, such as of one row with a weight of 1e9.
inline constexpr double kMinEqualSamples = 20;
std::string WeightFaultOf(const data::ConvertSummary& summary);

nlohmann::ordered_json JsonOf(const data::ConvertSummary& summary);

}  // namespace cistern::app
