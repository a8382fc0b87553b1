#include "server/models/model_folder.h"

#include <filesystem>
#include <stop_token>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/errors.h"
#include "kernels/base/regular_file.h"
#include "kernels/base/sha256.h"
#include "kernels/base/utf8_path.h"
#include "server/access/watched_files.h"
#include "server/models/config_text.h"
#include "server/models/graph_config.h"
#include "server/models/model_config.h"
#include "server/observe/log.h"

namespace opmill {
namespace {

constexpr char kConfigName[] = "config.pbtxt";
constexpr size_t kMostConfigBytes = size_t{64} << 10;
constexpr size_t kMostBatchedPrograms = 48;  // those of requests, and those of joined runs
constexpr size_t kMostStampBytes = size_t{1} << 20;

std::string VersionPath(const std::string& path, uint64_t version) {
  return Utf8Name(PathOf(path) / absl::StrCat(version));
}

std::string FilePath(const std::string& path, uint64_t version, const std::string& file) {
  return Utf8Name(PathOf(VersionPath(path, version)) / PathOf(file));
}

std::string WarmUpPath(const std::string& path) { return Utf8Name(PathOf(path) / "warmup"); }

// The folders of versions, which are positive numbers, in ascending order.
std::vector<uint64_t> FindVersions(const std::string& path) {
  std::vector<uint64_t> versions;
  std::error_code error;
  size_t entries = 0;
  for (std::filesystem::directory_iterator entry(PathOf(path), error), end;
       !error && entry != end && ++entries <= kMostFolderEntries; entry.increment(error)) {
    const std::string name = Utf8Name(entry->path().filename());
    uint64_t version = 0;
    if (absl::SimpleAtoi(name, &version) && absl::StrCat(version) == name && version > 0) {
      versions.push_back(version);
    }
  }
  absl::c_sort(versions);
  return versions;
}

std::string StampOf(const std::filesystem::path& file) {
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(file, error);
  const auto written = std::filesystem::last_write_time(file, error).time_since_epoch().count();
  return absl::StrCat(Utf8Name(file), " ", size, " ", written, "\n");
}

// Of all files: a version may have others beside its model.
std::string StampOfFolder(const std::string& path) {
  std::vector<std::string> stamps;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(PathOf(path), error), end;
       !error && entry != end && stamps.size() < kMostFolderEntries; entry.increment(error)) {
    stamps.push_back(StampOf(entry->path()));
  }
  absl::c_sort(stamps);
  return absl::StrJoin(stamps, "");
}

class FolderReader {
 public:
  FolderReader(const std::string& name, const std::string& path, const onnx::ModelLimits& limits,
               const CompileLimit& limit, const ModelVersions& before,
               const ModelOverride& override_with)
      : name_(name),
        path_(path),
        limits_(limits),
        limit_(limit),
        before_(before),
        override_(override_with) {}

  absl::Status Read(ModelFolder& folder) {
    ASSIGN_OR_RETURN(const bool has_config, ReadConfig());
    ASSIGN_OR_RETURN(file_, FileNameOf(parsed_.config));
    std::vector<uint64_t> versions = VersionsWithFile();
    if (versions.empty()) return ReadOperator(has_config, folder);
    ASSIGN_OR_RETURN(versions, ChooseVersions(parsed_.config, versions));
    for (const uint64_t version : versions) ReadVersion(version, folder);
    return absl::OkStatus();
  }

 private:
  // False if there is none.
  absl::StatusOr<bool> ReadConfig() {
    if (override_.config.has_value()) {
      text_ = *override_.config;
      if (text_.size() > kMostConfigBytes) {
        return InvalidField("parameters.config",
                            absl::StrCat("parameters.config has ", text_.size(),
                                         " bytes, more than ", kMostConfigBytes, "."));
      }
      ASSIGN_OR_RETURN(parsed_, ParseJsonConfig(name_, text_));
      return true;
    }
    absl::StatusOr<std::string> text =
        ReadRegularFile(ConfigPath(path_), kMostConfigBytes, kConfigName);
    const bool has_config = !absl::IsNotFound(text.status());
    if (has_config) {
      ASSIGN_OR_RETURN(text_, std::move(text));
    }
    ASSIGN_OR_RETURN(parsed_, ParseConfig(name_, text_));
    return has_config;
  }

  std::vector<uint64_t> VersionsWithFile() const {
    std::vector<uint64_t> versions;
    for (const auto& [version, files] : override_.files) {
      if (files.contains(file_)) versions.push_back(version);
    }
    if (!override_.files.empty()) return versions;
    for (const uint64_t version : FindVersions(path_)) {
      std::error_code ignored;
      if (std::filesystem::exists(PathOf(FilePath(path_, version, file_)), ignored)) {
        versions.push_back(version);
      }
    }
    return versions;
  }

  // Null if the file is in the folder.
  const std::string* GivenFile(uint64_t version) const {
    if (override_.files.empty()) return nullptr;
    return &override_.files.at(version).at(file_);
  }

  absl::Status ReadOperator(bool has_config, ModelFolder& folder) {
    if (!override_.files.empty()) {
      return absl::NotFoundError(
          absl::StrCat("None of the files of the request is VERSION/", file_, "."));
    }
    if (!has_config || IsGraphConfig(parsed_.config)) {
      return absl::NotFoundError(absl::StrCat(
          "The folder has ", has_config ? "no " : absl::StrCat("neither ", kConfigName, " nor a "),
          "folder of a version with ", file_, "."));
    }
    ASSIGN_OR_RETURN(std::shared_ptr<Model> model, MakeOperatorModel(parsed_.config));
    if (!before_.empty()) model->statistics = before_.rbegin()->second->statistics;
    model->warm_up_folder = WarmUpPath(path_);
    LogWithoutEffect(*model);
    uint64_t version = 0;
    if (absl::SimpleAtoi(model->version, &version)) folder.versions.emplace(version, model);
    return absl::OkStatus();
  }

  void ReadVersion(uint64_t version, ModelFolder& folder) {
    const auto found = before_.find(version);
    const std::shared_ptr<const Model> before = found == before_.end() ? nullptr : found->second;
    const std::string* const given = GivenFile(version);
    const std::string stamp = given == nullptr ? StampOfFolder(VersionPath(path_, version)) +
                                                     StampOfFolder(WarmUpPath(path_))
                                               : absl::StrCat("given ", Sha256(*given));
    if (before != nullptr && before->files == stamp && before->config_text == text_) {
      folder.versions.emplace(version, before);
      return;
    }
    std::shared_ptr<const onnx::Model> graph;
    onnx::ModelLimits limits = limits_;
    limits.is_batched = parsed_.config.has_dynamic_batching();
    if (limits.is_batched) limits.programs = kMostBatchedPrograms;
    if (before != nullptr && before->files == stamp &&
        before->config.default_model_filename() == file_ &&
        before->config.has_dynamic_batching() == limits.is_batched) {
      graph = before->graph;
    } else {
      const LimitedProgram limited = {.model = absl::StrCat(name_, " version ", version)};
      auto loaded = limit_.Run(limited, [&](const std::stop_token& abandoned) {
        return given == nullptr
                   ? onnx::Model::Load(FilePath(path_, version, file_), limits, abandoned)
                   : onnx::Model::Parse(*given, limits, abandoned);
      });
      if (!loaded.ok()) {
        Keep(version, before, FilePath(path_, version, file_), loaded.status(), folder);
        return;
      }
      graph = *std::move(loaded);
    }
    std::shared_ptr<Model> model = MakeGraphModel(name_, absl::StrCat(version), std::move(graph));
    if (absl::Status status = Configure(parsed_.config, *model); !status.ok()) {
      Keep(version, before, ConfigPath(path_), std::move(status), folder);
      return;
    }
    model->files = stamp;
    if (given == nullptr) model->warm_up_folder = WarmUpPath(path_);
    model->config_text = text_;
    if (before != nullptr) model->statistics = before->statistics;
    LogWithoutEffect(*model);
    folder.versions.emplace(version, std::move(model));
  }

  static void Keep(uint64_t version, const std::shared_ptr<const Model>& before,
                   const std::string& file, absl::Status status, ModelFolder& folder) {
    if (before != nullptr) folder.versions.emplace(version, before);
    folder.errors.emplace(version, ModelError{file, std::move(status)});
  }

  void LogWithoutEffect(const Model& model) const {
    std::vector<std::string> fields = parsed_.without_effect;
    if (model.graph != nullptr && !parsed_.config.parameters().empty()) {
      fields.push_back("parameters");
    }
    if (fields.empty()) return;
    LogLine(LogLevel::kInfo, "model_config")
        .Add("model", name_)
        .Add("version", model.version)
        .Add("without_effect", absl::StrJoin(fields, ","));
  }

  const std::string& name_;
  const std::string& path_;
  const onnx::ModelLimits& limits_;
  const CompileLimit& limit_;
  const ModelVersions& before_;
  const ModelOverride& override_;
  std::string text_;
  ParsedConfig parsed_;
  std::string file_;
};

}  // namespace

ModelFolder ReadModelFolder(const std::string& name, const std::string& path,
                            const onnx::ModelLimits& limits, const CompileLimit& limit,
                            const ModelVersions& before, const ModelOverride& override_with) {
  ModelFolder folder;
  FolderReader reader(name, path, limits, limit, before, override_with);
  if (absl::Status status = reader.Read(folder); !status.ok()) {
    folder.versions = before;
    folder.errors.emplace(0, ModelError{ConfigPath(path), std::move(status)});
  } else if (folder.versions.empty()) {
    folder.versions = before;
  }
  return folder;
}

std::string ConfigPath(const std::string& path) { return Utf8Name(PathOf(path) / kConfigName); }

std::string StampOfModelFolder(const std::string& path) {
  std::string stamp = WatchedFiles::FingerprintOf({ConfigPath(path)});
  for (const uint64_t version : FindVersions(path)) {
    if (stamp.size() < kMostStampBytes) stamp += StampOfFolder(VersionPath(path, version));
  }
  stamp += StampOfFolder(WarmUpPath(path));
  return stamp;
}

}  // namespace opmill
