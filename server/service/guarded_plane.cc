#include "server/service/guarded_plane.h"

#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include <exception>
#include <new>

#include "common/base/memory_exhausted.h"
#include "common/base/version.h"

namespace cistern::server {

absl::Status CheckFieldsAreKnown(const google::protobuf::Message& message) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  const google::protobuf::UnknownFieldSet& unknown = reflection.GetUnknownFields(message);
  if (!unknown.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the request has field ", unknown.field(0).number(), " of ",
                     message.GetDescriptor()->name(), ", which this server (version ", kVersion,
                     ") does not know: the caller is newer; upgrade the servers first"));
  }
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      CISTERN_RETURN_IF_ERROR(CheckFieldsAreKnown(reflection.GetMessage(message, field)));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      CISTERN_RETURN_IF_ERROR(
          CheckFieldsAreKnown(reflection.GetRepeatedMessage(message, field, i)));
    }
  }
  return absl::OkStatus();
}

absl::Status StatusOfException(const char* call) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat(
        call,
        ": this server is out of memory; give it more, use more servers, or make passes "
        "smaller"));
  } catch (const std::exception& thrown) {
    return absl::InternalError(absl::StrCat(call, ": ", thrown.what()));
  } catch (...) {
    return absl::InternalError(absl::StrCat(call, ": an unknown exception"));
  }
}

absl::Status GuardedPlane::WhatWasThrown(const char* name, CallEffect effect) {
  const absl::Status status = StatusOfException(name);
  if (effect == CallEffect::kKeepsTables) return status;
  if (state_->stage.durable() == nullptr) {
    EndWithMessage(
        absl::StrCat("tables were being changed, and these servers keep no commits to "
                     "restore: ",
                     status.message()));
  }
  state_->stage.durable()->DistrustMemory();
  return status;
}

}  // namespace cistern::server
