#include "server/api/model_finder.h"

#include <new>
#include <stop_token>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/sha256.h"
#include "server/api/model_messages.h"

namespace opmill {
namespace {

constexpr char kFileField[] = "model_file";

bool IsDigest(const std::string& text) {
  return text.size() == 2 * kSha256Bytes && absl::c_all_of(text, [](char c) {
           return absl::ascii_isdigit(static_cast<unsigned char>(c)) || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

absl::Status ModelFinder::Find(const v1::ModelDesc& desc, std::optional<OwnedPayload> file) {
  file_ = std::move(file);
  if (!desc.sha256().empty()) return FindByContent(desc);
  if (file_.has_value()) {
    return InvalidField(kFileField, "model_file is given, but model.sha256 is not.");
  }
  absl::StatusOr<std::shared_ptr<const Model>> model =
      FindModel(sources_.repository, desc.name(), desc.version());
  if (!model.ok()) return OfModel(model.status());
  model_ = *std::move(model);
  return absl::OkStatus();
}

absl::Status ModelFinder::FindByContent(const v1::ModelDesc& desc) {
  if (!desc.name().empty() || !desc.version().empty()) {
    return OfModel(InvalidField(
        "sha256", "model.sha256 is given beside a name or version; a model has one of both."));
  }
  if (!IsDigest(desc.sha256())) {
    return OfModel(
        InvalidField("sha256", absl::StrCat("model.sha256 (\"", Excerpt(desc.sha256()),
                                            "\") is not 64 hexadecimal digits in lower case.")));
  }
  absl::StatusOr<std::shared_ptr<const Model>> model = sources_.inline_models.Find(desc.sha256());
  if (model.ok()) {
    model_ = *std::move(model);
    return absl::OkStatus();
  }
  if (!absl::IsNotFound(model.status()) || !file_.has_value()) {
    return OfModel(WithField(model.status(), "sha256"));
  }
  sha256_ = desc.sha256();
  return absl::OkStatus();
}

void ModelFinder::Read(Executor& executor, RequestOrigin& origin, absl::Time deadline,
                       const Done& done) {
  const void* const id = file_->owner.get();
  const auto read = [models = &sources_.inline_models, sha256 = sha256_,
                     file = *std::move(file_)](const std::stop_token& abandoned) {
    try {
      return models->Read(sha256, file.bytes, abandoned);
    } catch (const std::bad_alloc&) {
      return absl::StatusOr<std::shared_ptr<const Model>>(
          absl::ResourceExhaustedError("The server has no memory for the model."));
    }
  };
  const auto found = [this, done](const absl::StatusOr<std::shared_ptr<const Model>>& model) {
    if (model.ok()) model_ = *model;
    const bool is_fault_of_file =
        absl::IsInvalidArgument(model.status()) || absl::IsUnimplemented(model.status());
    done(is_fault_of_file ? WithField(model.status(), kFileField) : model.status());
  };
  Await(
      [&] {
        return sources_.programs.Read(id, InlineModels::NameOf(sha256_), read,
                                      executor.AccountOf(origin), deadline, found);
      },
      done);
}

void ModelFinder::Await(Begin begin, const Done& done) {
  // Once the work has begun, its end may come on another thread, and delete this.
  ModelPrograms& programs = sources_.programs;
  const std::shared_ptr<PendingWork> pending = pending_;
  const absl::StatusOr<std::shared_ptr<ModelPrograms::Wait>> wait = begin();
  if (wait.ok()) {
    pending->Add(programs, *wait);
  } else {
    done(wait.status());
  }
}

}  // namespace opmill
