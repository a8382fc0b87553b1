#include "server/tensors/resident_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
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
    const absl::Status is_read = ReadBuffer(device(), *buffer, absl::MakeSpan(read));
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

INSTANTIATE_TEST_SUITE_P(, ResidentMemoryTest, testing::ValuesIn(Devices()),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace opmill
