/** A virtual HID device through the kernel's `/dev/uhid`: passes reports to a simulated chip and returns its answers. */
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
/** A vendor-specific usage page with one unnumbered report of 64 bytes in each direction. */
const DESCRIPTOR = Buffer.from('0600ff0901a1010901150026ff0075089540810209021500 26ff00750895409102c0'.replaceAll(' ', ''), 'hex')

export interface VirtualHid {
  readonly vendor: number
  readonly product: number
  readonly name: string
  /** The physical port that the kernel reports. */
  readonly port: string
  readonly serial: string
  answer(report: Uint8Array): Uint8Array
}

/** Plugs the device in. Resolves once the kernel has started it, with a function that unplugs it. */
export async function uhidDevice({ vendor, product, name, port, serial, answer }: VirtualHid): Promise<() => Promise<void>> {
  const file = await promisify(open)('/dev/uhid', 'r+')
  const send = async (type: number, fill: (event: Buffer) => void = () => {}): Promise<void> => {
    const event = Buffer.alloc(EVENT_BYTES)
    event.writeUInt32LE(type, 0)
    fill(event.subarray(4))
    await promisify(write)(file, event)
  }
  const { promise: started, resolve: start } = Promise.withResolvers<void>()
  let isUnplugged = false

  const handle = async (type: number, event: Buffer): Promise<void> => {
    if (type === EVENT.start) start()
    if (type === EVENT.getReport) await send(EVENT.getReportReply, (reply) => refuse(event, reply))
    if (type === EVENT.setReport) await send(EVENT.setReportReply, (reply) => refuse(event, reply))
    if (type !== EVENT.output) return
    const data = event.subarray(0, event.readUInt16LE(DATA_BYTES))
    // The kernel may prefix the report with its number 0.
    const report = data.length === 65 ? data.subarray(1) : data
    const reply = answer(Uint8Array.from(report))
    await send(EVENT.input, (input) => {
      input.writeUInt16LE(reply.length, 0)
      input.set(reply, 2)
    })
  }

  const listen = async (): Promise<void> => {
    const event = Buffer.alloc(EVENT_BYTES)
    while (!isUnplugged) {
      await promisify(read)(file, event, 0, EVENT_BYTES, null)
      await handle(event.readUInt32LE(0), event.subarray(4))
    }
  }

  await send(EVENT.create, (event) => {
    event.write(name, 0)
    event.write(port, 128)
    event.write(serial, 192)
    event.writeUInt16LE(DESCRIPTOR.length, 256)
    event.writeUInt16LE(BUS_USB, 258)
    event.writeUInt32LE(vendor, 260)
    event.writeUInt32LE(product, 264)
    DESCRIPTOR.copy(event, 276)
  })
  void listen().catch((error: unknown) => {
    if (!isUnplugged) throw error
  })
  await started
  return async () => {
    if (isUnplugged) return
    isUnplugged = true
    await send(EVENT.destroy)
    await promisify(close)(file).catch(() => undefined)
  }
}

function refuse(request: Buffer, reply: Buffer): void {
  reply.writeUInt32LE(request.readUInt32LE(0), 0)
  reply.writeUInt16LE(EIO, 4)
}
