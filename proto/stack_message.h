// Protobuf messages without allocations, on the stack or inside another object.
#ifndef OPMILL_PROTO_STACK_MESSAGE_H_
#define OPMILL_PROTO_STACK_MESSAGE_H_

#include "google/protobuf/arena.h"

namespace opmill {

// A message whose parts are allocated next to it, as far as they fit. On the heap each part would
// be an allocation of its own, about a dozen per response.
template <typename Message>
class StackMessage {
 public:
  StackMessage() = default;
  StackMessage(const StackMessage&) = delete;
  StackMessage& operator=(const StackMessage&) = delete;

  Message& operator*() { return *message_; }
  const Message& operator*() const { return *message_; }
  Message* operator->() { return message_; }
  const Message* operator->() const { return message_; }

 private:
  alignas(8) char space_[1024];
  google::protobuf::Arena arena_{space_, sizeof(space_)};
  Message* const message_ = google::protobuf::Arena::CreateMessage<Message>(&arena_);
};

}  // namespace opmill

#endif  // OPMILL_PROTO_STACK_MESSAGE_H_
