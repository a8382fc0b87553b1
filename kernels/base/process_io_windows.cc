#include <windows.h>

#include "kernels/base/process_io.h"
// clang-format off: it needs windows.h before it
#include <shellapi.h>
// clang-format on

#include <fcntl.h>
#include <io.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cwchar>

#include "absl/strings/str_cat.h"
#include "kernels/base/utf16.h"

namespace opmill {

void WriteUtf8ToConsole() { SetConsoleOutputCP(CP_UTF8); }

// argv is in the current code page; the wide command line is lossless.
std::vector<std::string> Arguments(int, char**) {
  std::vector<std::string> arguments;
  int count = 0;
  wchar_t** const wide = CommandLineToArgvW(GetCommandLineW(), &count);
  for (int i = 1; wide != nullptr && i < count; ++i) arguments.push_back(Utf8(wide[i]));
  LocalFree(wide);
  return arguments;
}

std::optional<std::string> Environment(const char* name) {
  const std::wstring wide_name = Utf16(name);
  SetLastError(ERROR_SUCCESS);
  const DWORD size = GetEnvironmentVariableW(wide_name.c_str(), nullptr, 0);
  if (size == 0) {
    if (GetLastError() == ERROR_ENVVAR_NOT_FOUND) return std::nullopt;
    return "";
  }
  std::wstring value(size, L'\0');
  GetEnvironmentVariableW(wide_name.c_str(), value.data(), size);
  return Utf8(value.c_str());
}

std::vector<std::string> EnvironmentNames() {
  std::vector<std::string> names;
  wchar_t* const variables = GetEnvironmentStringsW();
  for (const wchar_t* each = variables; each != nullptr && *each != 0; each += wcslen(each) + 1) {
    const std::string text = Utf8(each);
    names.push_back(text.substr(0, text.find('=', 1)));  // some names begin with =
  }
  FreeEnvironmentStringsW(variables);
  return names;
}

// Sets the copy of the C library, which gRPC reads, too.
void SetDefaultEnvironment(const char* name, const char* value) {
  if (!Environment(name)) _putenv_s(name, value);
}

void UseBytes(FILE* file) { _setmode(_fileno(file), _O_BINARY); }

// Also enables escape sequences. Files and pipes have no mode.
bool StderrIsTerminal() {
  const HANDLE console = GetStdHandle(STD_ERROR_HANDLE);
  DWORD mode = 0;
  return GetConsoleMode(console, &mode) != 0 &&
         SetConsoleMode(console, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING) != 0;
}

absl::StatusOr<FILE*> OpenForAppending(const std::string& path) {
  FILE* const file = _wfopen(Utf16(path).c_str(), L"a");
  if (file != nullptr) return file;
  return absl::ErrnoToStatus(errno, absl::StrCat(path, " cannot be opened for writing"));
}

absl::Status ReopenForAppending(FILE*, const std::string&) {
  return absl::UnimplementedError("An open file keeps its name on Windows.");
}

}  // namespace opmill
