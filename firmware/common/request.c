#include "request.h"

/* The deepest nesting in a skipped value. */
#define DEPTH_MAX 6

static void skip_blanks(const char **at) {
  while (**at == ' ' || **at == '\t' || **at == '\r') (*at)++;
}

static bool take(const char **at, char wanted) {
  skip_blanks(at);
  if (**at != wanted) return false;
  (*at)++;
  return true;
}

/* Reads a text without escapes, of at most `max` characters. */
static bool take_text(const char **at, char *into, uint8_t max) {
  uint8_t length = 0;
  if (!take(at, '"')) return false;
  while (**at != '"') {
    if (**at == '\0' || **at == '\\' || (uint8_t)**at < ' ' || length >= max) return false;
    into[length++] = *(*at)++;
  }
  into[length] = '\0';
  (*at)++;
  return true;
}

static bool take_number(const char **at, int32_t *into) {
  int32_t number = 0;
  uint8_t digits = 0;
  bool negative = false;
  skip_blanks(at);
  if (**at == '-') {
    negative = true;
    (*at)++;
  }
  while (**at >= '0' && **at <= '9') {
    if (++digits > 9) return false;
    number = number * 10 + (*(*at)++ - '0');
  }
  /* Only whole numbers are accepted. */
  if (digits == 0 || **at == '.' || **at == 'e' || **at == 'E') return false;
  *into = negative ? -number : number;
  return true;
}

static bool skip_text(const char **at) {
  if (!take(at, '"')) return false;
  while (**at != '"') {
    if (**at == '\0' || (uint8_t)**at < ' ') return false;
    if (**at == '\\' && *++(*at) == '\0') return false;
    (*at)++;
  }
  (*at)++;
  return true;
}

/* Skips a value of any kind, without validating its contents. */
static bool skip_value(const char **at) {
  uint8_t depth = 0;
  do {
    skip_blanks(at);
    switch (**at) {
      case '\0':
        return false;
      case '"':
        if (!skip_text(at)) return false;
        break;
      case '{':
      case '[':
        if (++depth > DEPTH_MAX) return false;
        (*at)++;
        break;
      case '}':
      case ']':
        if (depth == 0) return false;
        depth--;
        (*at)++;
        break;
      case ',':
      case ':':
        if (depth == 0) return false;
        (*at)++;
        break;
      default:
        while (**at != '\0' && **at != ',' && **at != '}' && **at != ']' && **at != ':' && **at != '"' && **at != ' ' && **at != '\t' &&
               **at != '\r' && **at != '{' && **at != '[')
          (*at)++;
    }
  } while (depth > 0);
  return true;
}

static bool same(const char *a, const char *b) {
  while (*a != '\0' && *a == *b) {
    a++;
    b++;
  }
  return *a == *b;
}

/* Reads an argument. A value of the wrong kind counts as missing. */
static bool take_argument(const char **at, const char *name, struct request *request) {
  const char *start = *at;
  if (same(name, "pin")) {
    request->has_pin = take_number(at, &request->pin);
    if (request->has_pin) return true;
  } else if (same(name, "value")) {
    request->has_value = take_number(at, &request->value);
    if (request->has_value) return true;
  } else if (same(name, "pull")) {
    if (take_text(at, request->pull, WORD_CHARS_MAX)) return true;
  }
  *at = start;
  return skip_value(at);
}

static bool take_members(const char **at, struct request *request, bool arguments, bool *has_id) {
  char name[WORD_CHARS_MAX + 1];
  if (!take(at, '{')) return false;
  if (take(at, '}')) return true;
  do {
    if (!take_text(at, name, WORD_CHARS_MAX) || !take(at, ':')) return false;
    skip_blanks(at);
    if (arguments) {
      if (!take_argument(at, name, request)) return false;
    } else if (same(name, "id")) {
      if (!take_text(at, request->id, ID_CHARS_MAX)) return false;
      *has_id = true;
    } else if (same(name, "cmd")) {
      if (!take_text(at, request->command, WORD_CHARS_MAX)) return false;
    } else if (same(name, "args") && **at == '{') {
      if (!take_members(at, request, true, has_id)) return false;
    } else if (!skip_value(at)) {
      return false;
    }
  } while (take(at, ','));
  return take(at, '}');
}

bool read_request(const char *line, struct request *request) {
  const char *at = line;
  bool has_id = false;
  request->id[0] = request->command[0] = request->pull[0] = '\0';
  request->has_pin = request->has_value = false;
  if (!take_members(&at, request, false, &has_id)) return false;
  skip_blanks(&at);
  return *at == '\0' && has_id;
}
