#include <windows.h>
// clang-format off: it needs windows.h before it
#include <shellapi.h>
#include <stdlib.h>
// clang-format on

#include "client/cli/platform.h"

namespace opmill {
namespace {

// `wide` ends with a zero.
std::string Utf8(const wchar_t* wide) {
  const int size = WideCharToMultiByte(CP_UTF8, 0, wide, -1, nullptr, 0, nullptr, nullptr);
  std::string text(static_cast<size_t>(size), '\0');
  WideCharToMultiByte(CP_UTF8, 0, wide, -1, text.data(), size, nullptr, nullptr);
  text.pop_back();  // the zero
  return text;
}

}  // namespace

// argv is in the code page of the day; the wide command line loses nothing.
std::vector<std::string> Arguments(int, char**) {
  std::vector<std::string> arguments;
  int count = 0;
  wchar_t** const wide = CommandLineToArgvW(GetCommandLineW(), &count);
  for (int i = 1; wide != nullptr && i < count; ++i) arguments.push_back(Utf8(wide[i]));
  LocalFree(wide);
  return arguments;
}

std::optional<std::string> Environment(const char* name) {
  const std::wstring wide_name(name, name + std::char_traits<char>::length(name));
  const DWORD size = GetEnvironmentVariableW(wide_name.c_str(), nullptr, 0);
  if (size == 0) return std::nullopt;
  std::wstring value(size, L'\0');
  GetEnvironmentVariableW(wide_name.c_str(), value.data(), size);
  return Utf8(value.c_str());
}

// gRPC reads the C library's copy, as well as this one.
void SetDefaultEnvironment(const char* name, const char* value) {
  if (!Environment(name)) _putenv_s(name, value);
}

// From now on one that draws. A file or a pipe has no mode.
bool StderrIsTerminal() {
  const HANDLE console = GetStdHandle(STD_ERROR_HANDLE);
  DWORD mode = 0;
  return GetConsoleMode(console, &mode) != 0 &&
         SetConsoleMode(console, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING) != 0;
}

}  // namespace opmill
