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
// A file is copied, its graph has its weights, and they become constants of a program.
constexpr uint64_t kBytesPerFileByte = 3;

}  // namespace

InlineModels::InlineModels(const InlineModelLimits& limits) : limits_(limits) {
  limits_.each.budget->SetMakeRoom([this] { return DropOldest(); });
}

std::string InlineModels::NameOf(absl::string_view sha256) {
  return absl::StrCat("sha256:", sha256.substr(0, kDigits));
}

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
  return kept_.front().model;
}

absl::StatusOr<std::shared_ptr<const Model>> InlineModels::Read(const std::string& sha256,
                                                                const Payload& file,
                                                                const std::stop_token& abandoned) {
  if (absl::StatusOr<std::shared_ptr<const Model>> found = Find(sha256);
      found.ok() || !absl::IsNotFound(found.status())) {
    return found;
  }
  const uint64_t least = kBytesPerFileByte * file.size();
  if (const uint64_t limit = limits_.each.budget->limit(); least > limit) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "The model takes ", least, " bytes of memory; the limit for models that callers send is ",
        limit, " (max_inline_model_bytes). Put it into the server's repository."));
  }
  ByteShare reading(limits_.each.budget);
  absl::StatusOr<std::shared_ptr<const Model>> model = ReadNew(sha256, file, reading, abandoned);
  if (!absl::IsResourceExhausted(model.status())) return model;
  // A model that fails although there are no others is too large.
  const bool has_others = limits_.each.budget->used() > reading.bytes();
  return has_others ? WithRetryDelay(model.status(), kUsualRetryDelay) : model.status();
}

absl::StatusOr<std::shared_ptr<const Model>> InlineModels::ReadNew(
    const std::string& sha256, const Payload& file, ByteShare& reading,
    const std::stop_token& abandoned) {
  RETURN_IF_ERROR(reading.Grow(kBytesPerFileByte * file.size()));
  std::string bytes(file.size(), '\0');
  file.CopyTo(reinterpret_cast<std::byte*>(bytes.data()));
  if (const std::string actual = Sha256Hex(bytes); actual != sha256) {
    return absl::InvalidArgumentError(absl::StrCat("model_file has ", bytes.size(),
                                                   " bytes with the SHA-256 ", actual, ", not ",
                                                   sha256, ", the model.sha256."));
  }
  reading.ShrinkTo(file.size());  // the rest is for the model
  ASSIGN_OR_RETURN(std::shared_ptr<const onnx::Model> graph,
                   onnx::Model::Parse(bytes, limits_.each, abandoned));
  std::shared_ptr<const Model> model = MakeGraphModel(NameOf(sha256), "", std::move(graph));
  std::shared_ptr<const Model> dropped;  // freed without the lock
  const absl::MutexLock lock(&mutex_);
  ++counts_.reads;
  if (const auto twin = FindKept(sha256); twin != kept_.end()) {
    return twin->model;  // another caller's
  }
  kept_.push_front({sha256, model});
  if (kept_.size() > limits_.models) dropped = TakeOldest();
  return model;
}

std::list<InlineModels::Entry>::iterator InlineModels::FindKept(absl::string_view sha256) {
  return std::find_if(kept_.begin(), kept_.end(),
                      [&](const Entry& entry) { return entry.sha256 == sha256; });
}

bool InlineModels::DropOldest() {
  std::shared_ptr<const Model> dropped;  // freed without the lock
  const absl::MutexLock lock(&mutex_);
  if (kept_.empty()) return false;
  dropped = TakeOldest();
  return true;
}

std::shared_ptr<const Model> InlineModels::TakeOldest() {
  ++counts_.evictions;
  std::shared_ptr<const Model> oldest = std::move(kept_.back().model);
  kept_.pop_back();
  return oldest;
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
  counts.bytes = limits_.each.budget->used();
  return counts;
}

}  // namespace opmill
