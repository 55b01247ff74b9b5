/** I2C by the kernel's `/dev/i2c-N`. What it can do in one transaction is the bus driver's to say; nothing is made up from several. */
import { AppError } from '@sluice/sdk'
import type { I2c } from './adapter.ts'
import { dataNotAcknowledged, notAcknowledged, stuckBus } from './bus-error.ts'
import { hexByte } from './hex.ts'
import type { KernelI2c, Native } from './native.ts'
import { codeOf, groupAccess, openError } from './open-error.ts'

/** Of the kernel's SMBus block transfers, register apart. */
const BLOCK_BYTES_MAX = 32
/** What bus drivers say when nobody acknowledges. */
const NOBODY = ['ENXIO', 'EREMOTEIO', 'ENODEV', 'EIO']

export function linuxI2c(native: Native, path: string): I2c {
  /**
   * A handle of its own for each transaction: one that failed to take an address keeps, in the package below, a descriptor
   * for that address which points at no device.
   */
  const use = async <Result>(work: (bus: KernelI2c) => Promise<Result>): Promise<Result> => {
    const bus = await native.openI2c(path)
    try {
      return await work(bus)
    } finally {
      await bus.close().catch(() => undefined)
    }
  }

  const failure = (error: unknown, address: number): unknown => {
    const code = codeOf(error)
    if (NOBODY.includes(code)) return notAcknowledged(address)
    if (code === 'ETIMEDOUT') return stuckBus(`no answer on ${path}`)
    if (code === 'EBUSY') return new AppError('conflict', `A driver of the kernel has the device at ${hexByte(address)}`, { cause: error })
    return openError(error, { what: path, access: groupAccess('i2c') })
  }

  const transact = <Result>(address: number, work: (bus: KernelI2c) => Promise<Result>): Promise<Result> =>
    use(work).catch((error: unknown) => {
      throw failure(error, address)
    })

  return {
    read: (address, length, register) =>
      transact(address, async (bus) => {
        const bytes = await (register === undefined ? readPlain(bus, address, length) : readRegister(bus, address, register, length))
        if (bytes.length !== length) throw dataNotAcknowledged(address)
        return bytes
      }),

    write: (address, bytes) => transact(address, (bus) => writeAll(bus, address, bytes)),

    probe: (address) =>
      use((bus) => bus.receiveByte(address)).then(
        () => true,
        (error: unknown) => {
          if (NOBODY.includes(codeOf(error))) return false
          if (codeOf(error) === 'EBUSY') return 'held'
          throw failure(error, address)
        },
      ),
  }
}

async function readPlain(bus: KernelI2c, address: number, length: number): Promise<Uint8Array> {
  if (length === 1) return Uint8Array.of(await bus.receiveByte(address))
  if ((await bus.functions()).i2c) return bus.read(address, length)
  throw tooMuch('reads one byte at a time without a register')
}

/** Each of these is one transaction with a repeated start. */
async function readRegister(bus: KernelI2c, address: number, register: number, length: number): Promise<Uint8Array> {
  if (length === 1) return Uint8Array.of(await bus.readByte(address, register))
  if (length > BLOCK_BYTES_MAX) throw tooMuch(`reads at most ${BLOCK_BYTES_MAX} bytes after a register`)
  if ((await bus.functions()).smbusReadI2cBlock) return bus.readBlock(address, register, length)
  if (length > 2) throw tooMuch('reads at most 2 bytes after a register')
  const word = await bus.readWord(address, register)
  return Uint8Array.of(word & 0xff, word >> 8)
}

async function writeAll(bus: KernelI2c, address: number, bytes: Uint8Array): Promise<void> {
  const [first = 0, second = 0] = bytes
  if (bytes.length === 1) return bus.sendByte(address, first)
  if (bytes.length === 2) return bus.writeByte(address, first, second)
  const { i2c, smbusWriteI2cBlock } = await bus.functions()
  if (i2c) return bus.write(address, bytes)
  if (!smbusWriteI2cBlock) throw tooMuch('writes at most 2 bytes at a time')
  if (bytes.length > BLOCK_BYTES_MAX + 1) throw tooMuch(`writes at most ${BLOCK_BYTES_MAX + 1} bytes at a time`)
  await bus.writeBlock(address, first, bytes.subarray(1))
}

const tooMuch = (limit: string): AppError => new AppError('invalid_request', `This bus ${limit} in one transaction: ask for less at a time`)
