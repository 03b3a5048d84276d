// Every way to lie in one field of a message.
#pragma once

#include <google/protobuf/message.h>

#include <functional>
#include <string>

namespace cistern {

// Calls `tell` with copies of `base` in which one field, at any depth, is another: numbers at the
// bounds of their type, floats that are none, texts that are paths or very long, enums that do not
// exist, lists of 10,000, messages that are missing. what: field and value, for people.
void ForEachLie(
    const google::protobuf::Message& base,
    const std::function<void(const std::string& what, const google::protobuf::Message& lie)>& tell);

}  // namespace cistern
