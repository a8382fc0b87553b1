// A file that cmake/embed_files.cmake has made part of the executable.
#ifndef OPMILL_KERNELS_BASE_EMBEDDED_FILE_H_
#define OPMILL_KERNELS_BASE_EMBEDDED_FILE_H_

#include "absl/strings/string_view.h"

namespace opmill {

struct EmbeddedFile {
  absl::string_view path;  // below the folder that is embedded: "include/elements.hlsli"
  absl::string_view text;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_EMBEDDED_FILE_H_
