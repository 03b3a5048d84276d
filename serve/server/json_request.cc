#include "serve/server/json_request.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "serve/server/json_tensor.h"

namespace cistern::serve {
namespace {

using Json = nlohmann::json;

constexpr char kNull[] = "null";

// The parser's callbacks; each returns false to stop it, with the reason in `error_`.
class RequestReader : public nlohmann::json_sax<Json> {
 public:
  // text: what is parsed.
  explicit RequestReader(absl::string_view text) : text_(text) {}

  absl::Status error() const { return error_; }
  InferRequest TakeRequest() { return std::move(request_); }
  // Of each input; nullopt: its data is in the JSON.
  const std::vector<std::optional<uint64_t>>& binary_bytes() const { return binary_bytes_; }

  bool null() override { return Scalar(kNull, nullptr); }
  bool boolean(bool value) override {
    const bool is_number = at_timeout() || key_ == "binary_data_size";
    if (!in(Place::kParameters) || is_number) return Scalar("a boolean", nullptr);
    return Parameter(value ? 1 : 0, false);
  }
  bool number_integer(int64_t value) override {
    if (in(Place::kData)) return Is(data_.Add(value));
    return Number(static_cast<uint64_t>(value), value < 0);
  }
  bool number_unsigned(uint64_t value) override {
    if (in(Place::kData)) return Is(data_.Add(value));
    return Number(value, false);
  }
  bool number_float(double value, const std::string&) override {
    if (in(Place::kData)) return Is(data_.Add(value));
    if (in(Place::kShape)) return FailShape();  // a fraction, or a whole number from 2^64 on
    return Scalar("a number", nullptr);
  }
  bool string(std::string& value) override { return Scalar("a string", &value); }
  bool binary(binary_t&) override { return Fail("binary JSON is not accepted"); }

  bool start_object(size_t) override;
  bool key(std::string& value) override;
  bool end_object() override;
  bool start_array(size_t) override;
  bool end_array() override;

  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    const std::string where = absl::StrCat("the request is not JSON: error at byte ", position);
    return Fail(IsNotFinite(position)
                    ? absl::StrCat(where, ": JSON has no NaN or Infinity; send finite numbers")
                    : where);
  }

 private:
  // Where in the request the parser is.
  enum class Place {
    kRequest,
    kInputs,
    kInput,
    kShape,
    kData,
    kOutputs,
    kOutput,
    kParameters,
    kIgnored
  };

  bool in(Place place) const { return !places_.empty() && places_.back() == place; }
  bool Is(absl::Status status) {
    if (error_.ok()) error_ = std::move(status);
    return error_.ok();
  }
  bool Fail(const std::string& why) { return Is(absl::InvalidArgumentError(why)); }
  bool Unexpected(absl::string_view what) {
    return Fail(places_.empty() ? "the request is not a JSON object"
                                : absl::StrCat("unexpected value at field ", Quoted(key_),
                                               " of the request: ", what,
                                               "; see docs/serving.md for its form"));
  }
  bool FailShape() {
    return Fail(absl::StrCat("the shape of input ", Quoted(input_.name),
                             " has a size that is out of range or not a whole number, or too many "
                             "of them"));
  }
  // The parameter that is being read.
  bool CheckKey(bool has_no_effect) {
    const Place owner = places_[places_.size() - 2];
    return Is(CheckParameter(owner == Place::kInput    ? "an input"
                             : owner == Place::kOutput ? "an output"
                                                       : "the request",
                             key_, has_no_effect));
  }
  bool FailTimeout() {
    return Fail("the parameter 'timeout' is not a whole number below 2^64; send microseconds");
  }
  bool IsNotFinite(size_t position) const;
  // Whether the next value is the request's timeout.
  bool at_timeout() const {
    return in(Place::kParameters) && places_[places_.size() - 2] == Place::kRequest &&
           key_ == "timeout";
  }
  bool Enter(Place place) {
    places_.push_back(place);
    seen_.push_back(0);
    return true;
  }
  void Leave() {
    places_.pop_back();
    seen_.pop_back();
  }

  bool Number(uint64_t value, bool negative);
  bool Parameter(uint64_t value, bool negative);
  bool Scalar(absl::string_view what, std::string* text);
  bool EndInput();

  const absl::string_view text_;
  absl::Status error_;
  std::vector<Place> places_;
  std::vector<uint32_t> seen_;  // by place: bit i: the member kMembers[i] was there
  std::string key_;
  InferRequest request_;
  InferTensor input_;
  JsonTensorData data_;
  bool has_data_ = false, has_shape_ = false;
  std::optional<uint64_t> input_bytes_;
  InferRequest::Output output_;
  std::vector<std::optional<uint64_t>> binary_bytes_;
};

// Whether the parser stopped in a word such as NaN or -Infinity, after `position` bytes.
bool RequestReader::IsNotFinite(size_t position) const {
  const auto in_word = [this](size_t i) {
    return text_[i] == '-' || absl::ascii_isalpha(static_cast<unsigned char>(text_[i]));
  };
  if (position > text_.size()) return false;  // the text ended
  size_t begin = position, end = position;
  while (begin > 0 && in_word(begin - 1)) --begin;
  while (end < text_.size() && in_word(end)) ++end;
  absl::string_view word = text_.substr(begin, end - begin);
  absl::ConsumePrefix(&word, "-");
  return absl::EqualsIgnoreCase(word, "nan") || absl::EqualsIgnoreCase(word, "inf") ||
         absl::EqualsIgnoreCase(word, "infinity");
}

// Members that count once: readers disagree on which of two is meant.
constexpr absl::string_view kMembers[] = {
    "id",      "inputs",      "outputs",          "parameters",
    "name",    "shape",       "datatype",         "data",
    "timeout", "binary_data", "binary_data_size", "binary_data_output"};

bool RequestReader::key(std::string& value) {
  key_ = std::move(value);
  if (in(Place::kIgnored)) return true;
  const auto known = std::find(std::begin(kMembers), std::end(kMembers), key_);
  if (known == std::end(kMembers)) return true;
  const uint32_t bit = 1u << (known - std::begin(kMembers));
  if ((seen_.back() & bit) != 0) {
    return Fail(absl::StrCat("duplicate field ", Quoted(key_), "; send it once"));
  }
  seen_.back() |= bit;
  return true;
}

bool RequestReader::start_object(size_t) {
  if (places_.empty()) return Enter(Place::kRequest);
  if (in(Place::kInputs)) {
    if (request_.inputs.size() == kMaxTensors) {
      return Fail(absl::StrCat("the request has more than ", kMaxTensors, " inputs"));
    }
    input_ = {};
    data_ = {};
    has_data_ = has_shape_ = false;
    input_bytes_.reset();
    return Enter(Place::kInput);
  }
  if (in(Place::kOutputs)) {
    if (request_.outputs.size() == kMaxTensors) {
      return Fail(absl::StrCat("the request asks for more than ", kMaxTensors, " outputs"));
    }
    output_ = {};
    return Enter(Place::kOutput);
  }
  const bool parameters = in(Place::kRequest) || in(Place::kInput) || in(Place::kOutput);
  if (parameters && key_ == "parameters") return Enter(Place::kParameters);
  if (at_timeout()) return FailTimeout();
  // Parameters that this server does not know may have any form.
  if (in(Place::kParameters) && !CheckKey(false)) return false;
  if (in(Place::kParameters) || in(Place::kIgnored)) return Enter(Place::kIgnored);
  return Unexpected("an object");
}

bool RequestReader::end_object() {
  const Place place = places_.back();
  Leave();
  if (place == Place::kInput) return EndInput();
  if (place == Place::kOutput) request_.outputs.push_back(std::move(output_));
  return true;
}

bool RequestReader::EndInput() {
  if (input_.name.empty() || input_.datatype.empty() || !has_shape_) {
    return Fail(absl::StrCat("input ", Quoted(input_.name),
                             " lacks one of the fields name, shape and datatype"));
  }
  if (has_data_ == input_bytes_.has_value()) {
    return Fail(absl::StrCat("input ", Quoted(input_.name),
                             has_data_ ? " has both data and binary_data_size; send one of them"
                                       : " has neither data nor binary_data_size; send one"));
  }
  if (has_data_ && !Is(data_.Finish(&input_))) return false;
  binary_bytes_.push_back(input_bytes_);
  request_.inputs.push_back(std::move(input_));
  return true;
}

bool RequestReader::start_array(size_t) {
  if (in(Place::kData)) return Is(data_.StartArray());
  if (in(Place::kRequest) && key_ == "inputs") return Enter(Place::kInputs);
  if (in(Place::kRequest) && key_ == "outputs") return Enter(Place::kOutputs);
  if (in(Place::kInput) && key_ == "shape") {
    has_shape_ = true;
    input_.shape.clear();
    return Enter(Place::kShape);
  }
  if (in(Place::kInput) && key_ == "data") {
    if (has_data_) return Fail("an input has the field 'data' twice");
    has_data_ = true;
    return Enter(Place::kData) && Is(data_.StartArray());
  }
  if (at_timeout()) return FailTimeout();
  if (in(Place::kParameters) && !CheckKey(false)) return false;
  if (in(Place::kParameters) || in(Place::kIgnored)) return Enter(Place::kIgnored);
  return Unexpected("an array");
}

bool RequestReader::end_array() {
  if (in(Place::kData)) {
    if (!Is(data_.EndArray())) return false;
    if (!data_.done()) return true;
  }
  Leave();
  return true;
}

bool RequestReader::Number(uint64_t value, bool negative) {
  if (in(Place::kParameters)) return Parameter(value, negative);
  if (in(Place::kShape)) {
    constexpr size_t kMaxDimensions = 16;
    if (negative || value > uint64_t{1} << 62 || input_.shape.size() == kMaxDimensions) {
      return FailShape();
    }
    input_.shape.push_back(static_cast<int64_t>(value));
    return true;
  }
  return Scalar("a number", nullptr);
}

bool RequestReader::Parameter(uint64_t value, bool negative) {
  const Place owner = places_[places_.size() - 2];
  if (owner == Place::kRequest && key_ == "binary_data_output") {
    request_.binary_outputs = value != 0;
  } else if (owner == Place::kOutput && key_ == "binary_data") {
    output_.binary = value != 0;
  } else if (owner == Place::kRequest && key_ == "timeout") {
    if (negative) return Fail("the parameter 'timeout' is negative; send microseconds");
    request_.timeout_us = value;
  } else if (owner == Place::kInput && key_ == "binary_data_size") {
    if (negative) return Fail("a binary_data_size is negative");
    input_bytes_ = value;
  } else {
    return CheckKey(value == 0);
  }
  return true;
}

bool RequestReader::Scalar(absl::string_view what, std::string* text) {
  if (in(Place::kIgnored)) return true;
  if (at_timeout()) return FailTimeout();
  if (in(Place::kParameters)) {
    const bool is_size = key_ == "binary_data_size";
    if (is_size || key_ == "binary_data" || key_ == "binary_data_output") {
      return Fail(absl::StrCat("the parameter ", Quoted(key_), " is ", what,
                               ", which is not supported; send ",
                               is_size ? "a number of bytes" : "true or false"));
    }
    return CheckKey(text == nullptr ? what == kNull : text->empty());
  }
  if (text != nullptr) {
    if (in(Place::kRequest) && key_ == "id") {
      request_.id = std::move(*text);
      return true;
    }
    if (in(Place::kInput) && key_ == "name") {
      input_.name = std::move(*text);
      return true;
    }
    if (in(Place::kInput) && key_ == "datatype") {
      input_.datatype = std::move(*text);
      return true;
    }
    if (in(Place::kOutput) && key_ == "name") {
      output_.name = std::move(*text);
      return true;
    }
  }
  if (in(Place::kData) && text != nullptr) return Is(data_.Add(absl::string_view(*text)));
  if (in(Place::kData)) {
    return Fail(absl::StrCat("the data of input ", Quoted(input_.name), " has ", what,
                             input_.datatype == "BYTES"
                                 ? "; it must be strings, and \"\" for a missing value"
                                 : "; it must be numbers"));
  }
  return Unexpected(what);
}

// Gives each binary tensor its part of `rest`.
absl::Status AttachBinary(absl::Span<const std::optional<uint64_t>> sizes, absl::string_view rest,
                          InferRequest* request) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!sizes[i].has_value()) continue;
    if (*sizes[i] > rest.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", Quoted(request->inputs[i].name), " has binary_data_size ",
                       *sizes[i], ", but only ", rest.size(),
                       " bytes are left after the JSON; check Inference-Header-Content-Length"));
    }
    request->inputs[i].borrowed = rest.substr(0, static_cast<size_t>(*sizes[i]));
    rest.remove_prefix(static_cast<size_t>(*sizes[i]));
  }
  if (rest.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(rest.size(),
                   " bytes after the JSON belong to no input; give binary inputs "
                   "their binary_data_size"));
}

}  // namespace

absl::StatusOr<InferRequest> DecodeJsonRequest(absl::string_view body,
                                               std::optional<size_t> json_bytes) {
  const size_t text_bytes = json_bytes.value_or(body.size());
  if (text_bytes > body.size()) {
    return absl::InvalidArgumentError(absl::StrCat("Inference-Header-Content-Length is ",
                                                   text_bytes, ", but the body has ", body.size(),
                                                   " bytes"));
  }
  const absl::string_view text = body.substr(0, text_bytes);
  RequestReader reader(text);
  const bool parsed = Json::sax_parse(text.begin(), text.end(), &reader);
  CISTERN_RETURN_IF_ERROR(reader.error());
  if (!parsed) return absl::InvalidArgumentError("the request is not JSON");
  InferRequest request = reader.TakeRequest();
  CISTERN_RETURN_IF_ERROR(AttachBinary(reader.binary_bytes(), body.substr(text_bytes), &request));
  return request;
}

}  // namespace cistern::serve
