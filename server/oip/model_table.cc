#include "server/oip/model_table.h"

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"

namespace opmill::oip {

ModelTable::ModelTable() {
  for (const std::shared_ptr<const Model>& model : BuiltInModels()) {
    built_in_.emplace(model->name, model);
  }
}

absl::StatusOr<std::shared_ptr<const Model>> ModelTable::Find(absl::string_view name,
                                                              absl::string_view version) const {
  const auto found = built_in_.find(name);
  if (found == built_in_.end()) {
    return WithField(absl::NotFoundError(absl::StrCat("There is no model \"", name,
                                                      "\"; RepositoryIndex lists the models.")),
                     "model_name");
  }
  if (!version.empty() && version != found->second->version) {
    return WithField(
        absl::NotFoundError(absl::StrCat("The model ", name, " has the version ",
                                         found->second->version, ", not \"", version, "\".")),
        "model_version");
  }
  return found->second;
}

std::vector<std::shared_ptr<const Model>> ModelTable::All() const {
  std::vector<std::shared_ptr<const Model>> all;
  for (const auto& [name, model] : built_in_) all.push_back(model);
  return all;
}

}  // namespace opmill::oip
