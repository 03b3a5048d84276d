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

struct ConvertDataOptions : ConvertOptions {
  // kTest: a tenth of the rows, by a hash of their numbers; kTrain: the others.
  DataPart part = DataPart::kAll;
};

// The words of options that are one of several, as people type them.
inline constexpr std::pair<const char*, TextFormat> kTextFormats[] = {
    {"csv", TextFormat::kCsv},
    {"tsv", TextFormat::kTsv},
    {"libsvm", TextFormat::kLibsvm},
    {"libffm", TextFormat::kLibffm},
    {"criteo", TextFormat::kCriteo}};
inline constexpr std::pair<const char*, DataPart> kDataParts[] = {
    {"all", DataPart::kAll}, {"train", DataPart::kTrain}, {"test", DataPart::kTest}};
inline constexpr std::pair<const char*, DenseTransform> kDenseTransforms[] = {
    {"auto", DenseTransform::kAuto},
    {"none", DenseTransform::kNone},
    {"log1p", DenseTransform::kLog1p},
    {"standardize", DenseTransform::kStandardize}};
inline constexpr std::pair<const char*, StandIn> kStandIns[] = {{"none", StandIn::kNone},
                                                                {"key", StandIn::kKey}};
inline constexpr std::pair<const char*, KeyMode> kKeyModes[] = {{"auto", KeyMode::kAuto},
                                                                {"raw", KeyMode::kRaw},
                                                                {"hash", KeyMode::kHash},
                                                                {"signed", KeyMode::kSigned}};
inline constexpr std::pair<const char*, LibsvmSlots> kLibsvmSlots[] = {
    {"position", LibsvmSlots::kPosition}, {"single", LibsvmSlots::kSingle}};
inline constexpr std::pair<const char*, NormCheck> kNormChecks[] = {{"sum", NormCheck::kSum},
                                                                    {"none", NormCheck::kNone}};

// Converts, and notes what is odd about the data; its columns of numbers that became keys
// (ConvertSummary::number_slots) are the caller's to mention. progress: as for Convert; the job
// also ends when `calls` stops it.
//
// Errors of Convert, with a missing file as kInvalidArgument; kInvalidArgument, with options and a
// fix: an option beside a recipe, which says as much already.
absl::StatusOr<ConvertSummary> ConvertData(ConvertDataOptions options, const JobCalls& calls,
                                           const ConvertProgressCallback& progress = nullptr);

// The first option that is given beside a recipe although the recipe decides it; "" for none.
std::string OptionBesideRecipe(const ConvertOptions& options);

// The label_dim of a model for the data: the weight is no label of it.
uint32_t LabelDimOf(const ConvertSummary& summary);

nlohmann::ordered_json JsonOf(const ConvertSummary& summary);

}  // namespace cistern::app
