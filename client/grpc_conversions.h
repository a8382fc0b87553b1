// Conversions to gRPC's types: slices, durations, contexts.
#ifndef OPMILL_CLIENT_GRPC_CONVERSIONS_H_
#define OPMILL_CLIENT_GRPC_CONVERSIONS_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "client/execution.h"
#include "grpcpp/grpcpp.h"

namespace opmill {

// A slice of a part of `input`. It holds a reference to the owner for as long as gRPC keeps the
// slice.
inline grpc::Slice SliceOf(const InputBytes& input, size_t offset, size_t size) {
  using Owner = std::shared_ptr<const void>;
  // gRPC does not modify slices that it sends.
  auto* bytes = const_cast<std::byte*>(input.data + offset);
  return grpc::Slice(
      bytes, size, [](void* owner) { delete static_cast<Owner*>(owner); }, new Owner(input.owner));
}

// gRPC reads this clock as well. absl::Now() takes seconds to follow when the time of day is set.
inline std::chrono::system_clock::time_point GrpcDeadline(absl::Duration timeout) {
  constexpr absl::Duration kLongest = absl::Hours(24 * 365);
  return std::chrono::system_clock::now() + absl::ToChronoMicroseconds(std::min(timeout, kLongest));
}

inline void Prepare(grpc::ClientContext& context, absl::Duration timeout, const std::string& token,
                    const std::string& traceparent = "") {
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
  if (!traceparent.empty()) context.AddMetadata("traceparent", traceparent);
  if (timeout == absl::InfiniteDuration()) return;
  context.set_deadline(GrpcDeadline(timeout));
}

}  // namespace opmill

#endif  // OPMILL_CLIENT_GRPC_CONVERSIONS_H_
