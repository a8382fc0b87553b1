#include "kernels/base/errors.h"

#include "gtest/gtest.h"

namespace opmill {
namespace {

TEST(Errors, CarryTheirField) {
  absl::Status status = InvalidField("axes[1]", "axes[1] (7) is out of range.");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(status), "axes[1]");
  EXPECT_EQ(FieldOf(UnsupportedAtLevel("input.data_type", "x")), "input.data_type");
}

TEST(Errors, HaveNoFieldUnlessGiven) {
  EXPECT_EQ(FieldOf(absl::InternalError("ours")), std::nullopt);
}

}  // namespace
}  // namespace opmill
