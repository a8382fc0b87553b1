// absl::Duration and google.protobuf.Duration. protobuf's TimeUtil counts nanoseconds in 64 bits,
// and overflows for durations that the contract allows.
#ifndef OPMILL_PROTO_DURATION_H_
#define OPMILL_PROTO_DURATION_H_

#include <cstdint>

#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"

namespace opmill {

inline void EncodeDuration(absl::Duration from, google::protobuf::Duration& to) {
  absl::Duration rest;
  to.set_seconds(absl::IDivDuration(from, absl::Seconds(1), &rest));
  to.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
}

inline absl::Duration DecodeDuration(const google::protobuf::Duration& from) {
  return absl::Seconds(from.seconds()) + absl::Nanoseconds(from.nanos());
}

}  // namespace opmill

#endif  // OPMILL_PROTO_DURATION_H_
