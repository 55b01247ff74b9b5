/** The simulated parts on the buses of the simulated adapter. */

/** A part on the simulated I2C bus. */
export interface I2cPart {
  /** Takes all bytes between a start and the next start or stop. */
  write(bytes: Uint8Array): void
  /** Returns the next bytes. Continues after the last byte of the previous read, unless a start came in between. */
  read(length: number): Uint8Array
  /** Runs when a start or repeated start addresses the part. */
  start(): void
}

const CELSIUS_25 = [0x19, 0x00]
const THERMOMETER_REGISTERS = 4

/** A typical thermometer: 25 °C in register 0, two bytes per register, high byte first. */
export function thermometer(): I2cPart {
  const registers = [CELSIUS_25, [0x60, 0xa0], [0x4b, 0x00], [0x50, 0x00]]
  let at = 0
  let low = false
  return {
    write([register, high, last]) {
      if (register === undefined) return
      at = register % THERMOMETER_REGISTERS
      // The temperature register is read-only.
      if (at !== 0 && high !== undefined && last !== undefined) registers[at] = [high, last]
    },
    read: (length) =>
      Uint8Array.from({ length }, () => {
        const byte = registers[at]?.[low ? 1 : 0] ?? 0
        low = !low
        return byte
      }),
    start() {
      low = false
    },
  }
}

const EEPROM_BYTES = 256
const ERASED = 0xff

/** An EEPROM of 256 bytes. The first byte of a write sets the address; reads continue from there. */
export function eeprom(): I2cPart {
  const memory = new Uint8Array(EEPROM_BYTES).fill(ERASED)
  let at = 0
  const step = (): number => {
    const current = at
    at = (at + 1) % EEPROM_BYTES
    return current
  }
  return {
    write([start, ...bytes]) {
      at = start ?? at
      for (const byte of bytes) memory[step()] = byte
    },
    read: (length) => Uint8Array.from({ length }, () => memory[step()] ?? 0),
    start() {},
  }
}

const FLASH_BYTES = 65_536
const PAGE_BYTES = 256
const SECTOR_BYTES = 4096
const FLASH = { identify: 0x9f, status: 0x05, enable: 0x06, disable: 0x04, read: 0x03, program: 0x02, erase: 0x20 } as const
const JEDEC_ID = [0xef, 0x40, 0x18]
const WRITE_ENABLED = 0b10
/** The command and its three address bytes. */
const HEAD_BYTES = 4

/** One transfer, from the start to the end of a chip select. */
export interface FlashTransfer {
  /** Sends one byte and returns the byte received at the same time. */
  exchange(byte: number): number
  /** Ends the chip select. The command takes effect now. */
  end(): void
}

/** A typical serial flash of 64 KiB. Each call of the result begins a chip select. */
export function serialFlash(): () => FlashTransfer {
  const memory = new Uint8Array(FLASH_BYTES).fill(ERASED)
  let status = 0

  const answer = (sent: readonly number[]): number => {
    const at = sent.length - 1
    if (at === 0) return ERASED
    if (sent[0] === FLASH.identify) return JEDEC_ID[at - 1] ?? 0
    if (sent[0] === FLASH.status) return status
    if (sent[0] === FLASH.read && at >= HEAD_BYTES) return memory[(addressIn(sent) + at - HEAD_BYTES) % FLASH_BYTES] ?? ERASED
    return ERASED
  }

  const takeEffect = (sent: readonly number[]): void => {
    const [command] = sent
    if (command === FLASH.enable) status |= WRITE_ENABLED
    if (command === FLASH.disable) status &= ~WRITE_ENABLED
    if ((command !== FLASH.program && command !== FLASH.erase) || !(status & WRITE_ENABLED) || sent.length < HEAD_BYTES) return
    const address = addressIn(sent)
    status &= ~WRITE_ENABLED
    if (command === FLASH.erase) {
      const sector = address - (address % SECTOR_BYTES)
      memory.fill(ERASED, sector, sector + SECTOR_BYTES)
      return
    }
    const page = address - (address % PAGE_BYTES)
    for (const [index, byte] of sent.slice(HEAD_BYTES).entries()) {
      // Programming only clears bits, and wraps around within the page.
      const at = page + ((address - page + index) % PAGE_BYTES)
      memory[at] = (memory[at] ?? ERASED) & byte
    }
  }

  return () => {
    const sent: number[] = []
    return {
      exchange(byte) {
        sent.push(byte)
        return answer(sent)
      },
      end: () => takeEffect(sent),
    }
  }
}

const addressIn = ([, high = 0, middle = 0, low = 0]: readonly number[]): number => ((high << 16) | (middle << 8) | low) % FLASH_BYTES
