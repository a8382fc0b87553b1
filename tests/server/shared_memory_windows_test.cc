// Named file mappings of Windows as segments. What does not depend on the system is in
// shared_memory_test.cc.
#include <windows.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/errors.h"
#include "kernels/base/utf16.h"
#include "server/shared_memory/shared_memory.h"

namespace opmill {
namespace {

using testing::HasSubstr;

constexpr size_t kPageBytes = 4096;

// A mapping of the paging file, whose bytes are 0, 1, ... 250, 0, ...; it is gone after the
// destructor.
class OwnMapping {
 public:
  explicit OwnMapping(size_t bytes, DWORD protection = PAGE_READWRITE | SEC_COMMIT,
                      const std::string& prefix = "")
      : key_(absl::StrCat("opmill-test-", GetCurrentProcessId())),
        mapping_(CreateFileMappingW(INVALID_HANDLE_VALUE, nullptr, protection, 0,
                                    static_cast<DWORD>(bytes),
                                    Utf16(absl::StrCat(prefix, key_)).c_str())) {
    EXPECT_NE(mapping_, nullptr) << GetLastError();
    EXPECT_NE(GetLastError(), DWORD{ERROR_ALREADY_EXISTS});
    view_ = static_cast<std::byte*>(MapViewOfFile(mapping_, FILE_MAP_ALL_ACCESS, 0, 0, 0));
    EXPECT_NE(view_, nullptr) << GetLastError();
    if ((protection & SEC_RESERVE) != 0) return;
    for (size_t i = 0; i < bytes; ++i) view_[i] = static_cast<std::byte>(i % 251);
  }
  ~OwnMapping() {
    UnmapViewOfFile(view_);
    CloseHandle(mapping_);
  }

  const std::string& key() const { return key_; }
  std::byte* view() const { return view_; }

 private:
  std::string key_;
  HANDLE mapping_;
  std::byte* view_ = nullptr;
};

std::string Field(const absl::Status& status) { return FieldOf(status).value_or(""); }

class SharedMemoryWindowsTest : public testing::Test {
 protected:
  SharedMemory memory_{SharedMemory::Users::kServerAndCaller, /*max_regions=*/4};
};

TEST_F(SharedMemoryWindowsTest, ReadsAndWritesARangeOfAMapping) {
  const OwnMapping mapping(3 * kPageBytes);
  for (const std::string& key : {mapping.key(), "/" + mapping.key()}) {
    const absl::StatusOr<SharedRange> range = memory_.Open({}, key, 4000, 200);
    ASSERT_EQ(range.status(), absl::OkStatus());
    std::vector<std::byte> read(150);
    ASSERT_EQ(range->Read(50, absl::MakeSpan(read)), absl::OkStatus());
    EXPECT_EQ(read, std::vector<std::byte>(mapping.view() + 4050, mapping.view() + 4200));
  }
  const std::vector<std::byte> bytes = {std::byte{7}, std::byte{8}};
  EXPECT_EQ(memory_.Open({}, mapping.key(), 100, 8)->Write(6, bytes), absl::OkStatus());
  EXPECT_EQ(mapping.view()[105], std::byte{105});
  EXPECT_EQ(mapping.view()[106], std::byte{7});
  EXPECT_EQ(mapping.view()[107], std::byte{8});
  EXPECT_EQ(mapping.view()[108], std::byte{108});
}

TEST_F(SharedMemoryWindowsTest, FindsTheNamesOfAllSessions) {
  const OwnMapping mapping(100, PAGE_READWRITE, "Global\\");
  std::vector<std::byte> read(1);
  const absl::StatusOr<SharedRange> range = memory_.Open({}, mapping.key(), 42, 1);
  ASSERT_EQ(range.status(), absl::OkStatus());
  EXPECT_EQ(range->Read(0, absl::MakeSpan(read)), absl::OkStatus());
  EXPECT_EQ(read[0], std::byte{42});
}

TEST_F(SharedMemoryWindowsTest, KnowsTheSizeInPages) {
  const OwnMapping mapping(kPageBytes + 1);
  EXPECT_EQ(memory_.Open({}, mapping.key(), 0, 2 * kPageBytes).status(), absl::OkStatus());
  EXPECT_EQ(Field(memory_.Open({}, mapping.key(), 0, 2 * kPageBytes + 1).status()), "byte_size");
  EXPECT_EQ(Field(memory_.Open({}, mapping.key(), 2 * kPageBytes, 1).status()), "offset");
  EXPECT_EQ(Field(memory_.Open({}, mapping.key(), ~uint64_t{0}, ~uint64_t{0}).status()), "offset");
}

TEST_F(SharedMemoryWindowsTest, RefusesMemoryThatIsOnlyReserved) {
  const OwnMapping mapping(4 * kPageBytes, PAGE_READWRITE | SEC_RESERVE);
  EXPECT_NE(Field(memory_.Open({}, mapping.key(), 0, 1).status()), "");
}

TEST_F(SharedMemoryWindowsTest, RefusesOtherObjectsAndNames) {
  const HANDLE event = CreateEventW(nullptr, FALSE, FALSE, L"opmill-test-event");
  ASSERT_NE(event, nullptr);
  for (const char* const key :
       {"opmill-test-event", "opmill-no-such-mapping", "Global\\x", "..\\x", "a/b", ""}) {
    const absl::Status status = memory_.Open({}, key, 0, 1).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << key;
    EXPECT_EQ(Field(status), "key") << key;
  }
  CloseHandle(event);
}

TEST_F(SharedMemoryWindowsTest, ReportsAMappingThatVanishes) {
  auto mapping = std::make_unique<OwnMapping>(1000);
  const absl::StatusOr<SharedRange> range = memory_.Open({}, mapping->key(), 10, 1);
  ASSERT_EQ(range.status(), absl::OkStatus());
  EXPECT_EQ(memory_.Register({}, {"region", mapping->key(), 0, 10}), absl::OkStatus());
  mapping.reset();
  std::vector<std::byte> byte(1);
  const absl::Status read = range->Read(0, absl::MakeSpan(byte));
  EXPECT_EQ(Field(read), "key");
  EXPECT_THAT(read.message(), HasSubstr("cannot be read"));
  EXPECT_EQ(Field(range->Write(0, byte)), "key");
  EXPECT_EQ(Field(memory_.OpenRegion({}, "region", 0, 1).status()), "key");
}

}  // namespace
}  // namespace opmill
