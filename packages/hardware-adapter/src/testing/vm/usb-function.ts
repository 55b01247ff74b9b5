/** A virtual USB device on the kernel's virtual controller: a vendor-specific interface with two bulk endpoints. */
import { spawn } from 'node:child_process'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

export const GADGET = '/sys/kernel/config/usb_gadget/sluice'

export interface VirtualUsb {
  unplug(): Promise<void>
  replug(): Promise<void>
}

/**
 * Starts `program`, a file in this folder that calls `serveUsbFunction`, and resolves once the device is plugged in. It runs in a
 * process of its own, because a process that waits for a packet cannot end by itself.
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

/** Returns the name of the virtual controller. */
export const controller = async (): Promise<string> => (await readdir('/sys/class/udc'))[0] ?? ''

/** Plugs the device into the controller of that name; a line feed unplugs it. */
export const plugInto = (name: string): Promise<void> => writeFile(join(GADGET, 'UDC'), name)
