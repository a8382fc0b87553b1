#include "server/tensors/tensor_store.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/steady_time.h"
#include "tests/server/gated_device.h"

namespace opmill {
namespace {

using Kind = ResidentWrite::Kind;

TensorDesc Rows(uint32_t rows) { return {.data_type = DataType::kUint8, .sizes = {rows, 4}}; }

std::vector<std::byte> RowBytes(uint32_t rows, int value) {
  return std::vector<std::byte>(rows * size_t{4}, std::byte(value));
}

class TensorStoreTest : public testing::Test {
 protected:
  explicit TensorStoreTest(bool keeps_copies = false)
      : store_(device_, {.bytes = 100, .bytes_per_owner = 60}, keeps_copies) {}

  absl::StatusOr<uint64_t> Write(ResidentWrite write, uint32_t rows, int value) {
    absl::StatusOr<std::shared_ptr<TensorStore::Writing>> writing =
        store_.Begin(std::move(write), Rows(rows));
    if (!writing.ok()) return writing.status();
    const std::vector<std::byte> bytes = RowBytes(rows, value);
    if (const auto buffer = (*writing)->buffer(); buffer != nullptr) {
      std::copy(bytes.begin(), bytes.end(), buffer->bytes().begin());
    }
    if (const absl::Status finished = (*writing)->Finish(bytes); !finished.ok()) return finished;
    return (*writing)->generation();
  }
  absl::StatusOr<uint64_t> Put(const std::string& name, uint32_t rows, int value,
                               uint64_t capacity = 0) {
    return Write({.owner = "a", .name = name, .capacity_rows = capacity}, rows, value);
  }
  std::shared_ptr<const ResidentTensor> Find(const std::string& name) {
    const auto found = store_.Find("a", name);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? *found : nullptr;
  }
  static std::vector<int> FirstOfRows(const ResidentTensor& tensor) {
    std::vector<int> values;
    const std::shared_ptr<Buffer> buffer = tensor.buffer();
    for (size_t row = 0; row < tensor.tensor.sizes[0]; ++row) {
      values.push_back(static_cast<int>(buffer->bytes()[row * 4]));
    }
    return values;
  }

  GatedDevice device_;
  TensorStore store_;
};

TEST_F(TensorStoreTest, KeepsWhatIsReadWhileItIsWritten) {
  ASSERT_TRUE(Put("x", 2, 1, /*capacity=*/4).ok());
  const auto before = Find("x");
  ASSERT_TRUE(Write({.kind = Kind::kAppend, .owner = "a", .name = "x"}, 1, 2).ok());
  const auto appended = Find("x");
  ASSERT_TRUE(Write({.kind = Kind::kWrite, .owner = "a", .name = "x", .first_row = 1}, 1, 3).ok());
  ASSERT_TRUE(Write({.kind = Kind::kAppend, .owner = "a", .name = "x"}, 1, 4).ok());
  EXPECT_EQ(FirstOfRows(*Find("x")), (std::vector<int>{1, 3, 2, 4}));
  EXPECT_EQ(FirstOfRows(*appended), (std::vector<int>{1, 1, 2}));
  EXPECT_EQ(FirstOfRows(*before), (std::vector<int>{1, 1}));
  EXPECT_LT(before->generation, appended->generation);
}

TEST_F(TensorStoreTest, WritesInPlaceWhatNobodyReads) {
  ASSERT_TRUE(Put("x", 4, 1).ok());
  const Buffer* const buffer = Find("x")->buffer().get();
  ASSERT_TRUE(Write({.kind = Kind::kWrite, .owner = "a", .name = "x", .first_row = 2}, 1, 3).ok());
  EXPECT_EQ(Find("x")->buffer().get(), buffer);
  EXPECT_EQ(FirstOfRows(*Find("x")), (std::vector<int>{1, 1, 3, 1}));
}

TEST_F(TensorStoreTest, CountsMemoryAsLongAsItIsRead) {
  ASSERT_TRUE(Put("x", 10, 1).ok());
  auto read = Find("x");
  ASSERT_TRUE(store_.Delete("a", "x", std::nullopt).ok());
  EXPECT_EQ(store_.totals().tensors, 0u);
  EXPECT_EQ(store_.totals().bytes, 40u);
  EXPECT_EQ(
      Put("y", 10, 1).status(),
      absl::ResourceExhaustedError(
          "There is no room for the tensor \"y\", which takes 40 bytes: 40 of the 60 bytes of "
          "each owner (max_resident_tensor_bytes_per_owner) are in use."));
  ASSERT_TRUE(Write({.owner = "b", .name = "y"}, 10, 1).ok());
  EXPECT_EQ(Write({.owner = "c", .name = "y"}, 10, 1).status(),
            absl::ResourceExhaustedError(
                "There is no room for the tensor \"y\", which takes 40 bytes: 80 of 100 bytes "
                "(max_resident_tensor_bytes) are in use."));
  read = nullptr;
  EXPECT_EQ(store_.totals().bytes, 40u);
  EXPECT_TRUE(Put("y", 10, 1).ok());
}

TEST_F(TensorStoreTest, AWriteThatIsDroppedChangesNothing) {
  ASSERT_TRUE(Put("x", 5, 1).ok());
  ASSERT_TRUE(store_.Begin({.owner = "a", .name = "x"}, Rows(5)).ok());
  EXPECT_EQ(FirstOfRows(*Find("x"))[0], 1);
  EXPECT_EQ(store_.totals().bytes, 20u);
}

TEST_F(TensorStoreTest, ChecksAWriteAgainWhenItTakesPlace) {
  ASSERT_TRUE(Put("x", 1, 1, /*capacity=*/2).ok());
  const ResidentWrite append = {.kind = Kind::kAppend, .owner = "a", .name = "x"};
  const auto writing = store_.Begin(append, Rows(1));
  ASSERT_TRUE(writing.ok());
  ASSERT_TRUE(Write(append, 1, 2).ok());
  EXPECT_EQ((*writing)->Finish(RowBytes(1, 3)),
            absl::ResourceExhaustedError(
                "The tensor \"x\" has 2 of 2 rows (capacity_rows); 1 more do not fit."));
  const auto put = store_.Begin({.owner = "a", .name = "y", .if_generation = 0}, Rows(1));
  ASSERT_TRUE(put.ok());
  ASSERT_TRUE(Put("y", 1, 5).ok());
  EXPECT_EQ((*put)->Finish({}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ((*put)->generation(), 0u);
}

TEST_F(TensorStoreTest, OwnersDoNotSeeEachOther) {
  ASSERT_TRUE(Put("x", 1, 1).ok());
  EXPECT_EQ(store_.Find("b", "x").status().message(), "There is no tensor \"x\" here.");
  EXPECT_FALSE(store_.Delete("b", "x", std::nullopt).ok());
  EXPECT_TRUE(store_.List("b").empty());
  EXPECT_TRUE(store_.List("").empty());
  EXPECT_EQ(store_.List("a").size(), 1u);
}

TEST_F(TensorStoreTest, LeasesEndIfTheyAreNotRenewed) {
  const absl::Duration lease = absl::Hours(1);
  ASSERT_TRUE(Write({.owner = "a", .name = "x", .lease = lease}, 1, 1).ok());
  ASSERT_TRUE(Put("y", 1, 1).ok());
  store_.DropExpired(SteadyNow() + lease / 2);
  EXPECT_EQ(store_.List("a").size(), 2u);
  store_.DropExpired(SteadyNow() + lease * 2);
  ASSERT_EQ(store_.List("a").size(), 1u);
  EXPECT_EQ(store_.List("a")[0].state->name, "y");
  EXPECT_EQ(store_.totals().expired, 1u);
}

TEST_F(TensorStoreTest, WhatIsLostWithTheDeviceIsNamedUntilItIsPutAgain) {
  ASSERT_TRUE(Put("x", 5, 1).ok());
  const auto late = store_.Begin({.owner = "a", .name = "z"}, Rows(1));
  ASSERT_TRUE(late.ok());
  store_.DeviceLost();
  const std::string sentence = "The tensor \"x\" was lost with the device; put it again.";
  EXPECT_EQ(store_.Find("a", "x").status().message(), sentence);
  EXPECT_EQ(store_.Find("a", "x").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Write({.kind = Kind::kAppend, .owner = "a", .name = "x"}, 1, 1).status().message(),
            sentence);
  EXPECT_EQ((*late)->Finish({}).code(), absl::StatusCode::kUnavailable);
  ASSERT_EQ(store_.List("a").size(), 1u);
  EXPECT_TRUE(store_.List("a")[0].is_lost);
  EXPECT_EQ(store_.totals().lost, 1u);
  ASSERT_TRUE(Put("x", 5, 2).ok());
  EXPECT_EQ(FirstOfRows(*Find("x"))[0], 2);
}

// With copies of callers' tensors.
class TensorCopiesTest : public TensorStoreTest {
 protected:
  TensorCopiesTest() : TensorStoreTest(/*keeps_copies=*/true) {}
};

TEST_F(TensorCopiesTest, PutsBackWhatWasAppendedAndReplaced) {
  ASSERT_TRUE(Put("x", 2, 1, /*capacity=*/3).ok());
  ASSERT_TRUE(Write({.kind = Kind::kAppend, .owner = "a", .name = "x"}, 1, 2).ok());
  const auto read = Find("x");  // so that the next rows are written to new memory
  const auto generation =
      Write({.kind = Kind::kWrite, .owner = "a", .name = "x", .first_row = 0}, 1, 3);
  ASSERT_TRUE(generation.ok()) << generation.status();
  store_.DeviceLost();
  const absl::Status found = store_.Find("a", "x").status();
  EXPECT_EQ(found.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(found.message(), "The tensor \"x\" was lost with the device, and is being put back.");
  EXPECT_EQ(store_.totals().lost, 0u);
  const TensorStore::PutBackReport report = store_.PutBack();
  EXPECT_EQ(report.tensors, 1u);
  EXPECT_EQ(report.bytes, 12u);
  EXPECT_EQ(FirstOfRows(*Find("x")), (std::vector<int>{3, 1, 2}));
  EXPECT_EQ(Find("x")->generation, *generation);
  EXPECT_EQ(Find("x")->capacity_rows, 3u);
}

TEST_F(TensorCopiesTest, CountsTheCopyAndWhatIsPutAgainMeanwhile) {
  ASSERT_TRUE(Put("x", 5, 1).ok());
  EXPECT_EQ(store_.totals().bytes, 40u);
  store_.DeviceLost();
  EXPECT_EQ(store_.totals().bytes, 20u);
  ASSERT_TRUE(Put("x", 2, 4).ok());
  store_.PutBack();
  EXPECT_EQ(FirstOfRows(*Find("x")), (std::vector<int>{4, 4}));
  EXPECT_EQ(store_.totals().bytes, 16u);
  EXPECT_EQ(
      Put("y", 6, 1).status(),
      absl::ResourceExhaustedError(
          "There is no room for the copy of the tensor \"y\", which takes 24 bytes: 40 of the "
          "60 bytes of each owner (max_resident_tensor_bytes_per_owner) are in use."));
  EXPECT_EQ(store_.totals().bytes, 16u);
}

TEST_F(TensorStoreTest, OfTheServerOnlyWhatCannotBeReadAgainIsLost) {
  bool is_there = true;
  const auto contents = [&](uint64_t, absl::Span<std::byte> to) -> absl::Status {
    std::fill(to.begin(), to.end(), std::byte{7});
    return is_there ? absl::OkStatus() : absl::FailedPreconditionError("It is gone.");
  };
  ASSERT_TRUE(store_.Serve("w", Rows(20), contents).ok());
  EXPECT_EQ(FirstOfRows(*Find("w"))[19], 7);
  ASSERT_TRUE(Put("x", 5, 1).ok());
  ASSERT_EQ(store_.List("a").size(), 2u);
  EXPECT_TRUE(store_.List("a")[0].is_read_only);
  EXPECT_EQ(Put("w", 1, 1).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(store_.Delete("a", "w", std::nullopt).code(), absl::StatusCode::kFailedPrecondition);
  store_.DeviceLost();
  EXPECT_EQ(store_.PutBack().tensors, 1u);
  EXPECT_EQ(FirstOfRows(*Find("w"))[0], 7);
  is_there = false;
  store_.DeviceLost();
  const TensorStore::PutBackReport report = store_.PutBack();
  ASSERT_EQ(report.failures.size(), 1u);
  EXPECT_EQ(report.failures[0].message(), "The tensor \"w\" is not put back: It is gone.");
  EXPECT_EQ(store_.Find("b", "w").status().message(),
            "The tensor \"w\" was lost with the device, and could not be put back from its file.");
  EXPECT_EQ(store_.totals().lost, 2u);
}

}  // namespace
}  // namespace opmill
