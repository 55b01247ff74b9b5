/** Fake native packages without devices, and ports to simulated chips. */
import { AppError } from '@sluice/sdk'
import type { HidPort, Native } from '../native.ts'
import type { UsbPort } from '../usb-port.ts'

const noDevice = async (): Promise<never> => {
  throw new AppError('unavailable', 'this test has no such device')
}

export const fakeNative = (given: Partial<Native> = {}): Native => ({
  require: async () => {},
  openHid: noDevice,
  openUsb: noDevice,
  openI2c: noDevice,
  openSpi: noDevice,
  listHid: async () => [],
  listUsb: async () => [],
  ...given,
})

export interface Plug {
  /** A test sets `out` for an unplugged device and `silent` for one that does not answer. */
  state: 'in' | 'out' | 'silent'
  /** The number of ports that are open. */
  open: number
  /** Changes each answer before it is returned. */
  garble: (answer: Uint8Array) => Uint8Array
}

export const plug = (): Plug => ({ state: 'in', open: 0, garble: (answer) => answer })

const refuseIfOut = ({ state }: Plug): void => {
  if (state === 'out') throw new Error('ENODEV: no such device')
}

export function hidPort(chip: { answer(report: Uint8Array): Uint8Array }, device: Plug): HidPort {
  const answers: Uint8Array[] = []
  device.open++
  return {
    async write(report) {
      refuseIfOut(device)
      answers.push(device.garble(chip.answer(report)))
    },
    async read() {
      refuseIfOut(device)
      return device.state === 'silent' ? new Uint8Array() : (answers.shift() ?? new Uint8Array())
    },
    async close() {
      device.open--
    },
  }
}

export function usbPort(chip: { answer(packet: Uint8Array): Uint8Array }, device: Plug): UsbPort {
  const answers: Uint8Array[] = []
  device.open++
  return {
    async send(packet) {
      refuseIfOut(device)
      const answer = chip.answer(packet)
      if (answer.length > 0) answers.push(device.garble(answer))
    },
    async receive(bytesMax) {
      refuseIfOut(device)
      const answer = answers.shift()
      if (!answer || device.state === 'silent') throw new Error('transfer timed out')
      return answer.subarray(0, bytesMax)
    },
    async close() {
      device.open--
    },
  }
}
