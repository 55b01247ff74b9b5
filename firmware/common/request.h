/* Parses one request line of the protocol, without allocating memory. */
#ifndef SLUICE_REQUEST_H
#define SLUICE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#define ID_CHARS_MAX 32
#define WORD_CHARS_MAX 24

struct request {
  char id[ID_CHARS_MAX + 1];
  char command[WORD_CHARS_MAX + 1];
  /* `args.pull`, or empty. */
  char pull[WORD_CHARS_MAX + 1];
  /* `args.pin` and `args.value`. */
  int32_t pin;
  int32_t value;
  bool has_pin;
  bool has_value;
};

/*
 * Returns false when the line is not a request, or when its id could not be returned unchanged; the line must then not be
 * answered. Unknown members are skipped.
 */
bool read_request(const char *line, struct request *request);

#endif
