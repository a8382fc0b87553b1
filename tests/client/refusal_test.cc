#include "client/cli/refusal.h"

#include <string>

#include "absl/strings/cord.h"
#include "client/error.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"

namespace opmill {
namespace {

absl::Status RefusalAt(const std::string& field, const std::string& sentence) {
  google::rpc::BadRequest detail;
  auto& violation = *detail.add_field_violations();
  violation.set_field(field);
  violation.set_description(sentence);
  absl::Status status = absl::InvalidArgumentError(sentence);
  status.SetPayload("type.googleapis.com/google.rpc.BadRequest",
                    absl::Cord(detail.SerializeAsString()));
  return status;
}

TEST(InFlags, NamesTheFlagsForTheFields) {
  struct Case {
    const char* field;
    const char* sentence;
    const char* explained;
  };
  const Case cases[] = {
      {"operator.top_k.k", "k (9) is larger than the size (3) of axis (1).",
       "--k: k (9) is larger than the size (3) of axis (1)."},
      {"begin.operator.top_k.axis", "axis (2) is not below the dimension count (2) of input.",
       "--axes: axis (2) is not below the dimension count (2) of input."},
      {"operator.hardmax.axes", "hardmax takes the last axis (1) alone, but axes is [0].",
       "--axes: hardmax takes the last axis (1) alone, but axes is [0]."},
      {"operator.top_k.output_indices.data_type",
       "At feature level 2.0 top_k writes indices as UINT32, but output_indices.data_type is "
       "INT64; feature level 4.1 allows this request.",
       "--index_type: At feature level 2.0 top_k writes indices as UINT32, but --index_type is "
       "INT64; feature level 4.1 allows this request."},
      {"operator.arg_min.axis_direction",
       "At feature level 2.0 arg_min takes axis_direction DECREASING, but axis_direction is "
       "INCREASING.",
       "--direction: At feature level 2.0 argmin takes --direction DECREASING, but --direction is "
       "INCREASING."},
      {"operator.reduce.input.data_type", "reduce L1 takes FLOAT32, but input.data_type is INT8.",
       "x.npy: reduce L1 takes FLOAT32, but the input's type is INT8."},
      {"operator.reduce.input.sizes[0]", "input.sizes[0] (0) is below 1.",
       "x.npy: the input's shape[0] (0) is below 1."},
      {"operator.named.attributes[min]", "min is not given.", "--min: min is not given."},
      {"operator.named.inputs[0].sizes[1]", "input.sizes[1] (0) is below 1.",
       "x.npy: the input's shape[1] (0) is below 1."},
      {"begin.operator.named.outputs[0].data_type",
       "is_nan writes UINT8, but output.data_type is INT8.",
       "--output_type: is_nan writes UINT8, but --output_type is INT8."},
      {"begin.timeout", "begin.timeout (0) is not positive.", "--deadline (0) is not positive."},
      {"inputs[0]", "inputs[0] has 5 bytes; 6 are needed.",
       "x.npy: the input has 5 bytes; 6 are needed."},
  };
  for (const Case& expected : cases) {
    const absl::Status once = InFlags(RefusalAt(expected.field, expected.sentence), {"x.npy"});
    EXPECT_EQ(Describe(once), expected.explained);
    EXPECT_EQ(Describe(InFlags(once)), expected.explained);
    EXPECT_TRUE(absl::IsInvalidArgument(once));
  }
}

TEST(InFlags, KeepsTheRestOfTheError) {
  absl::Status status = RefusalAt("inputs", "inputs has 2 tensors.");
  status.SetPayload("type.googleapis.com/google.rpc.RetryInfo", absl::Cord());
  EXPECT_TRUE(RetryDelayOf(InFlags(status, {"x.npy"})).has_value());
  EXPECT_EQ(FieldViolationsOf(InFlags(status, {"x.npy"}))[0].field, "x.npy");
}

TEST(InFlags, NamesTheInputOfSeveral) {
  const absl::Status status =
      InFlags(RefusalAt("inputs[1]", "inputs[1] has 5 bytes; 6 are needed."), {"a.npy", "b.npy"});
  EXPECT_EQ(Describe(status), "b.npy: the input has 5 bytes; 6 are needed.");
  const absl::Status shape = RefusalAt("begin.operator.element_wise_add.b.sizes[1]",
                                       "b.sizes[1] is 3, but a.sizes[1] is 4.");
  EXPECT_EQ(Describe(InFlags(shape, {"x.npy", "y.npy"})),
            "y.npy: input b's shape[1] is 3, but input a's shape[1] is 4.");
  EXPECT_EQ(Describe(InFlags(InFlags(shape))),
            "input b's shape[1] is 3, but input a's shape[1] is 4.");
}

TEST(InFlags, NeedsNoInputOrField) {
  EXPECT_EQ(Describe(InFlags(RefusalAt("operator.reduce.input.sizes", "input.sizes has 9 dims."))),
            "the input's shape has 9 dims.");
  EXPECT_EQ(Describe(InFlags(absl::UnavailableError("The server is draining."), {"x.npy"})),
            "The server is draining.");
}

}  // namespace
}  // namespace opmill
