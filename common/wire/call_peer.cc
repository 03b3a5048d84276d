#include "common/wire/call_peer.h"

#include <utility>

namespace cistern {
namespace {

thread_local const CallPeer* current = nullptr;

}  // namespace

CallPeer::CallPeer(std::string peer)
    : peer_(std::move(peer)), outer_(std::exchange(current, this)) {}

CallPeer::~CallPeer() {
  current = outer_;
}

bool CallPeer::IsRemote() {
  return current != nullptr;
}

const std::string& CallPeer::Current() {
  static const std::string* const none = new std::string("this process");
  return current == nullptr ? *none : current->peer_;
}

}  // namespace cistern
