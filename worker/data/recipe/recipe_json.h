// The JSON form of a recipe, shared by the files that write, read and compare recipes.
//
// Only .cc files of this folder include this header, because the JSON library is slow to compile.
#pragma once

#include <nlohmann/json.hpp>
#include <utility>

#include "worker/data/recipe/recipe.h"

namespace cistern::data {

// A recipe is written in the oldest format that can say it. 2: with crosses; 3: with negative
// labels, bounds, the forms of values, or a history; 4: with a weight; 5: with weights of keys;
// 6: with standardized logarithms, or of lines of Vowpal Wabbit.
inline constexpr uint64_t kRecipeFormat = 6, kRecipeFormatWithoutLogMeans = 5,
                          kRecipeFormatWithoutKeyWeights = 4, kRecipeFormatWithoutWeights = 3,
                          kRecipeFormatOfCrosses = 2, kRecipeFormatWithoutCrosses = 1;

// Words of the file, by value.
inline constexpr std::pair<KeyMode, const char*> kKeyModeWords[] = {
    {KeyMode::kRaw, "raw"}, {KeyMode::kHash, "hash"}, {KeyMode::kSigned, "signed"}};
inline constexpr std::pair<StandIn, const char*> kStandInWords[] = {{StandIn::kNone, "none"},
                                                                    {StandIn::kKey, "key"}};
inline constexpr std::pair<DenseTransform, const char*> kTransformWords[] = {
    {DenseTransform::kNone, "none"},
    {DenseTransform::kLog1p, "log1p"},
    {DenseTransform::kStandardize, "standardize"}};

// Labels, dense columns, slots, keys: what the hash of a recipe covers.
nlohmann::ordered_json MeaningJson(const Recipe& recipe);
nlohmann::ordered_json LayoutJson(const Recipe::Layout& layout);
nlohmann::ordered_json HistoryJson(const Recipe::History& history);

}  // namespace cistern::data
