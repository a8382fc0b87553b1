#include "server/network/listener.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace opmill {

absl::Status CannotListen(const std::vector<std::string>& addresses) {
  return absl::UnavailableError(absl::StrCat("The server cannot listen at ",
                                             absl::StrJoin(addresses, ", "),
                                             ": the address is not local, or is in use."));
}

}  // namespace opmill
