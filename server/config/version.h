#ifndef OPMILL_SERVER_CONFIG_VERSION_H_
#define OPMILL_SERVER_CONFIG_VERSION_H_

namespace opmill {

inline constexpr char kVersion[] = OPMILL_VERSION;

}  // namespace opmill

#endif  // OPMILL_SERVER_CONFIG_VERSION_H_
