// The regions of shared memory that callers have registered, and how many each caller may have.
#ifndef OPMILL_SERVER_SHARED_MEMORY_REGION_TABLE_H_
#define OPMILL_SERVER_SHARED_MEMORY_REGION_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/execution/shared_limit.h"

namespace opmill {

constexpr size_t kMostRegionNameBytes = 255;

struct SharedRegion {
  std::string name;
  std::string key;
  uint64_t offset = 0;  // in the segment
  uint64_t byte_size = 0;
};

struct SharedMemoryCaller {
  std::string name;      // of its token or certificate; callers of one name see the same regions
  std::string identity;  // whose share of the regions it uses: CallerIdentity
  // That it calls through, expired once it is closed; nullopt if the server does not know it.
  std::optional<std::weak_ptr<const void>> connection;
  std::optional<uint32_t> user;  // that its process runs as, if the system tells
};

// InvalidArgument with the field `name`.
absl::Status NoRegion(absl::string_view name);
std::string QuotedName(absl::string_view name);  // in a sentence

// Not thread-safe. Errors are InvalidArgument with the field `name`, unless stated otherwise.
//
// Callers share the table as SharedLimit says. When it is full for a caller, these regions are
// dropped:
// - those whose last connection is closed, of the caller itself and of callers with more than their
//   shares. The last connection is the one that registered or last used the region.
// - if there are none, those whose segment is gone, among the next few: looking at a segment takes
//   microseconds.
class RegionTable {
 public:
  using Exists = std::function<bool(const SharedRegion&)>;

  explicit RegionTable(uint32_t max_regions) : limit_(max_regions) {}

  // `exists`: whether the segment still has that region. ResourceExhausted if there is no room.
  absl::Status Add(const SharedMemoryCaller& caller, const SharedRegion& region,
                   const Exists& exists);
  // The region, from now on used by the caller's connection.
  absl::StatusOr<SharedRegion> Use(const SharedMemoryCaller& caller, absl::string_view name);
  bool Remove(absl::string_view caller, absl::string_view name);
  void RemoveAll(absl::string_view caller);
  // In the order of their names.
  std::vector<SharedRegion> Of(absl::string_view caller) const;

 private:
  using Name = std::pair<std::string, std::string>;  // the caller, the region
  struct Entry {
    SharedRegion region;
    std::string identity;
    std::optional<std::weak_ptr<const void>> connection;
  };
  using Entries = std::map<Name, Entry>;

  bool DropGone(const std::string& identity, const Exists& exists);
  bool DropUnconnected(const std::string& identity);
  bool DropMissing(const Exists& exists);
  Entries::iterator Erase(Entries::iterator entry);
  void ForgetIdle();

  SharedLimit limit_;
  Entries regions_;
  std::map<std::string, Holding> holdings_;  // by identity
  Name last_examined_;                       // by DropMissing
};

}  // namespace opmill

#endif  // OPMILL_SERVER_SHARED_MEMORY_REGION_TABLE_H_
