/** The device side of a virtual USB device: describes itself to the kernel through FunctionFS and answers packets. */
import { execFile } from 'node:child_process'
import { open, read, write } from 'node:fs'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { controller, GADGET, plugInto } from './usb-function.ts'

const MOUNT = '/run/usb-function'
const PACKET_BYTES_MAX = 512
const SETUP = 4

export interface UsbFunction {
  readonly vendor: string
  readonly product: string
  /** Returns the answer to a packet. An empty array sends no answer. */
  answer(packet: Uint8Array): Uint8Array
}

/** Plugs the device in, prints `plugged in` and serves packets until the process is killed. */
export async function serveUsbFunction({ vendor, product, answer }: UsbFunction): Promise<void> {
  for (const folder of ['strings/0x409', 'configs/c.1', 'functions/ffs.sluice']) await mkdir(`${GADGET}/${folder}`, { recursive: true })
  await writeFile(`${GADGET}/idVendor`, `0x${vendor}`)
  await writeFile(`${GADGET}/idProduct`, `0x${product}`)
  await writeFile(`${GADGET}/bDeviceClass`, '0xff')
  await symlink(`${GADGET}/functions/ffs.sluice`, `${GADGET}/configs/c.1/ffs.sluice`)
  await mkdir(MOUNT, { recursive: true })
  await promisify(execFile)('mount', ['-t', 'functionfs', 'sluice', MOUNT])

  const openEndpoint = (name: string) => promisify(open)(`${MOUNT}/${name}`, 'r+')
  const control = await openEndpoint('ep0')
  await promisify(write)(control, descriptors())
  await promisify(write)(control, little(2, 16, 0, 0))
  const [input, output] = [await openEndpoint('ep1'), await openEndpoint('ep2')]
  await plugInto(await controller())
  process.stdout.write('plugged in\n')
  await Promise.all([acknowledgeControl(control), serve(input, output, answer)])
}

const little = (...values: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(4 * values.length)
  for (const [index, value] of values.entries()) bytes.writeUInt32LE(value, 4 * index)
  return bytes
}

/** Describes the interface and its endpoints, for full and for high speed. */
function descriptors(): Buffer {
  const endpoint = (address: number, size: number) => Buffer.from([7, 5, address, 2, size & 0xff, size >> 8, 0])
  const speed = (size: number) => Buffer.concat([Buffer.from([9, 4, 0, 0, 2, 0xff, 1, 2, 0]), endpoint(0x82, size), endpoint(0x02, size)])
  const both = Buffer.concat([speed(64), speed(512)])
  const hasFullAndHigh = 1 | 2
  return Buffer.concat([little(3, 20 + both.length, hasFullAndHigh, 3, 3), both])
}

/** Acknowledges requests to the device itself without acting on them. */
async function acknowledgeControl(control: number): Promise<void> {
  const event = Buffer.alloc(12)
  for (;;) {
    await promisify(read)(control, event, 0, event.length, null)
    if (event[8] !== SETUP) continue
    const length = event.readUInt16LE(6)
    const toHost = ((event[0] ?? 0) & 0x80) !== 0
    const data = toHost
      ? promisify(write)(control, Buffer.alloc(length))
      : promisify(read)(control, Buffer.alloc(Math.max(1, length)), 0, length, null)
    await data.catch(() => undefined)
  }
}

async function serve(input: number, output: number, answer: UsbFunction['answer']): Promise<void> {
  const packet = Buffer.alloc(PACKET_BYTES_MAX)
  for (;;) {
    try {
      const { bytesRead } = await promisify(read)(output, packet, 0, packet.length, null)
      const reply = answer(Uint8Array.from(packet.subarray(0, bytesRead)))
      if (reply.length > 0) await promisify(write)(input, Buffer.from(reply))
    } catch (error) {
      // The device was unplugged and may be plugged in again.
      if ((error as NodeJS.ErrnoException).code !== 'ESHUTDOWN') throw error
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}
