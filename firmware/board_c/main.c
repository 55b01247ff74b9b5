/*
 * board_c: STM32F401RE and STM32F411RE boards at 16 MHz that talk over the serial line of their debug probe (USART2). The pins
 * are 2 to 13 of the header; the blue button sends the event `button`.
 */
#include "firmware.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))

#define RCC_AHB1ENR REGISTER(0x40023830)
#define RCC_APB1ENR REGISTER(0x40023840)
#define USART2_SR REGISTER(0x40004400)
#define USART2_DR REGISTER(0x40004404)
#define USART2_BRR REGISTER(0x40004408)
#define USART2_CR1 REGISTER(0x4000440c)
#define SYSTICK_CONTROL REGISTER(0xe000e010)
#define SYSTICK_RELOAD REGISTER(0xe000e014)
#define DEBUG_IDCODE REGISTER(0xe0042000)

#define GPIO(port, offset) REGISTER(0x40020000 + 0x400 * (port) + (offset))
#define MODE(port) GPIO(port, 0x00)
#define PULLS(port) GPIO(port, 0x0c)
#define INPUT(port) GPIO(port, 0x10)
#define SET_RESET(port) GPIO(port, 0x18)
#define ALTERNATE_LOW(port) GPIO(port, 0x20)

#define CLOCK_HZ 16000000
#define BAUD_RATE 115200
#define RECEIVED (1 << 5)
/* Overrun, noise or a framing error. */
#define DAMAGED 0xe
#define SENDABLE (1 << 7)
#define TICKED (1 << 16)

enum { A, B, C };

const uint8_t board_pins_end = 14;

struct place {
  uint8_t port;
  uint8_t bit;
};

/* Pins 0 and 1 are not available, because their lines are connected to the debug probe. */
static const struct place PLACES[] = {{0, 0}, {0, 0}, {A, 10}, {B, 3}, {B, 5}, {B, 4}, {B, 10}, {A, 8}, {A, 9}, {C, 7}, {B, 6}, {A, 7}, {A, 6}, {A, 5}};

static const struct place BUTTON = {C, 13};

bool board_has_pin(int32_t pin) { return pin >= 2 && pin < board_pins_end; }

static uint8_t level_of(struct place place) { return (INPUT(place.port) >> place.bit) & 1; }

static void set_mode(struct place place, uint32_t mode) {
  MODE(place.port) = (MODE(place.port) & ~(3u << (2 * place.bit))) | (mode << (2 * place.bit));
}

uint8_t board_read(uint8_t pin) { return level_of(PLACES[pin]); }

void board_write(uint8_t pin, uint8_t value) {
  const struct place place = PLACES[pin];
  /* Sets the level first, so that the pin never drives the wrong one. */
  SET_RESET(place.port) = 1u << (place.bit + (value ? 0 : 16));
  set_mode(place, 1);
}

bool board_make_input(uint8_t pin, enum pull pull) {
  const struct place place = PLACES[pin];
  const uint32_t kind = pull == PULL_UP ? 1 : pull == PULL_DOWN ? 2 : 0;
  set_mode(place, 0);
  PULLS(place.port) = (PULLS(place.port) & ~(3u << (2 * place.bit))) | (kind << (2 * place.bit));
  return true;
}

/* The button pulls its line low. */
int8_t board_button(void) { return 1 - level_of(BUTTON); }

const char *board_name(void) {
  switch (DEBUG_IDCODE & 0xfff) {
    case 0x433:
      return "board_c1";
    case 0x431:
      return "board_c2";
    default:
      return "board_c";
  }
}

uint8_t board_led(void) { return 13; }

static void receive(void) {
  uint32_t status;
  while ((status = USART2_SR) & RECEIVED) {
    if (status & DAMAGED) firmware_mark_lost();
    firmware_receive((char)USART2_DR);
  }
}

void board_send(char byte) {
  while (!(USART2_SR & SENDABLE)) receive();
  USART2_DR = (uint8_t)byte;
}

static void start_clocks(void) {
  RCC_AHB1ENR |= 7;
  RCC_APB1ENR |= 1 << 17;
  /* PA2 and PA3, in alternate function 7, are the line to the debug probe. */
  ALTERNATE_LOW(A) = (ALTERNATE_LOW(A) & ~0xff00u) | 0x7700;
  set_mode((struct place){A, 2}, 2);
  set_mode((struct place){A, 3}, 2);
  USART2_BRR = (CLOCK_HZ + BAUD_RATE / 2) / BAUD_RATE;
  USART2_CR1 = (1 << 13) | (1 << 3) | (1 << 2);
  SYSTICK_RELOAD = CLOCK_HZ / 1000 - 1;
  SYSTICK_CONTROL = 5;
}

int main(void) {
  start_clocks();
  firmware_start();
  for (;;) {
    receive();
    firmware_run();
    if (SYSTICK_CONTROL & TICKED) firmware_poll();
  }
}
