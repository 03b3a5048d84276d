#include "worker/data/prepare/column_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace cistern::data {
namespace {

// Whether the words of a name, without what is between them, are one of `names`.
bool IsOneOf(const std::string& name, std::initializer_list<absl::string_view> names) {
  const std::string joined = absl::StrJoin(WordsOf(name), "");
  return std::count(names.begin(), names.end(), joined) > 0;
}

bool MeasuresThings(const std::string& name) {
  return HasWord(
      name,
      {"age",      "price",     "prices", "cost",     "amount",  "amt",      "count",   "counts",
       "cnt",      "num",       "number", "total",    "sum",     "avg",      "mean",    "median",
       "min",      "max",       "std",    "rate",     "ratio",   "score",    "rating",  "rank",
       "size",     "length",    "len",    "views",    "clicks",  "imps",     "sales",   "followers",
       "balance",  "income",    "spend",  "budget",   "bid",     "weight",   "height",  "width",
       "days",     "hours",     "mins",   "minutes",  "seconds", "duration", "tenure",  "visits",
       "sessions", "orders",    "qty",    "quantity", "volume",  "distance", "lat",     "lon",
       "freq",     "freshness", "pct",    "percent",  "ctr",     "cvr",      "revenue", "profit"});
}

}  // namespace

std::vector<std::string> WordsOf(const std::string& name) {
  std::string spaced;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool starts = i > 0 && absl::ascii_isupper(name[i]) && absl::ascii_islower(name[i - 1]);
    if (starts) spaced.push_back(' ');
    spaced.push_back(absl::ascii_isalnum(name[i]) ? absl::ascii_tolower(name[i]) : ' ');
  }
  std::vector<std::string> words = absl::StrSplit(spaced, ' ', absl::SkipEmpty());
  for (std::string& word : words) {  // category1, category2
    const size_t end = word.find_last_not_of("0123456789");
    if (end != std::string::npos && end >= 2) word.resize(end + 1);
  }
  return words;
}

bool HasWord(const std::string& name, std::initializer_list<absl::string_view> words) {
  for (const std::string& word : WordsOf(name)) {
    if (std::count(words.begin(), words.end(), word) > 0) return true;
  }
  return false;
}

bool IsAmountName(const std::string& name) {
  return MeasuresThings(name) && !HasWord(name, {"id", "ids", "code", "num", "number"});
}

bool NumbersThings(const std::string& name) {
  // user_age, item_price, store_sales_30d: measures of things.
  const bool measures = MeasuresThings(name);
  if (measures && !HasWord(name, {"id", "ids", "code"})) return false;
  return HasWord(name,
                 {"id",      "ids",   "uid",      "userid",   "itemid",     "user",      "item",
                  "product", "goods", "shop",     "store",    "brand",      "category",  "cate",
                  "cat",     "class", "type",     "code",     "zip",        "zipcode",   "postcode",
                  "city",    "state", "country",  "region",   "site",       "app",       "device",
                  "ad",      "adid",  "campaign", "creative", "advertiser", "publisher", "channel",
                  "page",    "sku",   "article",  "movie",    "song",       "customer"});
}

bool IsVersionName(const std::string& name) {
  return HasWord(name, {"version", "ver", "release", "firmware", "osv", "appver"});
}

bool IsFeedbackName(const std::string& name) {
  return HasWord(
      name,
      {"dwell",     "dwelltime",  "watch",     "watchtime", "watched",   "playtime", "stay",
       "staytime",  "conversion", "converted", "purchase",  "purchased", "bought",   "buy",
       "ordered",   "revenue",    "gmv",       "payment",   "paid",      "like",     "liked",
       "share",     "shared",     "follow",    "followed",  "finish",    "finished", "favorite",
       "cart",      "comment",    "commented", "play",      "view",      "refund",   "sale",
       "installed", "install"});
}

bool IsSampleWeightName(const std::string& name) {
  if (IsOneOf(name, {"sampleweight", "sampleweights", "instanceweight", "rowweight", "caseweight",
                     "sampwt", "samplewt"})) {
    return true;
  }
  return HasWord(name, {"weight", "weights", "wt"}) &&
         HasWord(name, {"sample", "samples", "instance", "example", "row", "case", "importance",
                        "class", "training", "loss", "observation"});
}

bool IsQueryIdName(const std::string& name) {
  return IsOneOf(name, {"qid", "queryid", "srchid", "searchid", "sessionid", "requestid", "reqid",
                        "impressionid", "auctionid", "traceid"});
}

}  // namespace cistern::data
