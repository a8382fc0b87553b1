// console_host PROGRAM [ARGUMENT...]: starts the program in a console, as a user would, and sends
// it Ctrl-C for each line of stdin; at the end of stdin it kills the program. Exits with the
// program's exit code. For Wine 8, which supports no other event than Ctrl-C, and, unlike Windows,
// sends it to a process group too.
#include <windows.h>

#include <cstdio>
#include <cstdlib>

namespace {

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "console_host: %s fails with %lu.\n", what, GetLastError());
  std::exit(127);
}

// The command line after the program's own name, unchanged.
wchar_t* Rest(wchar_t* line) {
  bool quoted = false;
  while (*line != L'\0' && (quoted || *line != L' ')) quoted ^= *line++ == L'"';
  while (*line == L' ') ++line;
  return line;
}

struct Child {
  HANDLE input;
  PROCESS_INFORMATION process;
};

DWORD WINAPI PassOn(void* argument) {
  const Child& child = *static_cast<Child*>(argument);
  char byte = 0;
  DWORD count = 0;
  while (ReadFile(child.input, &byte, 1, &count, nullptr) && count == 1) {
    if (byte == '\n' && !GenerateConsoleCtrlEvent(CTRL_C_EVENT, child.process.dwProcessId)) {
      Fail("GenerateConsoleCtrlEvent");
    }
  }
  TerminateProcess(child.process.hProcess, 126);
  return 0;
}

}  // namespace

int main() {
  STARTUPINFOW startup = {};
  startup.cb = sizeof(startup);
  startup.dwFlags = STARTF_USESTDHANDLES;
  startup.hStdOutput = GetStdHandle(STD_OUTPUT_HANDLE);
  startup.hStdError = GetStdHandle(STD_ERROR_HANDLE);
  Child child = {};
  child.input = GetStdHandle(STD_INPUT_HANDLE);
  FreeConsole();  // of Wine: none that takes events
  if (!AllocConsole()) Fail("AllocConsole");
  if (!CreateProcessW(nullptr, Rest(GetCommandLineW()), nullptr, nullptr, TRUE,
                      CREATE_NEW_PROCESS_GROUP, nullptr, nullptr, &startup, &child.process)) {
    Fail("CreateProcess");
  }
  CreateThread(nullptr, 0, &PassOn, &child, 0, nullptr);
  WaitForSingleObject(child.process.hProcess, INFINITE);
  DWORD exit_code = 0;
  GetExitCodeProcess(child.process.hProcess, &exit_code);
  ExitProcess(exit_code);
}
