// All ways to falsify one field of a message.
#pragma once

#include <google/protobuf/message.h>

#include <functional>
#include <string>

namespace cistern {

// Calls `tell` with copies of `base` in which one field, at any depth, is changed: numbers at the
// bounds of their type, floats that are not numbers, texts that are paths or very long, unknown
// enums, lists of 10,000, missing messages. what: field and value in readable form.
void ForEachLie(
    const google::protobuf::Message& base,
    const std::function<void(const std::string& what, const google::protobuf::Message& lie)>& tell);

}  // namespace cistern
