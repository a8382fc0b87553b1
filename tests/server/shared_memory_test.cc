#include "server/shared_memory/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/errors.h"
#include "server/network/listen_address.h"

namespace opmill {
namespace {

using testing::HasSubstr;

// A segment whose bytes are 0, 1, ... 250, 0, ...; removed by the destructor.
class OwnSegment {
 public:
  explicit OwnSegment(size_t bytes, const std::string& suffix = "")
      : key_(absl::StrCat("/opmill-test-", getpid(), suffix)),
        file_(shm_open(key_.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600)) {
    std::vector<char> content(bytes);
    for (size_t i = 0; i < bytes; ++i) content[i] = static_cast<char>(i % 251);
    EXPECT_EQ(pwrite(file_, content.data(), bytes, 0), static_cast<ssize_t>(bytes));
  }
  ~OwnSegment() {
    Remove();
    close(file_);
  }
  void Remove() { shm_unlink(key_.c_str()); }
  void GiveTo(uid_t user) { ASSERT_EQ(fchown(file_, user, static_cast<gid_t>(-1)), 0); }
  void Resize(size_t bytes) { ASSERT_EQ(ftruncate(file_, static_cast<off_t>(bytes)), 0); }
  size_t bytes() const {
    struct stat status = {};
    EXPECT_EQ(fstat(file_, &status), 0);
    return static_cast<size_t>(status.st_size);
  }
  const std::string& key() const { return key_; }

 private:
  std::string key_;
  int file_;
};

SharedMemoryCaller Named(const std::string& name) { return {.name = name, .identity = name}; }

std::string FieldOfError(const absl::Status& status) { return FieldOf(status).value_or(""); }

std::vector<std::byte> ByteList(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

class SharedMemoryTest : public testing::Test {
 protected:
  SharedMemory memory_{SharedMemory::Users::kServerAndCaller, /*max_regions=*/4};
};

TEST_F(SharedMemoryTest, ReadsAndWritesARangeOfASegment) {
  const OwnSegment segment(1000);
  const absl::StatusOr<SharedRange> range = memory_.Open({}, segment.key(), 100, 8);
  ASSERT_EQ(range.status(), absl::OkStatus());
  EXPECT_EQ(range->size(), 8u);
  std::vector<std::byte> read(3);
  EXPECT_EQ(range->Read(5, absl::MakeSpan(read)), absl::OkStatus());
  EXPECT_EQ(read, ByteList({105, 106, 107}));
  EXPECT_EQ(range->Write(6, ByteList({7, 8})), absl::OkStatus());
  EXPECT_EQ(range->Read(5, absl::MakeSpan(read)), absl::OkStatus());
  EXPECT_EQ(read, ByteList({105, 7, 8}));
  EXPECT_EQ(memory_.Open({}, segment.key().substr(1), 0, 1000).status(), absl::OkStatus());
}

TEST_F(SharedMemoryTest, RefusesNamesThatAreNoSegments) {
  for (const std::string& key :
       {std::string(), std::string("/"), std::string("."), std::string("/.."),
        std::string("../etc/passwd"), std::string("/a/b"), std::string("a\\b"),
        std::string("a\0b", 3), std::string(255, 'x'), std::string(100'000, 'x'),
        std::string("//opmill"), std::string("\x1b[31m/")}) {
    const absl::Status status = memory_.Open({}, key, 0, 1).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << key;
    EXPECT_EQ(FieldOfError(status), "key") << key;
    EXPECT_THAT(status.message(), HasSubstr("is not the name of a shared memory segment")) << key;
    EXPECT_LT(status.message().size(), 2000u);
    EXPECT_EQ(status.message().find('\x1b'), std::string::npos);
  }
  EXPECT_THAT(memory_.Open({}, "/opmill-no-such-segment", 0, 1).status().message(),
              HasSubstr("No such file or directory"));
}

TEST_F(SharedMemoryTest, RefusesWhatIsNoMemory) {
  const std::string name = absl::StrCat("opmill-pipe-", getpid());
  const std::string path = absl::StrCat("/dev/shm/", name);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(FieldOfError(memory_.Open({}, name, 0, 1).status()), "key");
  unlink(path.c_str());
  ASSERT_EQ(symlink("/etc/passwd", path.c_str()), 0);
  EXPECT_EQ(FieldOfError(memory_.Open({}, name, 0, 1).status()), "key");
  unlink(path.c_str());
}

TEST_F(SharedMemoryTest, UsesSegmentsOfTheServersAndTheCallersUserOnly) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may give a segment away";
  constexpr uid_t kStranger = 12345;
  OwnSegment segment(1000);
  const absl::StatusOr<SharedRange> before = memory_.Open({}, segment.key(), 0, 1000);
  ASSERT_EQ(before.status(), absl::OkStatus());
  segment.GiveTo(kStranger);
  const absl::Status refused = memory_.Open({}, segment.key(), 0, 1000).status();
  EXPECT_EQ(FieldOfError(refused), "key");
  EXPECT_THAT(refused.message(),
              HasSubstr("it belongs to user 12345, the server runs as user 0, and only "
                        "--shared_memory=on allows other users."));
  EXPECT_THAT(memory_.Open({.user = 7}, segment.key(), 0, 1000).status().message(),
              HasSubstr("the server runs as user 0 and the caller as user 7, and only"));
  std::vector<std::byte> byte(1);
  EXPECT_EQ(FieldOfError(before->Read(0, absl::MakeSpan(byte))), "key") << "each copy looks again";
  EXPECT_EQ(FieldOfError(before->Write(0, byte)), "key");
  const absl::StatusOr<SharedRange> own = memory_.Open({.user = kStranger}, segment.key(), 0, 1000);
  ASSERT_EQ(own.status(), absl::OkStatus());
  EXPECT_EQ(own->Read(0, absl::MakeSpan(byte)), absl::OkStatus());
  const SharedMemory all(SharedMemory::Users::kAll, /*max_regions=*/4);
  EXPECT_EQ(all.Open({}, segment.key(), 0, 1000).status(), absl::OkStatus());
}

TEST_F(SharedMemoryTest, RefusesRangesOutsideTheSegment) {
  const OwnSegment segment(1000);
  const auto field = [&](uint64_t offset, uint64_t byte_size) {
    return FieldOfError(memory_.Open({}, segment.key(), offset, byte_size).status());
  };
  EXPECT_EQ(field(0, 1000), "");
  EXPECT_EQ(field(999, 1), "");
  EXPECT_EQ(field(0, 0), "byte_size");
  EXPECT_EQ(field(0, 1001), "byte_size");
  EXPECT_EQ(field(1, 1000), "byte_size");
  EXPECT_EQ(field(1, ~uint64_t{0}), "byte_size");
  EXPECT_EQ(field(1000, 1), "offset");
  EXPECT_EQ(field(~uint64_t{0}, 1), "offset");
  EXPECT_EQ(field(~uint64_t{0}, ~uint64_t{0}), "offset");
  EXPECT_THAT(memory_.Open({}, segment.key(), 1, 1000).status().message(), HasSubstr("1000 bytes"));
}

TEST_F(SharedMemoryTest, ReportsASegmentThatShrinks) {
  OwnSegment segment(100'000);
  const absl::StatusOr<SharedRange> range = memory_.Open({}, segment.key(), 0, 100'000);
  ASSERT_EQ(range.status(), absl::OkStatus());
  segment.Resize(70'000);
  std::vector<std::byte> bytes(100'000);
  const absl::Status read = range->Read(0, absl::MakeSpan(bytes));
  EXPECT_EQ(FieldOfError(read), "key");
  EXPECT_THAT(read.message(), HasSubstr("cannot be read: it ends at byte 70000."));
  EXPECT_EQ(FieldOfError(range->Write(0, bytes)), "key");
  EXPECT_EQ(segment.bytes(), 70'000u) << "the server must not enlarge it";
  segment.Resize(0);
  EXPECT_EQ(FieldOfError(range->Read(0, absl::MakeSpan(bytes))), "key");
}

TEST_F(SharedMemoryTest, SurvivesASegmentThatShrinksAndGrowsAllTheTime) {
  OwnSegment segment(1 << 20);
  std::atomic<bool> done = false;
  std::thread owner([&] {
    while (!done) {
      segment.Resize(4096);
      segment.Resize(1 << 20);
    }
  });
  std::vector<std::byte> bytes(1 << 20);
  for (int i = 0; i < 300; ++i) {
    const absl::StatusOr<SharedRange> range = memory_.Open({}, segment.key(), 0, bytes.size());
    if (!range.ok()) continue;
    const absl::Status read = range->Read(0, absl::MakeSpan(bytes));
    const absl::Status written = range->Write(0, bytes);
    EXPECT_TRUE(read.ok() || FieldOfError(read) == "key") << read;
    EXPECT_TRUE(written.ok() || FieldOfError(written) == "key") << written;
  }
  done = true;
  owner.join();
}

TEST_F(SharedMemoryTest, ReportsASegmentThatVanishes) {
  OwnSegment segment(1000);
  const absl::StatusOr<SharedRange> range = memory_.Open({}, segment.key(), 10, 1);
  ASSERT_EQ(range.status(), absl::OkStatus());
  segment.Remove();
  std::vector<std::byte> byte(1);
  EXPECT_EQ(FieldOfError(range->Read(0, absl::MakeSpan(byte))), "key");
  EXPECT_EQ(FieldOfError(range->Write(0, byte)), "key");
  EXPECT_EQ(FieldOfError(memory_.Open({}, segment.key(), 10, 1).status()), "key");
}

TEST_F(SharedMemoryTest, KnowsWhichRangesOverlap) {
  const OwnSegment a(100, "a");
  const OwnSegment b(100, "b");
  const SharedRange range = *memory_.Open({}, a.key(), 10, 10);
  EXPECT_TRUE(range.Overlaps(*memory_.Open({}, a.key().substr(1), 19, 1)));
  EXPECT_TRUE(range.Overlaps(*memory_.Open({}, a.key(), 0, 100)));
  EXPECT_FALSE(range.Overlaps(*memory_.Open({}, a.key(), 20, 10)));
  EXPECT_FALSE(range.Overlaps(*memory_.Open({}, a.key(), 0, 10)));
  EXPECT_FALSE(range.Overlaps(*memory_.Open({}, b.key(), 10, 10)));
}

TEST_F(SharedMemoryTest, RegistersRegionsByName) {
  const OwnSegment segment(1000);
  EXPECT_EQ(memory_.Register({}, {"half", segment.key(), 500, 500}), absl::OkStatus());
  EXPECT_EQ(memory_.Register({}, {"all", segment.key(), 0, 1000}), absl::OkStatus());
  const std::vector<SharedRegion> regions = memory_.Regions("");
  ASSERT_EQ(regions.size(), 2u);
  EXPECT_EQ(regions[1].name, "half");
  EXPECT_EQ(regions[1].key, segment.key());
  EXPECT_EQ(regions[1].offset, 500u);
  EXPECT_EQ(regions[1].byte_size, 500u);
  std::vector<std::byte> read(1);
  EXPECT_EQ(memory_.OpenRegion({}, "half", 2, 1)->Read(0, absl::MakeSpan(read)), absl::OkStatus());
  EXPECT_EQ(read, ByteList({0}));  // byte 502
  EXPECT_EQ(FieldOfError(memory_.OpenRegion({}, "half", 1, 500).status()), "byte_size");
  EXPECT_EQ(FieldOfError(memory_.OpenRegion({}, "half", 500, 1).status()), "offset");
  EXPECT_EQ(FieldOfError(memory_.OpenRegion({}, "third", 0, 1).status()), "name");
  EXPECT_EQ(FieldOfError(memory_.Register({}, {"half", segment.key(), 0, 1})), "name");
  EXPECT_EQ(FieldOfError(memory_.Register({}, {"", segment.key(), 0, 1})), "name");
  EXPECT_EQ(FieldOfError(memory_.Register({}, {std::string(256, 'n'), segment.key(), 0, 1})),
            "name");
  EXPECT_EQ(FieldOfError(memory_.Register({}, {"x", segment.key(), 0, 1001})), "byte_size");
  EXPECT_TRUE(memory_.Unregister("", "half"));
  EXPECT_FALSE(memory_.Unregister("", "half"));
  memory_.UnregisterAll("");
  EXPECT_TRUE(memory_.Regions("").empty());
}

TEST_F(SharedMemoryTest, KeepsCallersApart) {
  const OwnSegment segment(1000);
  EXPECT_EQ(memory_.Register(Named("alice"), {"x", segment.key(), 0, 10}), absl::OkStatus());
  EXPECT_EQ(memory_.Register(Named("bob"), {"x", segment.key(), 100, 20}), absl::OkStatus());
  EXPECT_EQ(memory_.OpenRegion(Named("bob"), "x", 0, 20)->size(), 20u);
  EXPECT_EQ(FieldOfError(memory_.OpenRegion(Named("alice"), "x", 0, 20).status()), "byte_size");
  EXPECT_FALSE(memory_.Unregister("carol", "x"));
  memory_.UnregisterAll("alice");
  EXPECT_EQ(memory_.Regions("bob").size(), 1u);
}

TEST_F(SharedMemoryTest, LimitsTheRegionsThatExist) {
  const OwnSegment lasting(1000);
  {
    const OwnSegment short_lived(1000, "s");
    EXPECT_EQ(memory_.Register({}, {"s", short_lived.key(), 0, 10}), absl::OkStatus());
  }
  for (int i = 0; i < 1000; ++i) {
    const absl::Status status = memory_.Register({}, {absl::StrCat("r", i), lasting.key(), 0, 10});
    if (i < 4) {  // the region whose segment is gone makes room
      EXPECT_EQ(status, absl::OkStatus()) << i;
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
      EXPECT_THAT(status.message(), HasSubstr("the limit is 4 (max_shared_memory_regions)"));
    }
  }
  EXPECT_EQ(memory_.Regions("").size(), 4u);
}

TEST(SharedMemory, RefusesEverythingWhenNotAllowed) {
  const OwnSegment segment(1000);
  SharedMemory memory(SharedMemory::Users::kNone, /*max_regions=*/4);
  EXPECT_THAT(memory.Open({}, segment.key(), 0, 1).status().message(),
              HasSubstr("--shared_memory"));
  EXPECT_EQ(FieldOfError(memory.Register({}, {"x", segment.key(), 0, 1})), "key");
  EXPECT_EQ(FieldOfError(memory.OpenRegion({}, "x", 0, 1).status()), "key");
}

TEST(AllowsSharedMemory, FollowsTheAddressesUnlessToldOtherwise) {
  ServerOptions options;
  EXPECT_TRUE(AllowsSharedMemory(options));
  options.addresses = {"127.0.0.1:1", "[::1]:1", "unix:/run/opmill.sock"};
  EXPECT_TRUE(AllowsSharedMemory(options));
  options.addresses.push_back("0.0.0.0:1");
  EXPECT_FALSE(AllowsSharedMemory(options));
  options.shared_memory = SharedMemoryChoice::kOn;
  EXPECT_TRUE(AllowsSharedMemory(options));
  options.addresses = {"127.0.0.1:1"};
  options.shared_memory = SharedMemoryChoice::kOff;
  EXPECT_FALSE(AllowsSharedMemory(options));
}

}  // namespace
}  // namespace opmill
