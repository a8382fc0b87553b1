// The models that callers can name.
#ifndef OPMILL_SERVER_OIP_MODEL_TABLE_H_
#define OPMILL_SERVER_OIP_MODEL_TABLE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/oip/model.h"

namespace opmill::oip {

// Thread-safe.
class ModelTable {
 public:
  ModelTable();

  // NotFound if there is no model with this name and version. An empty version is any.
  absl::StatusOr<std::shared_ptr<const Model>> Find(absl::string_view name,
                                                    absl::string_view version) const;
  // In the order of their names.
  std::vector<std::shared_ptr<const Model>> All() const;

 private:
  using Models = std::map<std::string, std::shared_ptr<const Model>, std::less<>>;

  Models built_in_;
};

}  // namespace opmill::oip

#endif  // OPMILL_SERVER_OIP_MODEL_TABLE_H_
