#include "server/models/inline_models.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kernels/base/errors.h"
#include "kernels/base/sha256.h"
#include "server/status/error_reason.h"
#include "server/status/retry_delay.h"

namespace opmill {
namespace {

constexpr size_t kDigits = 12;  // of the name of a model
// A file is copied, parsed, and its weights become constants of a program.
constexpr uint64_t kBytesPerFileByte = 3;

uint64_t BytesOf(const Model& model, uint64_t file_bytes) {
  return file_bytes + model.graph->memory_bytes();
}

}  // namespace

// The memory that reading a file takes.
class InlineModels::Reading {
 public:
  explicit Reading(InlineModels& models) : models_(models) {}
  ~Reading() {
    const absl::MutexLock lock(&models_.mutex_);
    models_.reading_bytes_ -= bytes_;
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  // Drops models until all of `bytes` fit.
  absl::Status Take(uint64_t bytes) {
    const absl::MutexLock lock(&models_.mutex_);
    if (bytes <= bytes_) return absl::OkStatus();
    RETURN_IF_ERROR(models_.MakeRoom(bytes, bytes - bytes_));
    models_.reading_bytes_ += bytes - bytes_;
    bytes_ = bytes;
    return absl::OkStatus();
  }

 private:
  InlineModels& models_;
  uint64_t bytes_ = 0;
};

absl::StatusOr<std::shared_ptr<const Model>> InlineModels::Find(absl::string_view sha256) {
  if (limits_.models == 0) {
    return absl::UnimplementedError(
        "This server takes only models of its repository (--max_inline_models is 0).");
  }
  const absl::MutexLock lock(&mutex_);
  const auto found = FindKept(sha256);
  if (found == kept_.end()) {
    return WithReason(absl::NotFoundError(absl::StrCat(
                          "The server has no model with the SHA-256 ", sha256.substr(0, kDigits),
                          "...; send the request again with its file in model_file.")),
                      "MODEL_FILE_NEEDED");
  }
  kept_.splice(kept_.begin(), kept_, found);
  std::shared_ptr<const Model> model = kept_.front().model;
  // Programs that were made since may have taken more.
  while (kept_.size() > 1 && BytesInUse() > limits_.bytes) DropLast();
  return model;
}

absl::StatusOr<std::shared_ptr<const Model>> InlineModels::Read(const std::string& sha256,
                                                                const Payload& file) {
  if (absl::StatusOr<std::shared_ptr<const Model>> found = Find(sha256);
      found.ok() || !absl::IsNotFound(found.status())) {
    return found;
  }
  Reading reading(*this);
  RETURN_IF_ERROR(reading.Take(kBytesPerFileByte * file.size()));
  std::string bytes(file.size(), '\0');
  file.CopyTo(reinterpret_cast<std::byte*>(bytes.data()));
  if (const std::string actual = Sha256Hex(bytes); actual != sha256) {
    return absl::InvalidArgumentError(absl::StrCat("model_file has ", bytes.size(),
                                                   " bytes with the SHA-256 ", actual, ", not ",
                                                   sha256, ", the model.sha256."));
  }
  onnx::ModelLimits each = limits_.each;
  each.read.memory_bytes = std::min(each.read.memory_bytes, limits_.bytes);
  each.constant_bytes = std::min(each.constant_bytes, limits_.bytes);
  each.kept_bytes = limits_.bytes;
  ASSIGN_OR_RETURN(std::shared_ptr<const onnx::Model> graph, onnx::Model::Parse(bytes, each));
  std::shared_ptr<const Model> model =
      MakeGraphModel(absl::StrCat("sha256:", sha256.substr(0, kDigits)), "", std::move(graph));
  RETURN_IF_ERROR(reading.Take(BytesOf(*model, file.size())));
  const absl::MutexLock lock(&mutex_);
  ++counts_.reads;
  if (const auto twin = FindKept(sha256); twin != kept_.end())
    return twin->model;  // another caller's
  kept_.push_front({sha256, model, file.size()});
  if (kept_.size() > limits_.models) DropLast();
  return model;
}

std::list<InlineModels::Entry>::iterator InlineModels::FindKept(absl::string_view sha256) {
  return std::find_if(kept_.begin(), kept_.end(),
                      [&](const Entry& entry) { return entry.sha256 == sha256; });
}

absl::Status InlineModels::MakeRoom(uint64_t bytes, uint64_t more) {
  if (bytes > limits_.bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("The model takes ", bytes,
                                                     " bytes of memory; the limit for models that "
                                                     "callers send is ",
                                                     limits_.bytes,
                                                     " (max_inline_model_bytes). Put it into the "
                                                     "server's repository."));
  }
  while (!kept_.empty() && BytesInUse() + more > limits_.bytes) DropLast();
  if (BytesInUse() + more <= limits_.bytes) return absl::OkStatus();
  return WithRetryDelay(
      absl::ResourceExhaustedError(
          absl::StrCat("Models that callers have sent, and that are in use or being read, take ",
                       BytesInUse(), " bytes; ", more, " more exceed the limit (", limits_.bytes,
                       ", max_inline_model_bytes).")),
      kUsualRetryDelay);
}

void InlineModels::DropLast() {
  ++counts_.evictions;
  dropped_.push_back({kept_.back().model, kept_.back().file_bytes});
  kept_.pop_back();
  std::erase_if(dropped_, [](const Dropped& each) { return each.model.expired(); });
}

uint64_t InlineModels::BytesInUse() const {
  uint64_t bytes = reading_bytes_;
  for (const Entry& entry : kept_) bytes += BytesOf(*entry.model, entry.file_bytes);
  for (const Dropped& each : dropped_) {
    if (const auto model = each.model.lock()) bytes += BytesOf(*model, each.file_bytes);
  }
  return bytes;
}

std::vector<std::shared_ptr<const Model>> InlineModels::All() const {
  std::vector<std::shared_ptr<const Model>> models;
  const absl::MutexLock lock(&mutex_);
  for (const Entry& entry : kept_) models.push_back(entry.model);
  return models;
}

InlineModelCounts InlineModels::counts() const {
  const absl::MutexLock lock(&mutex_);
  InlineModelCounts counts = counts_;
  counts.models = kept_.size();
  counts.bytes = BytesInUse();
  return counts;
}

}  // namespace opmill
