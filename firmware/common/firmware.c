#include "firmware.h"

#include "request.h"

#define VERSION "1"
/* A longer line is dropped without an answer, because its id is not known. */
#define LINE_BYTES_MAX 256
#define PINS_MAX 32
#define WATCHED_MAX 16

/* Holds the bytes that arrive while the firmware sends: a request may arrive during an event, which is shorter. */
#define RECEIVED_MAX 64

/* After a change, a pin is ignored for this many polls, because contacts bounce. */
#define QUIET_POLLS 10

static char line[LINE_BYTES_MAX + 1];
static uint16_t line_length;
static bool is_line_too_long;

static char received[RECEIVED_MAX];
static uint8_t received_first;
static uint8_t received_count;
static bool has_gap;

static uint32_t watched;
static uint32_t levels;
static uint8_t quiet[PINS_MAX];
static int8_t pressed = -1;
static uint8_t button_quiet;

static void send_text(const char *text) {
  while (*text != '\0') board_send(*text++);
}

static void send_number(uint8_t number) {
  if (number >= 100) board_send('0' + number / 100);
  if (number >= 10) board_send('0' + number / 10 % 10);
  board_send('0' + number % 10);
}

static void send_event(const char *name, int16_t pin, uint8_t value) {
  send_text("{\"event\":\"");
  send_text(name);
  if (pin >= 0) send_number((uint8_t)pin);
  send_text("\",\"value\":");
  send_number(value);
  send_text("}\n");
}

static void begin_answer(const struct request *request, bool ok) {
  send_text("{\"id\":\"");
  send_text(request->id);
  send_text(ok ? "\",\"ok\":true,\"result\":\"" : "\",\"ok\":false,\"error\":\"");
}

static void end_answer(void) { send_text("\"}\n"); }

static void answer(const struct request *request, const char *result) {
  begin_answer(request, true);
  send_text(result);
  end_answer();
}

static void refuse(const struct request *request, const char *why) {
  begin_answer(request, false);
  send_text(why);
  end_answer();
}

static void answer_ping(const struct request *request) {
  begin_answer(request, true);
  send_text("{\\\"firmware\\\":\\\"sluice\\\",\\\"version\\\":" VERSION ",\\\"board\\\":\\\"");
  send_text(board_name());
  send_text("\\\"}");
  end_answer();
}

static void answer_capabilities(const struct request *request) {
  bool first = true;
  begin_answer(request, true);
  send_text("{\\\"gpio\\\":[");
  for (uint8_t pin = 0; pin < board_pins_end; pin++) {
    if (!board_has_pin(pin)) continue;
    if (!first) board_send(',');
    first = false;
    send_number(pin);
  }
  send_text("],\\\"led_pin\\\":");
  send_number(board_led());
  send_text(",\\\"board\\\":\\\"");
  send_text(board_name());
  send_text("\\\",\\\"firmware\\\":\\\"sluice " VERSION "\\\"}");
  end_answer();
}

static bool same(const char *a, const char *b) {
  while (*a != '\0' && *a == *b) {
    a++;
    b++;
  }
  return *a == *b;
}

static uint8_t watched_count(void) {
  uint8_t count = 0;
  for (uint32_t left = watched; left != 0; left &= left - 1) count++;
  return count;
}

static void set_level(uint8_t pin, uint8_t value) {
  const uint32_t bit = (uint32_t)1 << pin;
  levels = value ? levels | bit : levels & ~bit;
}

static void watch(const struct request *request, uint8_t pin) {
  const uint32_t bit = (uint32_t)1 << pin;
  enum pull pull = PULL_NONE;
  if (same(request->pull, "up")) pull = PULL_UP;
  else if (same(request->pull, "down")) pull = PULL_DOWN;
  else if (request->pull[0] != '\0') return refuse(request, "Invalid pull");
  if (!(watched & bit) && watched_count() >= WATCHED_MAX) return refuse(request, "Too many pins are watched");
  if (!board_make_input(pin, pull)) return refuse(request, "This board has no such pull");
  set_level(pin, board_read(pin));
  quiet[pin] = QUIET_POLLS;
  watched |= bit;
  answer(request, "done");
}

static void write(const struct request *request, uint8_t pin) {
  if (!request->has_value || (request->value != 0 && request->value != 1)) return refuse(request, "Invalid value");
  if (watched & ((uint32_t)1 << pin)) return refuse(request, "The pin is watched");
  board_write(pin, (uint8_t)request->value);
  answer(request, "done");
}

static void run_request(const struct request *request) {
  const bool has_pin = request->has_pin && board_has_pin(request->pin);
  const uint8_t pin = has_pin ? (uint8_t)request->pin : 0;
  const char *command = request->command;
  if (same(command, "ping")) return answer_ping(request);
  if (same(command, "capabilities")) return answer_capabilities(request);
  const bool reads = same(command, "gpio_read"), writes = same(command, "gpio_write");
  const bool watches = same(command, "watch"), forgets = same(command, "unwatch");
  if (!reads && !writes && !watches && !forgets) return refuse(request, "Unknown command");
  if (!has_pin) return refuse(request, "Invalid pin");
  if (reads) return answer(request, board_read(pin) ? "1" : "0");
  if (writes) return write(request, pin);
  if (watches) return watch(request, pin);
  watched &= ~((uint32_t)1 << pin);
  answer(request, "done");
}

void firmware_start(void) { pressed = board_button(); }

void firmware_receive(char byte) {
  if (received_count == RECEIVED_MAX) has_gap = true;
  if (!has_gap) received[(received_first + received_count++) % RECEIVED_MAX] = byte;
}

void firmware_mark_lost(void) { has_gap = true; }

static void take_byte(char byte) {
  if (byte != '\n') {
    /* A zero byte would end the line early. */
    if (line_length < LINE_BYTES_MAX && byte != '\0') line[line_length++] = byte;
    else is_line_too_long = true;
    return;
  }
  line[line_length] = '\0';
  struct request request;
  const bool is_whole = !is_line_too_long;
  line_length = 0;
  is_line_too_long = false;
  if (is_whole && read_request(line, &request)) run_request(&request);
}

void firmware_run(void) {
  while (received_count > 0) {
    const char byte = received[received_first];
    received_first = (received_first + 1) % RECEIVED_MAX;
    received_count--;
    take_byte(byte);
  }
  /* Without a missing digit, the request could name another pin. */
  if (has_gap) is_line_too_long = true;
  has_gap = false;
}

void firmware_poll(void) {
  for (uint8_t pin = 0; pin < board_pins_end; pin++) {
    const uint32_t bit = (uint32_t)1 << pin;
    if (!(watched & bit)) continue;
    if (quiet[pin] > 0) {
      quiet[pin]--;
      continue;
    }
    const uint8_t value = board_read(pin);
    if (value == ((levels & bit) != 0)) continue;
    set_level(pin, value);
    quiet[pin] = QUIET_POLLS;
    send_event("pin_", pin, value);
  }
  if (button_quiet > 0) {
    button_quiet--;
    return;
  }
  const int8_t now = board_button();
  if (now < 0 || now == pressed) return;
  pressed = now;
  button_quiet = QUIET_POLLS;
  send_event("button", -1, (uint8_t)now);
}
