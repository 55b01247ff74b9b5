/* Pins over the line protocol of Sluice: what all boards do alike. A board brings its pins and its serial line. */
#ifndef SLUICE_FIRMWARE_H
#define SLUICE_FIRMWARE_H

#include <stdbool.h>
#include <stdint.h>

enum pull { PULL_NONE, PULL_UP, PULL_DOWN };

/* Brought by the board. */
bool board_has_pin(int32_t pin);
/* Of the pin itself, never of what was last written. */
uint8_t board_read(uint8_t pin);
void board_write(uint8_t pin, uint8_t value);
/* False: it has no such pull. */
bool board_make_input(uint8_t pin, enum pull pull);
/* 1 while it is pressed; -1: it has none. */
int8_t board_button(void);
void board_send(char byte);
/* Name in the table of boards. */
const char *board_name(void);
uint8_t board_led(void);
/* Pins have numbers below this. */
extern const uint8_t board_pins_end;

/* Once. */
void firmware_start(void);
/* One byte from the line; also to be called while `board_send` waits. */
void firmware_hear(char byte);
/* Bytes were lost, or damaged: the line they belong to is dropped. */
void firmware_miss(void);
/* Obeys what was heard; from the main loop alone. */
void firmware_obey(void);
/* Tells what has changed; called at least every few milliseconds, and no oftener than once in one. */
void firmware_look(void);

#endif
