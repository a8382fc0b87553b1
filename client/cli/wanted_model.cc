#include "client/cli/wanted_model.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/command_line_operators.h"
#include "client/mapped_file.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/nearest.h"
#include "kernels/base/sha256.h"

namespace opmill {
namespace {

absl::StatusOr<WantedModel> SendFile(Client& client, const std::string& path) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  const absl::string_view bytes(reinterpret_cast<const char*>(file->bytes().data()),
                                file->bytes().size());
  WantedModel model = {.info = {}, .sha256 = Sha256Hex(bytes)};
  ASSIGN_OR_RETURN(model.info, client.DescribeModel(model.sha256, bytes));
  model.info.set_name(path);  // for messages
  return model;
}

// Of the newest version that is served, if `version` is empty.
absl::StatusOr<WantedModel> FindServedModel(Client& client, const std::string& name,
                                            const std::string& version) {
  absl::StatusOr<v1::ListModelsResponse> found = client.ListModels(name);
  if (absl::IsNotFound(found.status())) found = client.ListModels();  // for the nearest name
  ASSIGN_OR_RETURN(const v1::ListModelsResponse listed, std::move(found));
  std::vector<std::string> names = OperatorNames();
  const v1::ModelInfo* newest = nullptr;
  std::vector<std::string> versions;  // that are served
  for (const v1::ModelInfo& model : listed.models()) {
    names.push_back(model.name());
    if (model.name() != name) continue;
    if (model.ready() && model.version() == version) return WantedModel{model};
    if (model.ready()) versions.push_back(model.version());
    if (model.ready() || versions.empty()) newest = &model;
  }
  if (newest != nullptr && versions.empty()) {
    return absl::NotFoundError(
        absl::StrCat("The model ", name, " is not served: ", newest->reason()));
  }
  if (newest != nullptr && version.empty()) return WantedModel{*newest};
  if (newest != nullptr) {
    return absl::NotFoundError(
        absl::StrCat("The model ", name, " has the version", versions.size() > 1 ? "s " : " ",
                     absl::StrJoin(versions, ", "), ", not \"", Excerpt(version), "\"."));
  }
  return absl::NotFoundError(absl::StrCat("There is no operator or model \"", Excerpt(name),
                                          "\"; `opmill models` lists the models.",
                                          DidYouMean(name, names)));
}

}  // namespace

bool IsModelFile(absl::string_view name) { return absl::EndsWith(name, ".onnx"); }

absl::StatusOr<WantedModel> FindModel(Client& client, const std::string& name,
                                      const std::string& version) {
  return IsModelFile(name) ? SendFile(client, name) : FindServedModel(client, name, version);
}

}  // namespace opmill
