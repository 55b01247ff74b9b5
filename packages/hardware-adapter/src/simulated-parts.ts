/** The parts behind the simulated adapter. */

/** A part on the simulated I2C bus. */
export interface I2cPart {
  /** What stands between a start and a stop. */
  write(bytes: Uint8Array): void
  read(length: number): Uint8Array
}

const CELSIUS_25 = [0x19, 0x00]
const THERMOMETER_REGISTERS = 4

/** A thermometer of the usual kind: 25 °C in register 0, two bytes a register, high byte first. */
export function thermometer(): I2cPart {
  const registers = [CELSIUS_25, [0x60, 0xa0], [0x4b, 0x00], [0x50, 0x00]]
  let at = 0
  return {
    write([register, high, low]) {
      if (register === undefined) return
      at = register % THERMOMETER_REGISTERS
      // The temperature itself cannot be written.
      if (at !== 0 && high !== undefined && low !== undefined) registers[at] = [high, low]
    },
    read: (length) => Uint8Array.from({ length }, (_none, index) => registers[at]?.[index % 2] ?? 0),
  }
}

const EEPROM_BYTES = 256
const ERASED = 0xff

/** 256 bytes; the first byte of a write says where, reads go on from there. */
export function eeprom(): I2cPart {
  const memory = new Uint8Array(EEPROM_BYTES).fill(ERASED)
  let at = 0
  const step = (): number => {
    const here = at
    at = (at + 1) % EEPROM_BYTES
    return here
  }
  return {
    write([start, ...bytes]) {
      at = start ?? at
      for (const byte of bytes) memory[step()] = byte
    },
    read: (length) => Uint8Array.from({ length }, () => memory[step()] ?? 0),
  }
}

const FLASH_BYTES = 65_536
const PAGE_BYTES = 256
const SECTOR_BYTES = 4096
const FLASH = { identify: 0x9f, status: 0x05, enable: 0x06, disable: 0x04, read: 0x03, program: 0x02, erase: 0x20 } as const
const JEDEC_ID = [0xef, 0x40, 0x18]
const WRITE_ENABLED = 0b10
const ADDRESS_BYTES = 3

/** A serial flash: what goes out during one chip select, answered byte by byte. */
export function serialFlash(): (bytes: Uint8Array) => Uint8Array {
  const memory = new Uint8Array(FLASH_BYTES).fill(ERASED)
  let status = 0
  const answers = ([command = 0, ...rest]: readonly number[]): readonly number[] => {
    const address = rest.slice(0, ADDRESS_BYTES).reduce((sum, byte) => sum * 256 + byte, 0) % FLASH_BYTES
    const data = rest.slice(ADDRESS_BYTES)
    if (command === FLASH.identify) return rest.map((_none, index) => JEDEC_ID[index] ?? 0)
    if (command === FLASH.status) return rest.map(() => status)
    if (command === FLASH.enable) status |= WRITE_ENABLED
    if (command === FLASH.disable) status &= ~WRITE_ENABLED
    if (command === FLASH.read)
      return rest.map((_none, index) => (index < ADDRESS_BYTES ? ERASED : (memory[(address + index - ADDRESS_BYTES) % FLASH_BYTES] ?? 0)))
    if ((command === FLASH.program || command === FLASH.erase) && status & WRITE_ENABLED && rest.length >= ADDRESS_BYTES) {
      const page = address - (address % PAGE_BYTES)
      if (command === FLASH.erase)
        memory.fill(ERASED, address - (address % SECTOR_BYTES), address - (address % SECTOR_BYTES) + SECTOR_BYTES)
      // Programming only clears bits, and wraps inside its page.
      else
        for (const [index, byte] of data.entries())
          memory[page + ((address - page + index) % PAGE_BYTES)] = (memory[page + ((address - page + index) % PAGE_BYTES)] ?? 0) & byte
      status &= ~WRITE_ENABLED
    }
    return rest.map(() => ERASED)
  }
  return (bytes) => Uint8Array.from([ERASED, ...answers(Array.from(bytes))])
}
