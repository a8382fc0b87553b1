#include "server/tensors/resident_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/tensors/tensor_store.h"
#include "tests/support/test_devices.h"

namespace opmill {
namespace {

std::vector<std::string> Devices() {
  std::vector<std::string> devices = TestDevices();
  devices.emplace_back("SoftwareCopies");
  return devices;
}

std::byte ByteAt(uint64_t place) { return std::byte(place % 251); }

using ResidentMemoryTest = DeviceTest;

// Up to two pieces; the last one ends within a word.
TEST_P(ResidentMemoryTest, ComesBackAsItWasWritten) {
  constexpr uint64_t kPiece = uint64_t{64} << 20;
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{4098}, kPiece + 6}) {
    const auto buffer = device().Allocate((bytes + 3) / 4 * 4, Residency::kDevice);
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    uint64_t asked = 0;
    const auto fill = [&](uint64_t offset, absl::Span<std::byte> to) {
      EXPECT_EQ(offset, asked);
      asked += to.size();
      for (size_t i = 0; i < to.size(); ++i) to[i] = ByteAt(offset + i);
      return absl::OkStatus();
    };
    const absl::Status written = WriteBuffer(device(), *buffer, bytes, fill);
    ASSERT_TRUE(written.ok()) << written;
    EXPECT_EQ(asked, bytes);
    std::vector<std::byte> read(static_cast<size_t>(bytes));
    const absl::Status is_read = ReadBuffer(device(), *buffer, 0, absl::MakeSpan(read));
    ASSERT_TRUE(is_read.ok()) << is_read;
    size_t place = 0;
    EXPECT_TRUE(std::all_of(read.begin(), read.end(),
                            [&](std::byte byte) { return byte == ByteAt(place++); }))
        << "byte " << place - 1 << " of " << bytes;
  }
}

TEST_P(ResidentMemoryTest, AnErrorOfTheContentsIsTheError) {
  const auto buffer = device().Allocate(64, Residency::kDevice);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  const auto fail = [](uint64_t, absl::Span<std::byte>) { return absl::DataLossError("gone"); };
  EXPECT_EQ(WriteBuffer(device(), *buffer, 64, fail), absl::DataLossError("gone"));
}

// Within one block, over several, and over the border of two pieces.
TEST_P(ResidentMemoryTest, AWriteKeepsTheBytesAroundIt) {
  constexpr uint64_t kPiece = uint64_t{64} << 20;
  constexpr uint64_t kBytes = kPiece + 4096;
  ResidentMemory memory;
  ResidentMemory copied;
  for (ResidentMemory* each : {&memory, &copied}) {
    auto buffer = device().Allocate(kBytes, Residency::kDevice);
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    each->buffer = *std::move(buffer);
  }
  std::vector<std::byte> expected(static_cast<size_t>(kBytes));
  const auto zeros = [](uint64_t, absl::Span<std::byte> to) {
    std::fill(to.begin(), to.end(), std::byte{0});
    return absl::OkStatus();
  };
  ASSERT_TRUE(WriteBuffer(device(), memory.buffer, kBytes, zeros).ok());
  const std::vector<std::pair<uint64_t, uint64_t>> writes = {
      {3, 5},        {250, 9},       {511, 1}, {512, 256}, {1000, 1001}, {kPiece - 300, 700},
      {700, kPiece}, {kBytes - 1, 1}};
  for (const auto& [offset, size] : writes) {
    std::vector<std::byte> rows(static_cast<size_t>(size));
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = ByteAt(offset * 7 + i + 1);
    const absl::Status written = memory.Write(device(), static_cast<size_t>(offset), rows);
    ASSERT_TRUE(written.ok()) << written;
    std::copy(rows.begin(), rows.end(), expected.begin() + static_cast<ptrdiff_t>(offset));
  }
  ASSERT_TRUE(copied.CopyFrom(device(), memory, kBytes).ok());
  for (const ResidentMemory* each : {&memory, &copied}) {
    std::vector<std::byte> read(static_cast<size_t>(kBytes));
    ASSERT_TRUE(ReadBuffer(device(), each->buffer, 0, absl::MakeSpan(read)).ok());
    const auto differs = std::mismatch(read.begin(), read.end(), expected.begin()).first;
    EXPECT_EQ(differs, read.end()) << "byte " << differs - read.begin();
  }
}

TEST_P(ResidentMemoryTest, RowsAreAppendedAndWritten) {
  TensorStore store(device(), {.bytes = 100'000});
  const auto rows_of = [](uint32_t rows) {
    return TensorDesc{.data_type = DataType::kUint8, .sizes = {rows, 3}};
  };
  const auto bytes_of = [](uint32_t rows, int value) {
    return std::vector<std::byte>(rows * size_t{3}, std::byte(value));
  };
  std::vector<std::byte> expected = bytes_of(100, 1);
  const auto put = store.Begin({.owner = "a", .name = "x", .capacity_rows = 300}, rows_of(100));
  ASSERT_TRUE(put.ok()) << put.status();
  ASSERT_TRUE(WriteBuffer(device(), (*put)->buffer(), expected.size(),
                          [&](uint64_t offset, absl::Span<std::byte> to) {
                            std::copy_n(expected.begin() + static_cast<ptrdiff_t>(offset),
                                        to.size(), to.begin());
                            return absl::OkStatus();
                          })
                  .ok());
  ASSERT_TRUE((*put)->Finish({}).ok());
  const auto before = store.Find("a", "x");
  ASSERT_TRUE(before.ok()) << before.status();
  for (int value = 2; value < 30; ++value) {
    const auto rows = static_cast<uint32_t>(value % 7 + 1);
    ResidentWrite write = {.kind = ResidentWrite::Kind::kAppend, .owner = "a", .name = "x"};
    size_t place = expected.size();
    if (value % 3 == 0) {
      write.kind = ResidentWrite::Kind::kWrite;
      write.first_row = static_cast<uint64_t>(value) * 3;
      place = static_cast<size_t>(write.first_row) * 3;
    }
    const std::vector<std::byte> bytes = bytes_of(rows, value);
    const auto writing = store.Begin(write, rows_of(rows));
    ASSERT_TRUE(writing.ok()) << writing.status();
    const absl::Status finished = (*writing)->Finish(bytes);
    ASSERT_TRUE(finished.ok()) << finished;
    expected.resize(std::max(expected.size(), place + bytes.size()));
    std::copy(bytes.begin(), bytes.end(), expected.begin() + static_cast<ptrdiff_t>(place));
  }
  const auto after = store.Find("a", "x");
  ASSERT_TRUE(after.ok()) << after.status();
  std::vector<std::byte> read(expected.size());
  ASSERT_TRUE(ReadBuffer(device(), (*after)->buffer(), 0, absl::MakeSpan(read)).ok());
  EXPECT_TRUE(read == expected);
  read.resize(size_t{300});
  ASSERT_TRUE(ReadBuffer(device(), (*before)->buffer(), 0, absl::MakeSpan(read)).ok());
  EXPECT_TRUE(read == bytes_of(100, 1)) << "a state is immutable";
}

INSTANTIATE_TEST_SUITE_P(, ResidentMemoryTest, testing::ValuesIn(Devices()),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace opmill
