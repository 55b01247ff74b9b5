/* The line protocol of Sluice for pins, shared by all boards. Each board implements the functions for its pins and its serial line. */
#ifndef SLUICE_FIRMWARE_H
#define SLUICE_FIRMWARE_H

#include <stdbool.h>
#include <stdint.h>

enum pull { PULL_NONE, PULL_UP, PULL_DOWN };

/* Implemented by the board. */
bool board_has_pin(int32_t pin);
/* Returns the level of the pin itself, not the level that was last written. */
uint8_t board_read(uint8_t pin);
void board_write(uint8_t pin, uint8_t value);
/* Returns false when the board does not have this pull. */
bool board_make_input(uint8_t pin, enum pull pull);
/* Returns 1 while the button is pressed, 0 while it is not, and -1 when the board has none. */
int8_t board_button(void);
void board_send(char byte);
/* Returns the name in the table of boards. */
const char *board_name(void);
uint8_t board_led(void);
/* All pin numbers are below this. */
extern const uint8_t board_pins_end;

/* To be called once. */
void firmware_start(void);
/* Takes one byte from the line. `board_send` calls it too while it waits. */
void firmware_receive(char byte);
/* Reports lost or damaged bytes: their line is dropped. */
void firmware_mark_lost(void);
/* Carries out the received requests. Only the main loop may call it. */
void firmware_run(void);
/* Sends the changes of watched pins and the button. To be called every few milliseconds, at most once per millisecond. */
void firmware_poll(void);

#endif
