/** The boards that Sluice knows, as data from their data sheets: USB identities, runtime and memory map. */
import { nearestName } from '@sluice/kit'

export type BoardFamily = 'board_a' | 'board_b' | 'board_c' | 'board_d'

export interface MemoryRange {
  readonly name: string
  readonly start: number
  /** In bytes. */
  readonly length: number
}

export interface Board {
  /** The value of `board` in `[[peripherals.boards]]`. */
  readonly name: string
  /** The prefix of its alias: `board_a` → `board_a0`, `board_a1`, … */
  readonly family: BoardFamily
  readonly chip: string
  readonly architecture: string
  readonly description: string
  /** The `vendor:product` identities that USB reports, four lower-case hexadecimal digits each. */
  readonly usb: readonly string[]
  /** The runtime that Sluice talks to: MicroPython, or the firmware in `firmware/`. */
  readonly runtime: 'micropython' | 'firmware'
  /** The pin of the built-in LED; null without one. */
  readonly led: number | null
  readonly memory: readonly MemoryRange[]
  /** The chip's name for a debug probe. Absent when its memory cannot be read through one. */
  readonly probeChip?: string
}

const KIB = 1024

export const BOARDS: readonly Board[] = [
  {
    name: 'board_a',
    family: 'board_a',
    chip: 'RP2040',
    architecture: 'Arm Cortex-M0+, two cores',
    description: 'Two cores at 133 MHz, 264 KiB RAM, 2 MiB flash, LED on pin 25',
    usb: ['2e8a:0005', '2e8a:000a', '2e8a:0003'],
    runtime: 'micropython',
    led: 25,
    memory: [
      { name: 'Flash', start: 0x10000000, length: 2048 * KIB },
      { name: 'RAM', start: 0x20000000, length: 264 * KIB },
    ],
  },
  {
    name: 'board_b',
    family: 'board_b',
    chip: 'ATmega328P',
    architecture: 'AVR, 8 bit',
    description: '16 MHz, 32 KiB flash, 2 KiB SRAM, 1 KiB EEPROM, LED on pin 13',
    usb: ['2341:0043', '2341:0001', '2341:0243'],
    runtime: 'firmware',
    led: 13,
    memory: [
      { name: 'Flash', start: 0, length: 32 * KIB },
      { name: 'SRAM', start: 0x0100, length: 2 * KIB },
      { name: 'EEPROM', start: 0, length: KIB },
    ],
  },
  {
    name: 'board_b_mega',
    family: 'board_b',
    chip: 'ATmega2560',
    architecture: 'AVR, 8 bit',
    description: '16 MHz, 256 KiB flash, 8 KiB SRAM, 4 KiB EEPROM, LED on pin 13',
    usb: ['2341:0042', '2341:0010'],
    runtime: 'firmware',
    led: 13,
    memory: [
      { name: 'Flash', start: 0, length: 256 * KIB },
      { name: 'SRAM', start: 0x0200, length: 8 * KIB },
      { name: 'EEPROM', start: 0, length: 4 * KIB },
    ],
  },
  {
    name: 'board_b_q',
    family: 'board_b',
    chip: 'STM32U585',
    architecture: 'Arm Cortex-M33 next to a Linux system',
    description: 'Reached over its bridge on TCP port 9999, LED on pin 13',
    usb: ['2341:0078'],
    runtime: 'firmware',
    led: 13,
    memory: [],
  },
  {
    name: 'board_c1',
    family: 'board_c',
    chip: 'STM32F401RET6',
    architecture: 'Arm Cortex-M4',
    description: '84 MHz, 512 KiB flash, 96 KiB RAM, LED PA5 on pin 13',
    usb: ['0483:374b'],
    runtime: 'firmware',
    led: 13,
    memory: [
      { name: 'Flash', start: 0x08000000, length: 512 * KIB },
      { name: 'RAM', start: 0x20000000, length: 96 * KIB },
    ],
    probeChip: 'STM32F401RETx',
  },
  {
    name: 'board_c2',
    family: 'board_c',
    chip: 'STM32F411RET6',
    architecture: 'Arm Cortex-M4',
    description: '100 MHz, 512 KiB flash, 128 KiB RAM, LED PA5 on pin 13',
    usb: ['0483:3748'],
    runtime: 'firmware',
    led: 13,
    memory: [
      { name: 'Flash', start: 0x08000000, length: 512 * KIB },
      { name: 'RAM', start: 0x20000000, length: 128 * KIB },
    ],
    probeChip: 'STM32F411RETx',
  },
  {
    name: 'board_d',
    family: 'board_d',
    chip: 'ESP32',
    architecture: 'Xtensa LX6, two cores',
    description: '240 MHz, Wi-Fi, 4 MiB flash, 520 KiB RAM, LED on pin 2, behind a USB-UART bridge',
    usb: ['10c4:ea60', '10c4:ea70', '1a86:7523', '1a86:55d4'],
    runtime: 'micropython',
    led: 2,
    memory: [
      { name: 'Flash', start: 0x3f400000, length: 4096 * KIB },
      { name: 'DRAM', start: 0x3ffae000, length: 328 * KIB },
      { name: 'IRAM', start: 0x40080000, length: 128 * KIB },
    ],
  },
]

/** The alias prefix by USB vendor alone, for products that are not in the table. */
export const FAMILY_BY_VENDOR: Readonly<Record<string, BoardFamily>> = {
  '2e8a': 'board_a',
  '2341': 'board_b',
  '0483': 'board_c',
  '10c4': 'board_d',
}

/** Returns the board with this name in the configuration. */
export const boardNamed = (name: string): Board | undefined => BOARDS.find((board) => board.name === name)

/** Returns the board with this USB identity, four lower-case hexadecimal digits each. */
export const boardOfUsb = (vendor: string, product: string): Board | undefined =>
  BOARDS.find(({ usb }) => usb.includes(`${vendor}:${product}`))

/** The name of this machine itself as a board; its transport is `native`. */
export const THIS_MACHINE = 'sbc'

export const BOARD_NAMES: readonly string[] = [...BOARDS.map(({ name }) => name), THIS_MACHINE]

const NAME_CHARS_MAX = 64

/** Returns the message for a name that is not in `BOARD_NAMES`, with the known name that it resembles. */
export function unknownBoard(name: string): string {
  const shown = name.slice(0, NAME_CHARS_MAX)
  const nearest = nearestName(shown, BOARD_NAMES)
  const hint = nearest === undefined ? '' : ` Did you mean ${nearest}?`
  return `Unknown board ${JSON.stringify(shown)}.${hint} Known boards: ${BOARD_NAMES.join(', ')}`
}
