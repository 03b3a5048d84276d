// What the name of a column says.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cistern::data {

// The words of a name: "userId" and "user_id" are user, id; "category12" is category.
std::vector<std::string> WordsOf(const std::string& name);
// Whether one of its words is among `words`.
bool HasWord(const std::string& name, std::initializer_list<absl::string_view> words);

// Integers with such a name are amounts, such as price_in_cents; order_number is none.
bool IsAmountName(const std::string& name);

// Integers with such a name number things; they do not measure, as user_age and item_price do.
bool NumbersThings(const std::string& name);
// Numbers with such a name are versions, where 4.1 and 4.10 differ.
bool IsVersionName(const std::string& name);
// What is known only after a click, such as dwell_time or purchase.
bool IsFeedbackName(const std::string& name);
// A weight of the sample: sample_weight. Of a column "weight" the values decide.
bool IsSampleWeightName(const std::string& name);
// An id of a query, a session or a request, whose values do not come back.
bool IsQueryIdName(const std::string& name);

}  // namespace cistern::data
