#include "server/models/model_table.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"

namespace opmill {
namespace {

std::string ListOf(const ModelVersions& versions) {
  return absl::StrJoin(versions, ", ", [](std::string* out, const auto& version) {
    absl::StrAppend(out, version.second->version);
  });
}

// 0 if it is the text of no version.
uint64_t NumberOf(absl::string_view version) {
  uint64_t number = 0;
  const bool is_number = absl::SimpleAtoi(version, &number) && absl::StrCat(number) == version;
  return is_number ? number : 0;
}

// Of the version, or if it has none, of the newest that has one, or of the model. Empty: none.
std::string ErrorOf(const std::map<uint64_t, std::string>& errors, uint64_t version) {
  if (errors.empty()) return "";
  const auto own = errors.find(version);
  return own == errors.end() ? errors.rbegin()->second : own->second;
}

absl::StatusOr<std::shared_ptr<const Model>> Choose(absl::string_view name,
                                                    absl::string_view version,
                                                    const ModelVersions& versions,
                                                    const std::map<uint64_t, std::string>& errors) {
  if (version.empty()) return versions.rbegin()->second;
  const uint64_t number = NumberOf(version);
  if (const auto found = versions.find(number); found != versions.end()) return found->second;
  const std::string reason = ErrorOf(errors, number);
  return WithField(absl::NotFoundError(absl::StrCat(
                       "The model ", name, " has the version", versions.size() > 1 ? "s " : " ",
                       ListOf(versions), ", not \"", Excerpt(version), "\".",
                       reason.empty() ? "" : absl::StrCat(" ", reason))),
                   "model_version");
}

}  // namespace

ModelTable::ModelTable() {
  for (const std::shared_ptr<const Model>& model : BuiltInModels()) {
    built_in_[model->name].emplace(1, model);
  }
}

absl::Status ModelTable::WhyNot(absl::string_view name, const Entry* entry, uint64_t version) {
  std::string why;
  if (entry == nullptr) {
    why = absl::StrCat("There is no model \"", Excerpt(name),
                       "\"; RepositoryIndex and ListModels list the models.");
  } else if (entry->phase == Phase::kLoading) {
    return absl::UnavailableError(absl::StrCat("The model ", Excerpt(name), " is being loaded."));
  } else if (entry->phase == Phase::kRead) {
    why = absl::StrCat("The model ", Excerpt(name),
                       " is not served: ", ErrorOf(entry->errors, version));
  } else {
    why = absl::StrCat("The model ", Excerpt(name), " is ",
                       entry->phase == Phase::kUnloaded ? "unloaded" : "not loaded",
                       "; RepositoryModelLoad loads it.");
  }
  return WithField(absl::NotFoundError(why), "model_name");
}

absl::StatusOr<std::shared_ptr<const Model>> ModelTable::Find(absl::string_view name,
                                                              absl::string_view version) const {
  if (const auto found = built_in_.find(name); found != built_in_.end()) {
    return Choose(name, version, found->second, {});
  }
  const absl::MutexLock lock(&mutex_);
  const auto at = entries_.find(name);
  const Entry* const entry = at == entries_.end() ? nullptr : &at->second;
  if (entry == nullptr || entry->versions.empty()) return WhyNot(name, entry, NumberOf(version));
  return Choose(name, version, entry->versions, entry->errors);
}

std::vector<std::shared_ptr<const Model>> ModelTable::VersionsOf(absl::string_view name) const {
  const auto built_in = built_in_.find(name);
  std::vector<std::shared_ptr<const Model>> list;
  for (const auto& [version, model] :
       built_in == built_in_.end() ? Served(name) : built_in->second) {
    list.push_back(model);
  }
  return list;
}

std::vector<std::shared_ptr<const Model>> ModelTable::All() const {
  std::map<std::string, ModelVersions, std::less<>> all = built_in_;
  {
    const absl::MutexLock lock(&mutex_);
    for (const auto& [name, entry] : entries_) all.emplace(name, entry.versions);
  }
  std::vector<std::shared_ptr<const Model>> list;
  for (const auto& [name, versions] : all) {
    for (const auto& [version, model] : versions) list.push_back(model);
  }
  return list;
}

std::vector<IndexEntry> ModelTable::Index() const {
  std::map<std::string, std::map<uint64_t, IndexEntry>> index;
  for (const auto& [name, versions] : built_in_) {
    index[name][1] = {name, "1", ModelState::kReady, ""};
  }
  const absl::MutexLock lock(&mutex_);
  for (const auto& [name, entry] : entries_) {
    if (built_in_.contains(name)) continue;  // a model with a built-in name is not that model
    auto& versions = index[name];
    for (const auto& [version, model] : entry.versions) {
      versions[version] = {name, model->version, ModelState::kReady, ""};
    }
    if (versions.empty() && entry.phase == Phase::kLoading) {
      versions[0] = {name, "", ModelState::kLoading, ""};
    } else if (entry.phase == Phase::kNotLoaded || entry.phase == Phase::kUnloaded) {
      const char* const reason = entry.phase == Phase::kUnloaded ? "unloaded" : "not loaded";
      versions[0] = {name, "", ModelState::kUnavailable, reason};
    }
    for (const auto& [version, error] : entry.errors) {
      if (version == 0 && !entry.versions.empty()) {  // all of them stay as they were
        for (auto& [number, listed] : versions) listed.reason = error;
        continue;
      }
      IndexEntry& listed = versions[version];
      listed.name = name;
      if (version != 0) listed.version = absl::StrCat(version);
      listed.reason = error;
    }
  }
  std::vector<IndexEntry> list;
  for (auto& [name, versions] : index) {
    for (auto& [version, entry] : versions) list.push_back(std::move(entry));
  }
  return list;
}

ModelVersions ModelTable::Served(absl::string_view name) const {
  const absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(name);
  return found == entries_.end() ? ModelVersions() : found->second.versions;
}

size_t ModelTable::CountServed() const {
  const absl::MutexLock lock(&mutex_);
  size_t count = 0;
  for (const auto& [name, entry] : entries_) count += entry.versions.size();
  return count;
}

void ModelTable::SetLoading(const std::string& name) {
  const absl::MutexLock lock(&mutex_);
  Entry& entry = entries_[name];
  // Its errors stay until they are replaced.
  if (entry.versions.empty() && entry.errors.empty()) entry.phase = Phase::kLoading;
}

void ModelTable::Set(const std::string& name, const ModelFolder& folder) {
  Entry entry = {.versions = folder.versions};
  for (const auto& [version, error] : folder.errors) {
    entry.errors.emplace(version, error.status.message());
  }
  const absl::MutexLock lock(&mutex_);
  std::swap(entries_[name], entry);
}

absl::Status ModelTable::Unload(const std::string& name) {
  ModelVersions versions;  // freed without the lock
  const absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end()) return WhyNot(name, nullptr, 0);
  versions.swap(found->second.versions);
  found->second = {.phase = Phase::kUnloaded};
  return absl::OkStatus();
}

void ModelTable::KeepOnly(const std::set<std::string>& names) {
  std::map<std::string, Entry, std::less<>> kept;
  const absl::MutexLock lock(&mutex_);
  for (const std::string& name : names) {
    auto entry = entries_.extract(name);
    if (!entry.empty()) kept.insert(std::move(entry));
  }
  entries_.swap(kept);
}

void ModelTable::ListFolders(const std::set<std::string>& names) {
  const absl::MutexLock lock(&mutex_);
  for (const std::string& name : names) {
    entries_.try_emplace(name, Entry{.phase = Phase::kNotLoaded});
  }
  std::erase_if(entries_, [&](const auto& entry) {
    return entry.second.versions.empty() && entry.second.phase != Phase::kLoading &&
           !names.contains(entry.first);
  });
}

}  // namespace opmill
