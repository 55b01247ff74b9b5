/* board_b: an ATmega328P at 16 MHz that talks over the serial line of its USB port. Its pins are 2 to 13, and 14 to 19 for A0 to A5. */
#include <avr/io.h>

#include "firmware.h"

#define BAUD_RATE 115200UL
/* Rounded, for the double speed of U2X0. */
#define BAUD_DIVIDER ((F_CPU + BAUD_RATE * 4) / (BAUD_RATE * 8) - 1)
#define LED 13
/* Timer 0 counts at 16 MHz / 64. */
#define COUNTS_PER_MS 250

const uint8_t board_pins_end = 20;

struct place {
  volatile uint8_t *in;
  volatile uint8_t *direction;
  volatile uint8_t *out;
  uint8_t bit;
};

/* Pins 0 and 1 are the serial line. */
bool board_has_pin(int32_t pin) { return pin >= 2 && pin < board_pins_end; }

static struct place pin_place(uint8_t pin) {
  if (pin < 8) return (struct place){&PIND, &DDRD, &PORTD, (uint8_t)(1 << pin)};
  if (pin < 14) return (struct place){&PINB, &DDRB, &PORTB, (uint8_t)(1 << (pin - 8))};
  return (struct place){&PINC, &DDRC, &PORTC, (uint8_t)(1 << (pin - 14))};
}

uint8_t board_read(uint8_t pin) {
  const struct place place = pin_place(pin);
  return (*place.in & place.bit) != 0;
}

void board_write(uint8_t pin, uint8_t value) {
  const struct place place = pin_place(pin);
  /* Sets the level first, so that the pin never drives the wrong one. */
  if (value) *place.out |= place.bit;
  else *place.out &= (uint8_t)~place.bit;
  *place.direction |= place.bit;
}

bool board_make_input(uint8_t pin, enum pull pull) {
  const struct place place = pin_place(pin);
  if (pull == PULL_DOWN) return false;
  *place.direction &= (uint8_t)~place.bit;
  if (pull == PULL_UP) *place.out |= place.bit;
  else *place.out &= (uint8_t)~place.bit;
  return true;
}

int8_t board_button(void) { return -1; }
const char *board_name(void) { return "board_b"; }
uint8_t board_led(void) { return LED; }

static void receive(void) {
  uint8_t status;
  while ((status = UCSR0A) & (1 << RXC0)) {
    if (status & ((1 << DOR0) | (1 << FE0))) firmware_mark_lost();
    firmware_receive((char)UDR0);
  }
}

void board_send(char byte) {
  while (!(UCSR0A & (1 << UDRE0))) receive();
  UDR0 = (uint8_t)byte;
}

int main(void) {
  UBRR0 = BAUD_DIVIDER;
  UCSR0A = 1 << U2X0;
  UCSR0C = (1 << UCSZ01) | (1 << UCSZ00);
  UCSR0B = (1 << RXEN0) | (1 << TXEN0);
  TCCR0B = (1 << CS01) | (1 << CS00);
  firmware_start();
  uint8_t polled = TCNT0;
  for (;;) {
    receive();
    firmware_run();
    if ((uint8_t)(TCNT0 - polled) < COUNTS_PER_MS) continue;
    polled = TCNT0;
    firmware_poll();
  }
}
