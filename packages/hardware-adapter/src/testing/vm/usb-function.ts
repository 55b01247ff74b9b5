/** A USB device on the kernel's virtual controller: a vendor's interface with two bulk endpoints, served by a process of its own. */
import { spawn } from 'node:child_process'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

export const GADGET = '/sys/kernel/config/usb_gadget/sluice'

export interface VirtualUsb {
  unplug(): Promise<void>
  replug(): Promise<void>
}

/**
 * Starts `program`, a file beside this one that calls `serveUsbFunction`; resolves once it is plugged in. It has to be another
 * process: one that waits for a packet cannot end by itself.
 */
export async function usbFunction(program: string): Promise<VirtualUsb> {
  const device = spawn(process.execPath, [join(import.meta.dirname, program)], { stdio: ['ignore', 'pipe', 'inherit'] })
  process.once('exit', () => device.kill('SIGKILL'))
  const { promise: ready, resolve, reject } = Promise.withResolvers<void>()
  device.stdout.once('data', () => resolve())
  device.once('exit', (code) => reject(new Error(`${program} ended with ${code}`)))
  await ready
  return { unplug: () => plugInto('\n'), replug: async () => plugInto(await controller()) }
}

export const controller = async (): Promise<string> => (await readdir('/sys/class/udc'))[0] ?? ''

export const plugInto = (name: string): Promise<void> => writeFile(join(GADGET, 'UDC'), name)
