#include "worker/data/recipe/text_format.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "common/base/check.h"
#include "worker/data/recipe/text_table.h"

namespace cistern::data {
namespace {

std::unique_ptr<FeatureLine> NewLibsvmFeatures(FeatureValues values,
                                               const std::vector<std::string>& columns,
                                               bool single_slot) {
  return NewLibsvmLine(values, single_slot ? 0 : columns.size() - 1);
}

std::unique_ptr<FeatureLine> NewLibffmFeatures(FeatureValues values,
                                               const std::vector<std::string>& columns, bool) {
  return NewLibffmLine(values, columns);
}

bool IsFeature(absl::string_view text, const TextFormatEntry& format) {
  return std::count(text.begin(), text.end(), ':') == format.colons &&
         absl::ascii_isdigit(static_cast<unsigned char>(text.front()));
}

std::unique_ptr<FeatureLine> NewVwFeatures(FeatureValues values,
                                           const std::vector<std::string>& columns, bool) {
  return NewVwLine(values, columns);
}

constexpr TextFormatEntry kFormats[] = {{.format = TextFormat::kCsv,
                                         .word = "csv",
                                         .extensions = ".csv",
                                         .delimiter = ',',
                                         .quotes = true,
                                         .is_default = true,
                                         .open = OpenDelimited},
                                        {.format = TextFormat::kTsv,
                                         .word = "tsv",
                                         .extensions = ".tsv",
                                         .delimiter = '\t',
                                         .open = OpenDelimited},
                                        {.format = TextFormat::kLibsvm,
                                         .word = "libsvm",
                                         .extensions = ".svm .libsvm .svmlight .libfm",
                                         .delimiter = ' ',
                                         .colons = 1,
                                         .by_position = true,
                                         .comment = '#',
                                         .open = OpenLibsvm,
                                         .features = NewLibsvmFeatures},
                                        {.format = TextFormat::kLibffm,
                                         .word = "libffm",
                                         .extensions = ".libffm .ffm",
                                         .delimiter = ' ',
                                         .packs = false,
                                         .colons = 2,
                                         .recipe_format = 3,
                                         .open = OpenLibffm,
                                         .features = NewLibffmFeatures},
                                        {.format = TextFormat::kVw,
                                         .word = "vw",
                                         .extensions = ".vw",
                                         .delimiter = ' ',
                                         .packs = false,
                                         .names = true,
                                         .recipe_format = 6,
                                         .open = OpenVw,
                                         .features = NewVwFeatures},
                                        {.format = TextFormat::kCriteo,
                                         .word = "criteo",
                                         .extensions = "",
                                         .delimiter = '\t',
                                         .columns = "label,I1..I13,C1..C26",
                                         .log1p = 13,
                                         .open = OpenDelimited}};

}  // namespace

absl::Span<const TextFormatEntry> TextFormats() {
  return kFormats;
}

const TextFormatEntry& EntryOf(TextFormat format) {
  const auto entry = std::find_if(std::begin(kFormats), std::end(kFormats),
                                  [&](const auto& one) { return one.format == format; });
  CISTERN_CHECK(entry != std::end(kFormats));
  return *entry;
}

const TextFormatEntry* FindFeatureFormat(absl::Span<const absl::string_view> features) {
  if (features.empty()) return nullptr;
  const auto entry =
      std::find_if(std::begin(kFormats), std::end(kFormats), [&](const TextFormatEntry& one) {
        return one.colons > 0 && std::all_of(features.begin(), features.end(),
                                                 [&](auto text) { return IsFeature(text, one); });
      });
  return entry == std::end(kFormats) ? nullptr : entry;
}

std::vector<std::pair<const char*, TextFormat>> TextFormatWords(bool packed) {
  std::vector<std::pair<const char*, TextFormat>> words;
  for (const TextFormatEntry& entry : kFormats) {
    if (entry.packs || !packed) words.emplace_back(entry.word, entry.format);
  }
  return words;
}

}  // namespace cistern::data
