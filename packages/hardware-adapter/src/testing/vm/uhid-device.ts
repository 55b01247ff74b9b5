/** A HID device of the kernel that is this process: reports go to a chip, its answers come back (`/dev/uhid`). */
import { close, open, read, write } from 'node:fs'
import { promisify } from 'node:util'

const EVENT = {
  destroy: 1,
  start: 2,
  stop: 3,
  output: 6,
  getReport: 9,
  getReportReply: 10,
  create: 11,
  input: 12,
  setReport: 13,
  setReportReply: 14,
} as const
const EVENT_BYTES = 4380
const DATA_BYTES = 4096
const BUS_USB = 3
const EIO = 5
/** A vendor's page with one report of 64 bytes each way, without a number. */
const DESCRIPTOR = Buffer.from('0600ff0901a1010901150026ff0075089540810209021500 26ff00750895409102c0'.replaceAll(' ', ''), 'hex')

export interface UhidOptions {
  readonly vendor: number
  readonly product: number
  readonly name: string
  readonly place: string
  readonly serial: string
  answer(report: Uint8Array): Uint8Array
}

/** Resolves once the kernel has taken the device; the function it gives unplugs it. */
export async function uhidDevice({ vendor, product, name, place, serial, answer }: UhidOptions): Promise<() => Promise<void>> {
  const file = await promisify(open)('/dev/uhid', 'r+')
  const send = async (type: number, fill: (event: Buffer) => void = () => {}): Promise<void> => {
    const event = Buffer.alloc(EVENT_BYTES)
    event.writeUInt32LE(type, 0)
    fill(event.subarray(4))
    await promisify(write)(file, event)
  }
  const { promise: started, resolve: start } = Promise.withResolvers<void>()
  let gone = false

  const take = async (type: number, event: Buffer): Promise<void> => {
    if (type === EVENT.start) start()
    if (type === EVENT.getReport) await send(EVENT.getReportReply, (reply) => refuse(event, reply))
    if (type === EVENT.setReport) await send(EVENT.setReportReply, (reply) => refuse(event, reply))
    if (type !== EVENT.output) return
    const given = event.subarray(0, event.readUInt16LE(DATA_BYTES))
    // With the number that there is none of.
    const report = given.length === 65 ? given.subarray(1) : given
    const reply = answer(Uint8Array.from(report))
    await send(EVENT.input, (input) => {
      input.writeUInt16LE(reply.length, 0)
      input.set(reply, 2)
    })
  }

  const listen = async (): Promise<void> => {
    const event = Buffer.alloc(EVENT_BYTES)
    while (!gone) {
      await promisify(read)(file, event, 0, EVENT_BYTES, null)
      await take(event.readUInt32LE(0), event.subarray(4))
    }
  }

  await send(EVENT.create, (event) => {
    event.write(name, 0)
    event.write(place, 128)
    event.write(serial, 192)
    event.writeUInt16LE(DESCRIPTOR.length, 256)
    event.writeUInt16LE(BUS_USB, 258)
    event.writeUInt32LE(vendor, 260)
    event.writeUInt32LE(product, 264)
    DESCRIPTOR.copy(event, 276)
  })
  void listen().catch((error: unknown) => {
    if (!gone) throw error
  })
  await started
  return async () => {
    if (gone) return
    gone = true
    await send(EVENT.destroy)
    await promisify(close)(file).catch(() => undefined)
  }
}

function refuse(request: Buffer, reply: Buffer): void {
  reply.writeUInt32LE(request.readUInt32LE(0), 0)
  reply.writeUInt16LE(EIO, 4)
}
