#include "server/shared_memory/region_table.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"

namespace opmill {
namespace {

constexpr int kMostExamined = 16;

}  // namespace

std::string QuotedName(absl::string_view name) {
  return absl::StrCat("(\"", Excerpt(name, kMostRegionNameBytes), "\")");
}

absl::Status NoRegion(absl::string_view name) {
  return InvalidField("name", absl::StrCat("name ", QuotedName(name),
                                           " is not a registered region of shared memory."));
}

absl::Status RegionTable::Add(const SharedMemoryCaller& caller, const SharedRegion& region,
                              const Exists& exists) {
  Name name(caller.name, region.name);
  if (regions_.contains(name)) {
    return InvalidField("name", absl::StrCat("name ", QuotedName(region.name),
                                             " is registered already; unregister it first."));
  }
  Holding& holding = holdings_[caller.identity];
  const auto up_to = [&] { return limit_.LimitFor(holding, 1, holdings_.size() > 1); };
  bool has_room = limit_.TryTake(holding, 1, up_to());
  if (!has_room && DropGone(caller.identity, exists)) {
    has_room = limit_.TryTake(holding, 1, up_to());
  }
  if (!has_room) {
    std::string sentence =
        absl::StrCat("There is no room for another region of shared memory: the limit is ",
                     limit_.limit(), " (max_shared_memory_regions)");
    if (up_to() < limit_.limit()) {
      absl::StrAppend(&sentence, ", and the last ", limit_.limit() - up_to(),
                      " are for other callers");
    }
    ForgetIdle();
    return absl::ResourceExhaustedError(absl::StrCat(sentence, "."));
  }
  regions_.emplace(std::move(name), Entry{region, caller.identity, caller.connection});
  ForgetIdle();
  return absl::OkStatus();
}

absl::StatusOr<SharedRegion> RegionTable::Use(const SharedMemoryCaller& caller,
                                              absl::string_view name) {
  const auto found = regions_.find(Name(caller.name, name));
  if (found == regions_.end()) return NoRegion(name);
  found->second.connection = caller.connection;
  return found->second.region;
}

bool RegionTable::Remove(absl::string_view caller, absl::string_view name) {
  const auto found = regions_.find(Name(caller, name));
  if (found == regions_.end()) return false;
  Erase(found);
  ForgetIdle();
  return true;
}

void RegionTable::RemoveAll(absl::string_view caller) {
  for (auto at = regions_.begin(); at != regions_.end();) {
    at = at->first.first == caller ? Erase(at) : std::next(at);
  }
  ForgetIdle();
}

std::vector<SharedRegion> RegionTable::Of(absl::string_view caller) const {
  std::vector<SharedRegion> regions;
  for (const auto& [name, entry] : regions_) {
    if (name.first == caller) regions.push_back(entry.region);
  }
  return regions;
}

// Returns whether any region was dropped.
bool RegionTable::DropGone(const std::string& identity, const Exists& exists) {
  return DropUnconnected(identity) || DropMissing(exists);
}

bool RegionTable::DropUnconnected(const std::string& identity) {
  const size_t before = regions_.size();
  const Holding& asking = holdings_.at(identity);
  for (auto at = regions_.begin(); at != regions_.end();) {
    const Entry& entry = at->second;
    const bool is_closed = entry.connection.has_value() && entry.connection->expired();
    const bool may_drop =
        entry.identity == identity || limit_.ExceedsShare(holdings_.at(entry.identity), asking);
    at = is_closed && may_drop ? Erase(at) : std::next(at);
  }
  return regions_.size() < before;
}

bool RegionTable::DropMissing(const Exists& exists) {
  const size_t before = regions_.size();
  for (int i = 0; i < kMostExamined && !regions_.empty(); ++i) {
    auto at = regions_.upper_bound(last_examined_);
    if (at == regions_.end()) at = regions_.begin();
    last_examined_ = at->first;
    if (!exists(at->second.region)) Erase(at);
  }
  return regions_.size() < before;
}

RegionTable::Entries::iterator RegionTable::Erase(Entries::iterator entry) {
  limit_.Return(holdings_.at(entry->second.identity), 1);
  return regions_.erase(entry);
}

void RegionTable::ForgetIdle() {
  std::erase_if(holdings_, [](const auto& each) { return each.second.amount == 0; });
}

}  // namespace opmill
