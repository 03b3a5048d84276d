// Reads fields of a JSON object that a run folder holds. The files are for people and may be of
// another version: a field that is missing or of another type reads as absent.
//
// Included by .cc files only: the JSON library is slow to compile.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace cistern::report {

inline std::optional<double> NumberIn(const nlohmann::ordered_json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end() || !it->is_number()) return std::nullopt;
  const double number = it->get<double>();
  return std::isfinite(number) ? std::optional<double>(number) : std::nullopt;
}

inline std::optional<uint64_t> CountIn(const nlohmann::ordered_json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end() || !it->is_number_unsigned()) return std::nullopt;
  return it->get<uint64_t>();
}

inline std::string TextIn(const nlohmann::ordered_json& object, const char* name) {
  const auto it = object.find(name);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

// A list, or null if there is no list of this name.
inline const nlohmann::ordered_json* ListIn(const nlohmann::ordered_json& object,
                                            const char* name) {
  const auto it = object.find(name);
  return it != object.end() && it->is_array() ? &*it : nullptr;
}

// nullopt becomes null.
inline nlohmann::ordered_json JsonOf(const std::optional<double>& number) {
  return number ? nlohmann::ordered_json(*number) : nullptr;
}

// Text of an object; paths may hold bytes that are not UTF-8.
inline std::string DumpJson(const nlohmann::ordered_json& json) {
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace cistern::report
