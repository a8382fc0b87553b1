#include "kernels/base/utf16.h"

#include <windows.h>

#include <cwchar>

namespace opmill {

std::wstring Utf16(absl::string_view text) {
  const int length = static_cast<int>(text.size());
  std::wstring wide(text.size(), L'\0');  // never more units than bytes
  const int units = MultiByteToWideChar(CP_UTF8, 0, text.data(), length, wide.data(), length);
  wide.resize(static_cast<size_t>(units));
  return wide;
}

std::string Utf8(const wchar_t* text) {
  const int units = static_cast<int>(std::wcslen(text));
  const int size = WideCharToMultiByte(CP_UTF8, 0, text, units, nullptr, 0, nullptr, nullptr);
  std::string bytes(static_cast<size_t>(size), '\0');
  WideCharToMultiByte(CP_UTF8, 0, text, units, bytes.data(), size, nullptr, nullptr);
  return bytes;
}

}  // namespace opmill
