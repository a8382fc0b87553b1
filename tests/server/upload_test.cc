#include "server/execution/upload.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/base/errors.h"
#include "kernels/operators/reduction/reduction_desc.h"

namespace opmill {
namespace {

// Two inputs of 6 and 4 bytes, in buffers of 8 and 4.
OperatorDesc TwoInputs() {
  OperatorDesc desc = ReduceDesc{.input = {DataType::kInt16, {3}, {}}, .axes = {0}};
  desc.inputs.push_back({DataType::kInt32, {1}, {}});
  desc.outputs[0] = desc.inputs[1];
  return desc;
}

class UploadTest : public testing::Test {
 protected:
  absl::Status Send(uint32_t tensor_index, uint64_t offset, size_t size) {
    IncomingChunk chunk;
    chunk.tensor_index = tensor_index;
    chunk.offset = offset;
    chunk.data = Payload(nullptr, 0, 0, size);  // the bytes are not read
    absl::Status status = upload_.Check(chunk, "chunks[0]");
    if (status.ok()) upload_.Add(chunk);
    return status;
  }

  Upload upload_{ProgramOf(TwoInputs())};
};

TEST_F(UploadTest, AcceptsInterleavedInputs) {
  EXPECT_EQ(upload_.bytes(), 10u);
  EXPECT_EQ(Send(1, 0, 1), absl::OkStatus());
  EXPECT_EQ(Send(0, 0, 2), absl::OkStatus());
  EXPECT_EQ(Send(1, 1, 3), absl::OkStatus());
  EXPECT_EQ(upload_.received(), 6u);
  EXPECT_FALSE(upload_.complete());
  EXPECT_EQ(Send(0, 2, 6), absl::OkStatus());  // including its padding
  EXPECT_EQ(upload_.received(), 10u);
  EXPECT_TRUE(upload_.complete());
}

TEST_F(UploadTest, AwaitsChunksOfInputsThatAreNotRead) {
  const auto read = [](uint64_t, absl::Span<std::byte>) { return absl::OkStatus(); };
  upload_ = Upload(ProgramOf(TwoInputs()), std::vector<InputSource>{{.read = read}});
  EXPECT_TRUE(upload_.awaits_chunks());
  EXPECT_EQ(std::string(upload_.Missing("It ended").message()),
            "It ended with 0 of the 4 bytes of input 1; 4 are missing.");
  EXPECT_EQ(Send(1, 0, 4), absl::OkStatus());
  EXPECT_FALSE(upload_.awaits_chunks());
  EXPECT_FALSE(upload_.complete());
  EXPECT_EQ(Send(0, 0, 6), absl::OkStatus());
  EXPECT_TRUE(upload_.complete());
}

TEST_F(UploadTest, RefusesAChunkThatIsNotTheNext) {
  ASSERT_EQ(Send(0, 0, 2), absl::OkStatus());
  ASSERT_EQ(Send(1, 0, 4), absl::OkStatus());
  const struct {
    uint32_t tensor_index;
    uint64_t offset;
    size_t size;
    std::string field;
    std::string sentence;
  } kCases[] = {
      {2, 0, 1, "chunks[0].tensor_index",
       "chunks[0].tensor_index (2) is not below the number of inputs (2) of reduce."},
      {1, 4, 1, "chunks[0]",
       "chunks[0] comes after the end of input 1: all of its 4 bytes have arrived."},
      {0, 3, 1, "chunks[0].offset",
       "chunks[0].offset (3) leaves out bytes 2 to 2 of input 0; chunks of a tensor come in "
       "order."},
      {0, 0, 1, "chunks[0].offset",
       "chunks[0].offset (0) overlaps bytes that have arrived: the next chunk of input 0 starts at "
       "byte 2."},
      {0, 2, 7, "chunks[0].data",
       "chunks[0] ends at byte 9, past the end of input 0, which has 6 bytes."},
  };
  for (const auto& c : kCases) {
    const absl::Status status = Send(c.tensor_index, c.offset, c.size);
    EXPECT_EQ(status.message(), c.sentence);
    EXPECT_EQ(FieldOf(status), c.field);
  }
  EXPECT_EQ(upload_.received(), 6u);
}

TEST_F(UploadTest, NamesTheFirstInputThatIsMissing) {
  ASSERT_EQ(Send(0, 0, 6), absl::OkStatus());
  ASSERT_EQ(Send(1, 0, 3), absl::OkStatus());
  EXPECT_EQ(upload_.Missing("end_of_inputs came").message(),
            "end_of_inputs came with 3 of the 4 bytes of input 1; 1 are missing.");
}

}  // namespace
}  // namespace opmill
