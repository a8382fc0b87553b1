// Mutates protobuf messages of any type, so that a fuzzer's inputs remain messages.
#ifndef OPMILL_TESTS_FUZZ_PROTO_MUTATOR_H_
#define OPMILL_TESTS_FUZZ_PROTO_MUTATOR_H_

#include <cstddef>
#include <cstdint>

#include "google/protobuf/message.h"
#include "tests/conformance/random.h"

namespace opmill {

// Changes one field somewhere in the message.
void Mutate(google::protobuf::Message& message, Random& random);

// Replaces a part of the message by a part of `donor` of the same type.
void CrossOver(google::protobuf::Message& message, const google::protobuf::Message& donor,
               Random& random);

// Returns false if the text is not such a message.
bool ParseText(const uint8_t* data, size_t size, google::protobuf::Message& message);

// Mutates the text of a message in place, and returns its new size: at most `max_size`.
size_t MutateText(uint8_t* data, size_t size, size_t max_size, uint32_t seed,
                  google::protobuf::Message& message);
size_t CrossOverText(const uint8_t* first, size_t first_size, const uint8_t* second,
                     size_t second_size, uint8_t* out, size_t max_out_size, uint32_t seed,
                     google::protobuf::Message& message, google::protobuf::Message& donor);

}  // namespace opmill

// Defines a fuzz target whose inputs are messages as text.
#define OPMILL_FUZZ_MESSAGE(Type, Run)                                                          \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {                     \
    Type message;                                                                               \
    if (::opmill::ParseText(data, size, message)) Run(message);                                 \
    return 0;                                                                                   \
  }                                                                                             \
  extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,        \
                                            unsigned int seed) {                                \
    Type message;                                                                               \
    return ::opmill::MutateText(data, size, max_size, seed, message);                           \
  }                                                                                             \
  extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* first, size_t first_size,          \
                                              const uint8_t* second, size_t second_size,        \
                                              uint8_t* out, size_t max_size, unsigned seed) {   \
    Type message, donor;                                                                        \
    return ::opmill::CrossOverText(first, first_size, second, second_size, out, max_size, seed, \
                                   message, donor);                                             \
  }

#endif  // OPMILL_TESTS_FUZZ_PROTO_MUTATOR_H_
