/**
 * I2C through the kernel's `/dev/i2c-N`. Each call is exactly one transaction; a call that the bus driver cannot make as one
 * transaction is refused instead of being split.
 */
import { AppError } from '@sluice/sdk'
import type { I2c } from '../adapter.ts'
import { dataNotAcknowledged, groupAccess, notAcknowledged, openError, stuckBus, systemCode } from '../adapter-errors.ts'
import { hexByte } from '../hex.ts'
import type { KernelI2c, Native } from '../native.ts'

/** The data bytes of a block transfer of the kernel's SMBus, without the register. */
const BLOCK_BYTES_MAX = 32
/** The codes that bus drivers return when no device acknowledges. */
const NOT_ACKNOWLEDGED = ['ENXIO', 'EREMOTEIO', 'ENODEV', 'EIO']

export function linuxI2c(native: Native, path: string): I2c {
  /**
   * Opens the bus for each transaction. The i2c-bus package keeps a descriptor per address, and after a failure to select the
   * address that descriptor points at no device.
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
    const code = systemCode(error)
    if (NOT_ACKNOWLEDGED.includes(code)) return notAcknowledged(address)
    if (code === 'ETIMEDOUT') return stuckBus(`no answer on ${path}`)
    if (code === 'EBUSY') return new AppError('conflict', `A kernel driver owns the device at ${hexByte(address)}`, { cause: error })
    return openError(error, path, groupAccess('i2c'))
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
          if (NOT_ACKNOWLEDGED.includes(systemCode(error))) return false
          if (systemCode(error) === 'EBUSY') return 'held'
          throw failure(error, address)
        },
      ),
  }
}

async function readPlain(bus: KernelI2c, address: number, length: number): Promise<Uint8Array> {
  if (length === 1) return Uint8Array.of(await bus.receiveByte(address))
  if ((await bus.functions()).i2c) return bus.read(address, length)
  throw overLimit('reads one byte at a time without a register')
}

/** Each of the calls it makes is one transaction with a repeated start. */
async function readRegister(bus: KernelI2c, address: number, register: number, length: number): Promise<Uint8Array> {
  if (length === 1) return Uint8Array.of(await bus.readByte(address, register))
  if (length > BLOCK_BYTES_MAX) throw overLimit(`reads at most ${BLOCK_BYTES_MAX} bytes after a register`)
  if ((await bus.functions()).smbusReadI2cBlock) return bus.readBlock(address, register, length)
  if (length > 2) throw overLimit('reads at most 2 bytes after a register')
  const word = await bus.readWord(address, register)
  return Uint8Array.of(word & 0xff, word >> 8)
}

async function writeAll(bus: KernelI2c, address: number, bytes: Uint8Array): Promise<void> {
  const [first = 0, second = 0] = bytes
  if (bytes.length === 1) return bus.sendByte(address, first)
  if (bytes.length === 2) return bus.writeByte(address, first, second)
  const { i2c, smbusWriteI2cBlock } = await bus.functions()
  if (i2c) return bus.write(address, bytes)
  if (!smbusWriteI2cBlock) throw overLimit('writes at most 2 bytes at a time')
  if (bytes.length > BLOCK_BYTES_MAX + 1) throw overLimit(`writes at most ${BLOCK_BYTES_MAX + 1} bytes at a time`)
  await bus.writeBlock(address, first, bytes.subarray(1))
}

const overLimit = (limit: string): AppError =>
  new AppError('invalid_request', `This bus ${limit} in one transaction; split the call into smaller ones`)
