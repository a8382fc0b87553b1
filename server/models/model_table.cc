#include "server/models/model_table.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/utf8.h"
#include "kernels/base/utf8_path.h"
#include "server/observe/log.h"

namespace opmill {
namespace {

constexpr size_t kMostModels = 1024;

// Hidden folders, and what a file system keeps at its root.
bool IsIgnored(absl::string_view name) {
  return absl::StartsWith(name, ".") || name == "lost+found";
}

std::string ListOf(const ModelVersions& versions) {
  return absl::StrJoin(versions, ", ", [](std::string* out, const auto& version) {
    absl::StrAppend(out, version.second->version);
  });
}

// Takes versions away, the oldest of the new ones first, until there is room for the others.
void LimitVersions(const ModelVersions& before, size_t& room, ModelFolder& folder) {
  size_t added = 0;
  for (const auto& [version, model] : folder.versions) added += before.contains(version) ? 0 : 1;
  for (auto at = folder.versions.begin(); added > room;) {
    if (before.contains(at->first)) {
      ++at;
      continue;
    }
    folder.errors.emplace(
        at->first, ModelError{"", absl::ResourceExhaustedError(absl::StrCat(
                                      "The repository has more than ", kMostModels, " models."))});
    at = folder.versions.erase(at);
    --added;
  }
  room -= added;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelTable>> ModelTable::Create(const std::string& repository,
                                                               const onnx::ModelLimits& limits) {
  std::error_code error;
  if (!repository.empty() && !std::filesystem::is_directory(PathOf(repository), error)) {
    return absl::NotFoundError(
        absl::StrCat("--model_repository is \"", repository, "\", which is not a folder."));
  }
  std::unique_ptr<ModelTable> table(new ModelTable(repository, limits));
  if (!repository.empty()) RETURN_IF_ERROR(table->Watch());
  return table;
}

ModelTable::ModelTable(const std::string& repository, const onnx::ModelLimits& limits)
    : repository_(repository), limits_(limits) {
  for (const std::shared_ptr<const Model>& model : BuiltInModels()) {
    built_in_[model->name].emplace(1, model);
  }
}

absl::Status ModelTable::Watch() {
  RETURN_IF_ERROR(Load());
  const auto load = [this] {
    const absl::Status loaded = Load();
    if (!loaded.ok()) {
      LogLine(LogLevel::kWarning, "models").Add("repository", repository_).Add(loaded);
    }
  };
  watched_ = std::make_unique<WatchedFiles>([this] { return Fingerprint(); }, load);
  return absl::OkStatus();
}

std::string ModelTable::Fingerprint() const {
  std::string fingerprint;
  const auto folders = FindFolders();
  if (!folders.ok()) return fingerprint;
  for (const auto& [name, path] : *folders) fingerprint += StampOfModelFolder(path);
  return fingerprint;
}

absl::StatusOr<std::map<std::string, std::string>> ModelTable::FindFolders() const {
  std::map<std::string, std::string> folders;
  size_t entries = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(PathOf(repository_), error), end;
       !error && entry != end; entry.increment(error)) {
    if (++entries > kMostFolderEntries) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "--model_repository is \"", repository_, "\", which has more than ", kMostFolderEntries,
          " entries; it must be a folder with one folder for each model."));
    }
    const std::string name = Utf8Name(entry->path().filename());
    std::error_code ignored;
    if (IsIgnored(name) || !entry->is_directory(ignored)) continue;
    folders[name] = Utf8Name(entry->path());
  }
  return folders;
}

ModelFolder ModelTable::Read(const std::string& name, const std::string& path,
                             const ModelVersions& before) const {
  absl::Status refusal;
  if (!IsUtf8(name)) {
    refusal = absl::InvalidArgumentError("The name of the folder is not UTF-8.");
  } else if (built_in_.contains(name)) {
    refusal = absl::InvalidArgumentError(absl::StrCat(name, " is the name of a built-in model."));
  } else {
    return ReadModelFolder(name, path, limits_, before);
  }
  return {.versions = {}, .errors = {{0, {absl::StrCat(path, "/config.pbtxt"), refusal}}}};
}

absl::Status ModelTable::Load() {
  ASSIGN_OR_RETURN(const auto folders, FindFolders());
  Models before;
  {
    const absl::MutexLock lock(&mutex_);
    before = configured_;
  }
  // What is served stays, whatever its name and those of new models.
  size_t room = kMostModels;
  for (const auto& [name, path] : folders) {
    if (const auto served = before.find(name); served != before.end()) {
      room -= served->second.size();
    }
  }
  Models models;
  Errors errors;
  uint64_t invalid = 0;
  for (const auto& [name, path] : folders) {
    const auto previous = before.find(name);
    const ModelVersions none;
    const ModelVersions& served = previous == before.end() ? none : previous->second;
    ModelFolder folder = Read(name, path, served);
    LimitVersions(served, room, folder);
    invalid += folder.errors.size();
    const std::string shown = IsUtf8(name) ? name : absl::CEscape(name);
    for (const auto& [version, error] : folder.errors) {
      errors[shown].emplace(version, std::string(error.status.message()));
      LogLine(LogLevel::kWarning, "model")
          .Add("model", shown)
          .Add("file", error.file.empty() ? path : error.file)
          .Add("field", FieldOf(error.status).value_or(""))
          .Add("error", error.status.message());
    }
    if (!folder.versions.empty()) models.emplace(name, std::move(folder.versions));
  }
  uint64_t count = 0;
  for (const auto& [name, versions] : models) count += versions.size();
  LogLine(LogLevel::kInfo, "models")
      .Add("repository", repository_)
      .Add("models", count)
      .Add("invalid", invalid);
  const absl::MutexLock lock(&mutex_);
  configured_ = std::move(models);
  errors_ = std::move(errors);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Model>> ModelTable::Find(absl::string_view name,
                                                              absl::string_view version) const {
  uint64_t number = 0;  // of no version
  const bool is_number = absl::SimpleAtoi(version, &number) && absl::StrCat(number) == version;
  if (!is_number) number = 0;
  ModelVersions versions;
  std::string reason;
  if (const auto found = built_in_.find(name); found != built_in_.end()) {
    versions = found->second;
  } else {
    const absl::MutexLock lock(&mutex_);
    const auto configured = configured_.find(name);
    if (configured != configured_.end()) versions = configured->second;
    if (const auto errors = errors_.find(name); errors != errors_.end()) {
      const auto own = errors->second.find(number);
      reason = own == errors->second.end() ? errors->second.rbegin()->second : own->second;
    }
  }
  if (versions.empty()) {
    const std::string sentence =
        reason.empty() ? absl::StrCat("There is no model \"", Excerpt(name),
                                      "\"; RepositoryIndex and ListModels list the models.")
                       : absl::StrCat("The model ", Excerpt(name), " is not served: ", reason);
    return WithField(absl::NotFoundError(sentence), "model_name");
  }
  if (version.empty()) return versions.rbegin()->second;
  if (const auto found = versions.find(number); found != versions.end()) return found->second;
  return WithField(absl::NotFoundError(absl::StrCat(
                       "The model ", name, " has the version", versions.size() > 1 ? "s " : " ",
                       ListOf(versions), ", not \"", Excerpt(version), "\".",
                       reason.empty() ? "" : absl::StrCat(" ", reason))),
                   "model_version");
}

std::vector<std::shared_ptr<const Model>> ModelTable::VersionsOf(absl::string_view name) const {
  std::vector<std::shared_ptr<const Model>> list;
  const absl::MutexLock lock(&mutex_);
  for (const Models* const models : {&built_in_, &configured_}) {
    const auto found = models->find(name);
    if (found == models->end()) continue;
    for (const auto& [version, model] : found->second) list.push_back(model);
  }
  return list;
}

std::vector<std::shared_ptr<const Model>> ModelTable::All() const {
  Models all = built_in_;
  {
    const absl::MutexLock lock(&mutex_);
    all.insert(configured_.begin(), configured_.end());
  }
  std::vector<std::shared_ptr<const Model>> list;
  for (const auto& [name, versions] : all) {
    for (const auto& [version, model] : versions) list.push_back(model);
  }
  return list;
}

std::vector<IndexEntry> ModelTable::Index() const {
  std::map<std::string, std::map<uint64_t, IndexEntry>> index;
  for (const std::shared_ptr<const Model>& model : All()) {
    auto& versions = index[model->name];
    uint64_t number = 0;
    if (absl::SimpleAtoi(model->version, &number)) {
      versions[number] = {model->name, model->version, true, ""};
    }
  }
  const absl::MutexLock lock(&mutex_);
  for (const auto& [name, errors] : errors_) {
    auto& versions = index[name];
    // A model with a built-in name is not that model.
    if (built_in_.contains(name)) continue;
    for (const auto& [version, error] : errors) {
      if (version == 0 && !versions.empty()) {  // all of them stay as they were
        for (auto& [number, entry] : versions) entry.reason = error;
        continue;
      }
      IndexEntry& entry = versions[version];
      entry.name = name;
      if (version != 0) entry.version = absl::StrCat(version);
      entry.reason = error;
    }
  }
  std::vector<IndexEntry> list;
  for (auto& [name, versions] : index) {
    for (auto& [version, entry] : versions) list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace opmill
