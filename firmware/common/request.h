/* One request line of the protocol, read without memory of its own. */
#ifndef SLUICE_REQUEST_H
#define SLUICE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#define ID_CHARS_MAX 32
#define WORD_CHARS_MAX 24

struct request {
  char id[ID_CHARS_MAX + 1];
  char command[WORD_CHARS_MAX + 1];
  /* `args.pull`; empty: there is none. */
  char pull[WORD_CHARS_MAX + 1];
  /* `args.pin` and `args.value`. */
  int32_t pin;
  int32_t value;
  bool has_pin;
  bool has_value;
};

/*
 * False: the line is no request, or one whose id could not be given back unchanged; then nothing may be answered. Members
 * nobody knows are skipped.
 */
bool read_request(const char *line, struct request *request);

#endif
