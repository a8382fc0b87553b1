#include "server/shared_memory/shared_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/base/errors.h"

namespace opmill {
namespace {

constexpr size_t kMostSegmentNameBytes = 254;

// The key without its slash in front.
absl::StatusOr<std::string> SegmentName(absl::string_view key) {
  const absl::string_view name = absl::StripPrefix(key, "/");
  const bool is_valid = !name.empty() && name.size() <= kMostSegmentNameBytes && name != "." &&
                        name != ".." && std::none_of(name.begin(), name.end(), [](char c) {
                          return c == '/' || c == '\\' || c == '\0';
                        });
  if (is_valid) return std::string(name);
  return InvalidField(
      "key",
      absl::StrCat("key ", QuotedName(key), " is not the name of a shared memory segment: 1 to ",
                   kMostSegmentNameBytes, " bytes after an optional slash, without slashes."));
}

// `whole` names what has `size` bytes.
absl::Status CheckWithin(uint64_t offset, uint64_t byte_size, uint64_t size,
                         absl::string_view whole) {
  if (byte_size == 0) return InvalidField("byte_size", "byte_size (0) is not above 0.");
  if (offset >= size) {
    return InvalidField("offset", absl::StrCat("offset (", offset, ") is not below the size of ",
                                               whole, ", ", size, " bytes."));
  }
  if (byte_size <= size - offset) return absl::OkStatus();
  return InvalidField("byte_size",
                      absl::StrCat("byte_size (", byte_size, ") at offset ", offset, " exceeds ",
                                   whole, ", which has ", size, " bytes."));
}

}  // namespace

absl::Status SharedRange::Read(uint64_t offset, absl::Span<std::byte> to) const {
  absl::StatusOr<std::shared_ptr<const Segment>> segment = Segment::Open(name_, owners_);
  if (!segment.ok()) return Explain(segment.status(), "read");
  return Explain((*segment)->Read(offset_ + offset, to), "read");
}

absl::Status SharedRange::Write(uint64_t offset, absl::Span<const std::byte> from) const {
  absl::StatusOr<std::shared_ptr<const Segment>> segment = Segment::Open(name_, owners_);
  if (!segment.ok()) return Explain(segment.status(), "written");
  return Explain((*segment)->Write(offset_ + offset, from), "written");
}

absl::Status SharedRange::Explain(const absl::Status& status, absl::string_view verb) const {
  if (status.ok()) return status;
  return InvalidField(
      "key", absl::StrCat("Bytes ", offset_, " to ", offset_ + bytes_ - 1, " of the segment ",
                          QuotedName(name_), " cannot be ", verb, ": ", status.message(), "."));
}

bool SharedRange::Overlaps(const SharedRange& other) const {
  return name_ == other.name_ && offset_ < other.offset_ + other.bytes_ &&
         other.offset_ < offset_ + bytes_;
}

absl::Status SharedMemory::CheckAllowed() const {
  if (is_allowed()) return absl::OkStatus();
  return InvalidField("key",
                      "The server does not use shared memory, because --shared_memory is off or "
                      "other machines can reach its address.");
}

absl::StatusOr<SharedRange> SharedMemory::Open(const SharedMemoryCaller& caller,
                                               const std::string& key, uint64_t offset,
                                               uint64_t byte_size) const {
  RETURN_IF_ERROR(CheckAllowed());
  ASSIGN_OR_RETURN(std::string name, SegmentName(key));
  const SegmentOwners owners = {.any = users_ == Users::kAll, .caller = caller.user};
  absl::StatusOr<std::shared_ptr<const Segment>> segment = Segment::Open(name, owners);
  if (!segment.ok()) {
    return InvalidField("key", absl::StrCat("key ", QuotedName(key),
                                            " names no shared memory segment that the server can "
                                            "open: ",
                                            segment.status().message(), "."));
  }
  ASSIGN_OR_RETURN(const uint64_t size, (*segment)->SizeBytes());
  RETURN_IF_ERROR(
      CheckWithin(offset, byte_size, size, absl::StrCat("the segment ", QuotedName(key))));
  return SharedRange(std::move(name), owners, offset, byte_size);
}

absl::Status SharedMemory::Register(const SharedMemoryCaller& caller, const SharedRegion& region) {
  if (region.name.empty() || region.name.size() > kMostRegionNameBytes) {
    return InvalidField("name",
                        absl::StrCat("name ", QuotedName(region.name), " has ", region.name.size(),
                                     " bytes; it must have 1 to ", kMostRegionNameBytes, "."));
  }
  RETURN_IF_ERROR(Open(caller, region.key, region.offset, region.byte_size).status());
  const absl::MutexLock lock(&mutex_);
  return regions_.Add(caller, region, [](const SharedRegion& each) {
    const absl::StatusOr<std::string> name = SegmentName(each.key);
    const auto segment = Segment::Open(*name, {.any = true});
    if (!segment.ok()) return false;
    const absl::StatusOr<uint64_t> size = (*segment)->SizeBytes();
    return size.ok() && CheckWithin(each.offset, each.byte_size, *size, "").ok();
  });
}

bool SharedMemory::Unregister(absl::string_view caller, absl::string_view name) {
  const absl::MutexLock lock(&mutex_);
  return regions_.Remove(caller, name);
}

void SharedMemory::UnregisterAll(absl::string_view caller) {
  const absl::MutexLock lock(&mutex_);
  regions_.RemoveAll(caller);
}

std::vector<SharedRegion> SharedMemory::Regions(absl::string_view caller) const {
  const absl::MutexLock lock(&mutex_);
  return regions_.Of(caller);
}

absl::StatusOr<SharedRange> SharedMemory::OpenRegion(const SharedMemoryCaller& caller,
                                                     absl::string_view name, uint64_t offset,
                                                     uint64_t byte_size) const {
  RETURN_IF_ERROR(CheckAllowed());
  SharedRegion region;
  {
    const absl::MutexLock lock(&mutex_);
    ASSIGN_OR_RETURN(region, regions_.Use(caller, name));
  }
  RETURN_IF_ERROR(CheckWithin(offset, byte_size, region.byte_size,
                              absl::StrCat("the region ", QuotedName(name))));
  return Open(caller, region.key, region.offset + offset, byte_size);
}

}  // namespace opmill
