#include "server/models/model_table.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/regular_file.h"
#include "kernels/base/utf8.h"
#include "kernels/base/utf8_path.h"
#include "server/models/model_config.h"
#include "server/observe/log.h"

namespace opmill {
namespace {

constexpr char kConfigName[] = "config.pbtxt";
constexpr char kOnnxName[] = "model.onnx";
constexpr size_t kMostConfigBytes = size_t{64} << 10;
constexpr size_t kMostModels = 1024;
constexpr size_t kMostEntries = 4096;  // of the repository; looking at one takes microseconds

// Hidden folders, and what a file system keeps at its root.
bool IsIgnored(absl::string_view name) {
  return absl::StartsWith(name, ".") || name == "lost+found";
}

// The files with a model, by the versions that are the names of their folders.
std::map<uint64_t, std::string> FindVersions(const std::filesystem::path& folder) {
  std::map<uint64_t, std::string> versions;
  std::error_code error;
  size_t entries = 0;
  for (std::filesystem::directory_iterator entry(folder, error), end;
       !error && entry != end && ++entries <= kMostEntries; entry.increment(error)) {
    const std::string name = Utf8Name(entry->path().filename());
    uint64_t version = 0;
    std::error_code ignored;
    const std::filesystem::path file = entry->path() / kOnnxName;
    if (absl::SimpleAtoi(name, &version) && absl::StrCat(version) == name && version > 0 &&
        std::filesystem::exists(file, ignored)) {
      versions.emplace(version, Utf8Name(file));
    }
  }
  return versions;
}

// Changes with the file. Its content is not read: it may have gigabytes.
std::string StampOf(const std::string& path) {
  std::error_code error;
  const std::filesystem::path file = PathOf(path);
  const uint64_t size = std::filesystem::file_size(file, error);
  const auto written = std::filesystem::last_write_time(file, error).time_since_epoch().count();
  return absl::StrCat(path, " ", size, " ", written, "\n");
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
    built_in_.emplace(model->name, model);
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
  const Folders folders = FindFolders().value_or(Folders());
  std::vector<std::string> configs;
  std::string stamps;
  for (const auto& [name, files] : folders) {
    configs.push_back(files.config);
    for (const auto& [version, path] : files.onnx) stamps += StampOf(path);
  }
  return absl::StrCat(WatchedFiles::FingerprintOf(configs), stamps);
}

absl::StatusOr<ModelTable::Folders> ModelTable::FindFolders() const {
  Folders folders;
  size_t entries = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(PathOf(repository_), error), end;
       !error && entry != end; entry.increment(error)) {
    if (++entries > kMostEntries) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "--model_repository is \"", repository_, "\", which has more than ", kMostEntries,
          " entries; it must be a folder with one folder for each model."));
    }
    const std::string name = Utf8Name(entry->path().filename());
    std::error_code ignored;
    if (IsIgnored(name) || !entry->is_directory(ignored)) continue;
    folders[name] = {Utf8Name(entry->path() / kConfigName), FindVersions(entry->path())};
  }
  return folders;
}

absl::StatusOr<std::shared_ptr<const Model>> ModelTable::Read(
    const std::string& name, const Files& files, const std::shared_ptr<const Model>& before) const {
  if (!IsUtf8(name)) {
    return absl::InvalidArgumentError("The name of the folder is not UTF-8.");
  }
  if (built_in_.contains(name)) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is the name of a built-in model."));
  }
  if (!files.onnx.empty()) return ReadGraph(name, files, before);
  const absl::StatusOr<std::string> text =
      ReadRegularFile(files.config, kMostConfigBytes, kConfigName);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(absl::StrCat("The folder has neither ", kConfigName,
                                            " nor a folder of a version with ", kOnnxName, "."));
  }
  if (!text.ok()) return text.status();
  ASSIGN_OR_RETURN(std::shared_ptr<Model> model, ParseModelConfig(name, *text));
  if (before != nullptr) model->statistics = before->statistics;
  return model;
}

// The highest version, or that which the configuration chooses.
absl::StatusOr<std::shared_ptr<const Model>> ModelTable::ReadGraph(
    const std::string& name, const Files& files, const std::shared_ptr<const Model>& before) const {
  std::string chosen = absl::StrCat(files.onnx.rbegin()->first);
  const absl::StatusOr<std::string> text =
      ReadRegularFile(files.config, kMostConfigBytes, kConfigName);
  if (text.ok()) {
    ASSIGN_OR_RETURN(const std::string version, ParseGraphConfig(name, *text));
    if (!version.empty()) chosen = version;
  } else if (!absl::IsNotFound(text.status())) {
    return text.status();
  }
  uint64_t number = 0;
  const auto file = absl::SimpleAtoi(chosen, &number) ? files.onnx.find(number) : files.onnx.end();
  if (file == files.onnx.end()) {
    return InvalidField("version_policy.specific.versions",
                        absl::StrCat("There is no ", chosen, "/", kOnnxName, "."));
  }
  const std::string stamp = StampOf(file->second);
  if (before != nullptr && before->files == stamp) return before;
  ASSIGN_OR_RETURN(std::shared_ptr<const onnx::Model> graph,
                   onnx::Model::Load(file->second, limits_));
  std::shared_ptr<Model> model = MakeGraphModel(name, chosen, std::move(graph));
  model->files = stamp;
  if (before != nullptr) model->statistics = before->statistics;
  return model;
}

absl::Status ModelTable::Load() {
  ASSIGN_OR_RETURN(const Folders folders, FindFolders());
  Models before;
  {
    const absl::MutexLock lock(&mutex_);
    before = configured_;
  }
  // Models that are served stay, whatever their names and those of new ones.
  size_t room = kMostModels;
  for (const auto& [name, files] : folders) room -= before.count(name);
  Models models;
  std::map<std::string, std::string, std::less<>> errors;
  for (const auto& [name, files] : folders) {
    const auto previous = before.find(name);
    const bool is_new = previous == before.end();
    absl::StatusOr<std::shared_ptr<const Model>> model =
        Read(name, files, is_new ? nullptr : previous->second);
    if (model.ok() && is_new && room == 0) {
      model = absl::ResourceExhaustedError(
          absl::StrCat("The repository has more than ", kMostModels, " models."));
    }
    if (model.ok()) {
      if (is_new) --room;
      models.emplace(name, *std::move(model));
      continue;
    }
    if (!is_new) models.insert(*previous);
    const std::string shown = IsUtf8(name) ? name : absl::CEscape(name);
    errors.emplace(shown, std::string(model.status().message()));
    LogLine(LogLevel::kWarning, "model")
        .Add("model", shown)
        .Add("file", files.onnx.empty() ? files.config : files.onnx.rbegin()->second)
        .Add("field", FieldOf(model.status()).value_or(""))
        .Add("error", model.status().message());
  }
  LogLine(LogLevel::kInfo, "models")
      .Add("repository", repository_)
      .Add("models", uint64_t{models.size()})
      .Add("invalid", uint64_t{errors.size()});
  const absl::MutexLock lock(&mutex_);
  configured_ = std::move(models);
  errors_ = std::move(errors);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Model>> ModelTable::Find(absl::string_view name,
                                                              absl::string_view version) const {
  std::shared_ptr<const Model> model;
  std::string reason;
  if (const auto found = built_in_.find(name); found != built_in_.end()) {
    model = found->second;
  } else {
    const absl::MutexLock lock(&mutex_);
    const auto configured = configured_.find(name);
    if (configured != configured_.end()) model = configured->second;
    const auto error = errors_.find(name);
    if (error != errors_.end()) reason = error->second;
  }
  if (model == nullptr) {
    const std::string sentence =
        reason.empty() ? absl::StrCat("There is no model \"", Excerpt(name),
                                      "\"; RepositoryIndex lists the models.")
                       : absl::StrCat("The model ", Excerpt(name), " is not served: ", reason);
    return WithField(absl::NotFoundError(sentence), "model_name");
  }
  if (!version.empty() && version != model->version) {
    return WithField(
        absl::NotFoundError(absl::StrCat("The model ", name, " has the version ", model->version,
                                         ", not \"", Excerpt(version), "\".")),
        "model_version");
  }
  return model;
}

std::vector<std::shared_ptr<const Model>> ModelTable::All() const {
  Models all = built_in_;
  {
    const absl::MutexLock lock(&mutex_);
    all.insert(configured_.begin(), configured_.end());
  }
  std::vector<std::shared_ptr<const Model>> list;
  for (const auto& [name, model] : all) list.push_back(model);
  return list;
}

std::vector<IndexEntry> ModelTable::Index() const {
  std::map<std::string, IndexEntry> index;
  for (const std::shared_ptr<const Model>& model : All()) {
    index[model->name] = {model->name, model->version, true, ""};
  }
  const absl::MutexLock lock(&mutex_);
  for (const auto& [name, error] : errors_) {
    IndexEntry& entry = index[name];
    entry.name = name;
    // A model with a built-in name is not that model.
    if (!built_in_.contains(name)) entry.reason = error;
  }
  std::vector<IndexEntry> list;
  for (auto& [name, entry] : index) list.push_back(std::move(entry));
  return list;
}

}  // namespace opmill
