// Texts within XML.
#ifndef OPMILL_CLIENT_CLI_MARKUP_H_
#define OPMILL_CLIENT_CLI_MARKUP_H_

#include <string>

#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace opmill {

// The text as the content of an element.
inline std::string EscapeMarkup(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_MARKUP_H_
