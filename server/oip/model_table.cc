#include "server/oip/model_table.h"

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/utf8_path.h"
#include "server/observe/log.h"
#include "server/oip/model_config.h"

namespace opmill::oip {
namespace {

constexpr size_t kMostConfigBytes = size_t{64} << 10;
constexpr size_t kMostModels = 1024;

std::string Utf8(const std::filesystem::path& path) {
  const std::u8string text = path.generic_u8string();
  return std::string(text.begin(), text.end());
}

std::vector<std::string> Values(const std::map<std::string, std::string>& map) {
  std::vector<std::string> values;
  for (const auto& [key, value] : map) values.push_back(value);
  return values;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelTable>> ModelTable::Create(const std::string& repository) {
  std::error_code error;
  if (!repository.empty() && !std::filesystem::is_directory(PathOf(repository), error)) {
    return absl::NotFoundError(
        absl::StrCat("--model_repository is \"", repository, "\", which is not a folder."));
  }
  return std::unique_ptr<ModelTable>(new ModelTable(repository));
}

ModelTable::ModelTable(const std::string& repository) : repository_(repository) {
  for (const std::shared_ptr<const Model>& model : BuiltInModels()) {
    built_in_.emplace(model->name, model);
  }
  if (repository_.empty()) return;
  Load();
  watched_ =
      std::make_unique<WatchedFiles>([this] { return Values(ConfigPaths()); }, [this] { Load(); });
}

std::map<std::string, std::string> ModelTable::ConfigPaths() const {
  std::map<std::string, std::string> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator folder(PathOf(repository_), error), end;
       !error && folder != end; folder.increment(error)) {
    const std::filesystem::path config = folder->path() / "config.pbtxt";
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(config, ignored)) continue;
    paths.emplace(Utf8(folder->path().filename()), Utf8(config));
    if (paths.size() == kMostModels) break;
  }
  return paths;
}

absl::StatusOr<std::shared_ptr<Model>> ModelTable::Read(const std::string& name,
                                                        const std::string& path) const {
  if (built_in_.contains(name)) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is the name of a built-in model."));
  }
  const std::optional<std::string> text = ReadAtMost(path, kMostConfigBytes);
  if (!text.has_value()) return absl::NotFoundError("The file cannot be read.");
  if (text->size() > kMostConfigBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("The file has more than ", kMostConfigBytes, " bytes."));
  }
  return ParseModelConfig(name, *text);
}

void ModelTable::Load() {
  Models before;
  {
    const absl::MutexLock lock(&mutex_);
    before = configured_;
  }
  Models models;
  std::map<std::string, std::string> errors;
  for (const auto& [name, path] : ConfigPaths()) {
    const auto previous = before.find(name);
    absl::StatusOr<std::shared_ptr<Model>> model = Read(name, path);
    if (model.ok()) {
      if (previous != before.end()) (*model)->statistics = previous->second->statistics;
      models.emplace(name, *std::move(model));
      continue;
    }
    if (previous != before.end()) models.insert(*previous);
    errors.emplace(name, std::string(model.status().message()));
    LogLine(LogLevel::kWarning, "model")
        .Add("model", name)
        .Add("file", path)
        .Add("field", FieldOf(model.status()).value_or(""))
        .Add("error", errors[name]);
  }
  LogLine(LogLevel::kInfo, "models")
      .Add("repository", repository_)
      .Add("models", uint64_t{models.size()})
      .Add("invalid", uint64_t{errors.size()});
  const absl::MutexLock lock(&mutex_);
  configured_ = std::move(models);
  errors_ = std::move(errors);
}

absl::StatusOr<std::shared_ptr<const Model>> ModelTable::Find(absl::string_view name,
                                                              absl::string_view version) const {
  std::shared_ptr<const Model> model;
  if (const auto found = built_in_.find(name); found != built_in_.end()) {
    model = found->second;
  } else {
    const absl::MutexLock lock(&mutex_);
    const auto configured = configured_.find(name);
    if (configured != configured_.end()) model = configured->second;
  }
  if (model == nullptr) {
    return WithField(absl::NotFoundError(absl::StrCat("There is no model \"", Excerpt(name),
                                                      "\"; RepositoryIndex lists the models.")),
                     "model_name");
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

}  // namespace opmill::oip
