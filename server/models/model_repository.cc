#include "server/models/model_repository.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/utf8.h"
#include "kernels/base/utf8_path.h"
#include "server/observe/log.h"
#include "server/status/retry_delay.h"

namespace opmill {
namespace {

constexpr size_t kMostModels = 1024;
constexpr size_t kMostNameBytes = 255;
constexpr uint32_t kMostPosted = 16;
constexpr absl::Duration kTurnRetryDelay = absl::Seconds(1);
constexpr absl::string_view kAllModels = "*";

// Hidden folders, and what a file system keeps at its root.
bool IsIgnored(absl::string_view name) {
  return absl::StartsWith(name, ".") || name == "lost+found";
}

// Names in messages are UTF-8.
std::string ShownName(const std::string& name) { return IsUtf8(name) ? name : absl::CEscape(name); }

// Takes versions away, the oldest of the new ones first, until there is room for the others.
void LimitVersions(const ModelVersions& before, size_t served, ModelFolder& folder) {
  size_t added = 0;
  for (const auto& [version, model] : folder.versions) added += before.contains(version) ? 0 : 1;
  for (auto at = folder.versions.begin(); served + added > kMostModels;) {
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
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelRepository>> ModelRepository::Open(
    const RepositoryOptions& options, const onnx::ModelLimits& limits, const CompileLimit& limit,
    ModelTable& table, Prepare prepare) {
  std::error_code error;
  if (!options.folder.empty() && !std::filesystem::is_directory(PathOf(options.folder), error)) {
    return absl::NotFoundError(
        absl::StrCat("--model_repository is \"", options.folder, "\", which is not a folder."));
  }
  std::unique_ptr<ModelRepository> repository(
      new ModelRepository(options, limits, limit, table, std::move(prepare)));
  if (!options.folder.empty()) RETURN_IF_ERROR(repository->Start());
  return repository;
}

ModelRepository::ModelRepository(const RepositoryOptions& options, const onnx::ModelLimits& limits,
                                 const CompileLimit& limit, ModelTable& table, Prepare prepare)
    : options_(options),
      limits_(limits),
      limit_(limit),
      table_(table),
      prepare_(std::move(prepare)) {}

absl::Status ModelRepository::Start() {
  if (options_.control == ModelControl::kExplicit) {
    RETURN_IF_ERROR(FindFolders().status());
    LoadFirst();
    loader_ = std::make_unique<WorkerPool>(1);
    const auto names = [this] {
      const auto folders = FindFolders();
      return folders.ok() ? absl::StrJoin(*folders, "\n", absl::PairFormatter("\n")) : "";
    };
    watched_ = std::make_unique<WatchedFiles>(names, [this] { ListFolders(); });
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(ReadAll());
  if (options_.control == ModelControl::kNone) return absl::OkStatus();
  const auto read = [this] {
    const absl::Status all = ReadAll();
    if (!all.ok()) {
      LogLine(LogLevel::kWarning, "models").Add("repository", options_.folder).Add(all);
    }
  };
  watched_ = std::make_unique<WatchedFiles>([this] { return Fingerprint(); }, read);
  return absl::OkStatus();
}

std::string ModelRepository::Fingerprint() const {
  std::string fingerprint;
  const auto folders = FindFolders();
  if (!folders.ok()) return fingerprint;
  for (const auto& [name, path] : *folders) fingerprint += StampOfModelFolder(path);
  return fingerprint;
}

absl::StatusOr<std::map<std::string, std::string>> ModelRepository::FindFolders() const {
  std::map<std::string, std::string> folders;
  size_t entries = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(PathOf(options_.folder), error), end;
       !error && entry != end; entry.increment(error)) {
    if (++entries > kMostFolderEntries) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "--model_repository is \"", options_.folder, "\", which has more than ",
          kMostFolderEntries, " entries; it must be a folder with one folder for each model."));
    }
    const std::string name = Utf8Name(entry->path().filename());
    std::error_code ignored;
    if (IsIgnored(name) || !entry->is_directory(ignored)) continue;
    folders[name] = Utf8Name(entry->path());
  }
  return folders;
}

absl::Status ModelRepository::ReadAll() {
  ASSIGN_OR_RETURN(const auto folders, FindFolders());
  std::set<std::string> names;
  for (const auto& [name, path] : folders) names.insert(ShownName(name));
  table_.KeepOnly(names);
  uint64_t invalid = 0;
  for (const auto& [name, path] : folders) {
    if (limit_.background().stop_requested()) return CompileLimit::ServerStops();
    const ModelFolder folder = Read(name, path, {});
    invalid += folder.errors.size();
    table_.Set(ShownName(name), folder);
  }
  LogLine(LogLevel::kInfo, "models")
      .Add("repository", options_.folder)
      .Add("models", uint64_t{table_.CountServed()})
      .Add("invalid", invalid);
  return absl::OkStatus();
}

// A model that cannot be loaded does not keep the server from serving the others.
void ModelRepository::LoadFirst() {
  std::vector<std::string> names = options_.load;
  if (absl::c_linear_search(names, kAllModels)) {
    names.clear();
    const auto folders = FindFolders();
    for (const auto& [name, path] : folders.value_or(std::map<std::string, std::string>())) {
      names.push_back(name);
    }
  }
  for (const std::string& name : names) Load(name, {}).IgnoreError();  // logged
  ListFolders();
}

void ModelRepository::ListFolders() {
  const auto folders = FindFolders();
  if (!folders.ok()) return;
  std::set<std::string> names;
  for (const auto& [name, path] : *folders) names.insert(ShownName(name));
  table_.ListFolders(names);
}

absl::Status ModelRepository::CheckControl() const {
  if (options_.folder.empty()) {
    return absl::FailedPreconditionError(
        "The server has no model repository; start it with --model_repository=FOLDER and "
        "--model_control_mode=explicit to load and unload models.");
  }
  if (options_.control == ModelControl::kExplicit) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "Models are loaded and unloaded by calls only with --model_control_mode=explicit; ",
      options_.control == ModelControl::kPoll
          ? "this server reads the folder --model_repository again when it changes (poll)."
          : "this server has read the folder --model_repository once (none)."));
}

absl::Status ModelRepository::Post(std::function<void()> work) {
  if (++posted_ > kMostPosted) {
    --posted_;
    return WithRetryDelay(absl::ResourceExhaustedError(absl::StrCat(
                              "The server has ", kMostPosted,
                              " loads and unloads of models waiting; that is the limit.")),
                          kTurnRetryDelay);
  }
  loader_->Post([this, work = std::move(work)] {
    --posted_;
    work();
  });
  return absl::OkStatus();
}

absl::Status ModelRepository::CheckName(const std::string& name) const {
  const auto refuse = [&](absl::string_view why) {
    return InvalidField("model_name", absl::StrCat("model_name (\"", Excerpt(name), "\") ", why));
  };
  if (name.empty() || IsIgnored(name) || name.size() > kMostNameBytes || !IsUtf8(name) ||
      name.find_first_of("/\\:\0", 0, 4) != std::string::npos) {
    return refuse("cannot be the name of a folder in the model repository.");
  }
  if (table_.IsBuiltIn(name)) {
    return refuse("is a built-in model, which is neither loaded nor unloaded.");
  }
  return absl::OkStatus();
}

absl::Status ModelRepository::Load(const std::string& name, const ModelOverride& override_with) {
  const auto load = [&]() -> absl::Status {
    RETURN_IF_ERROR(CheckName(name));
    if (limit_.background().stop_requested()) return CompileLimit::ServerStops();
    const std::filesystem::path path = PathOf(options_.folder) / PathOf(name);
    std::error_code error;
    if (override_with.files.empty() && !std::filesystem::is_directory(path, error)) {
      return WithField(absl::NotFoundError(absl::StrCat("There is no folder \"", Excerpt(name),
                                                        "\" in the model repository.")),
                       "model_name");
    }
    ModelFolder folder = Read(name, Utf8Name(path), override_with);
    if (!folder.errors.empty()) folder.versions = table_.Served(name);
    table_.Set(name, folder);
    if (folder.errors.empty()) return absl::OkStatus();
    const absl::Status& why = folder.errors.begin()->second.status;
    absl::Status status(
        why.code(), absl::StrCat("The model ", Excerpt(name), " is not loaded: ", why.message()));
    const std::optional<std::string> field = FieldOf(why);
    return field.has_value() ? WithField(std::move(status), *field) : status;
  };
  const absl::Status loaded = load();
  ListFolders();
  LogLine(loaded.ok() ? LogLevel::kInfo : LogLevel::kWarning, "model_load")
      .Add("model", name)
      .Add(loaded);
  return loaded;
}

absl::Status ModelRepository::Unload(const std::string& name) {
  RETURN_IF_ERROR(CheckName(name));
  RETURN_IF_ERROR(table_.Unload(name));
  ListFolders();
  LogLine(LogLevel::kInfo, "model_unload").Add("model", name);
  return absl::OkStatus();
}

ModelFolder ModelRepository::Read(const std::string& name, const std::string& path,
                                  const ModelOverride& override_with) const {
  const std::string shown = ShownName(name);
  ModelFolder folder;
  absl::Status refusal;
  if (!IsUtf8(name)) {
    refusal = absl::InvalidArgumentError("The name of the folder is not UTF-8.");
  } else if (table_.IsBuiltIn(name)) {
    refusal = absl::InvalidArgumentError(absl::StrCat(name, " is the name of a built-in model."));
  }
  if (refusal.ok()) {
    table_.SetLoading(name);
    const ModelVersions before = table_.Served(name);
    folder = ReadModelFolder(name, path, limits_, limit_, before, override_with);
    LimitVersions(before, table_.CountServed(), folder);
    PrepareNew(path, before, folder);
  } else {
    folder.errors.emplace(0, ModelError{ConfigPath(path), refusal});
  }
  for (const auto& [version, error] : folder.errors) {
    LogLine(LogLevel::kWarning, "model")
        .Add("model", shown)
        .Add("file", error.file.empty() ? path : error.file)
        .Add("field", FieldOf(error.status).value_or(""))
        .Add("error", error.status.message());
  }
  return folder;
}

void ModelRepository::PrepareNew(const std::string& path, const ModelVersions& before,
                                 ModelFolder& folder) const {
  for (auto at = folder.versions.begin(); at != folder.versions.end();) {
    auto& [version, model] = *at;
    const auto served = before.find(version);
    const absl::Status prepared =
        served != before.end() && served->second == model ? absl::OkStatus() : prepare_(model);
    if (prepared.ok()) {
      ++at;
      continue;
    }
    folder.errors.emplace(version, ModelError{ConfigPath(path), prepared});
    if (served == before.end()) {
      at = folder.versions.erase(at);
    } else {
      (at++)->second = served->second;
    }
  }
}

}  // namespace opmill
