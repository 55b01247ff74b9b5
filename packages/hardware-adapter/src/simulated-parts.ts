/** The parts behind the simulated adapter. */

/** A part on the simulated I2C bus. */
export interface I2cPart {
  /** All that stands between a start and what ends it. */
  write(bytes: Uint8Array): void
  /** Goes on where the last one ended, unless something was started in between. */
  read(length: number): Uint8Array
  /** It is addressed: by a start or a repeated one. */
  start(): void
}

const CELSIUS_25 = [0x19, 0x00]
const THERMOMETER_REGISTERS = 4

/** A thermometer of the usual kind: 25 °C in register 0, two bytes a register, high byte first. */
export function thermometer(): I2cPart {
  const registers = [CELSIUS_25, [0x60, 0xa0], [0x4b, 0x00], [0x50, 0x00]]
  let at = 0
  let low = false
  return {
    write([register, high, last]) {
      if (register === undefined) return
      at = register % THERMOMETER_REGISTERS
      // The temperature itself cannot be written.
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
    start() {},
  }
}

const FLASH_BYTES = 65_536
const PAGE_BYTES = 256
const SECTOR_BYTES = 4096
const FLASH = { identify: 0x9f, status: 0x05, enable: 0x06, disable: 0x04, read: 0x03, program: 0x02, erase: 0x20 } as const
const JEDEC_ID = [0xef, 0x40, 0x18]
const WRITE_ENABLED = 0b10
/** A command and the three bytes of its address. */
const HEAD_BYTES = 4

/** What goes on between the two ends of a chip select. */
export interface FlashTransfer {
  /** The byte that comes back while this one goes out. */
  exchange(byte: number): number
  /** The end of the chip select: now the command takes effect. */
  end(): void
}

/** A serial flash of the usual kind; each call is a chip select of its own. */
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
      // Programming only clears bits, and wraps inside its page.
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
