/* vkd3d's static libraries are built against glibc 2.38, whose headers redirect these calls to
   C23 variants (which also read 0b101). Older C libraries lack them; vkd3d needs none of it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

long __isoc23_strtol(const char* text, char** end, int base) { return strtol(text, end, base); }

unsigned long __isoc23_strtoul(const char* text, char** end, int base) {
  return strtoul(text, end, base);
}

int __isoc23_sscanf(const char* text, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int count = vsscanf(text, format, arguments);
  va_end(arguments);
  return count;
}
