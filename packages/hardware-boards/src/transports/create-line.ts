/** Creates the line to a device according to its transport. */
import { AppError, type Host, howToGet, type NativeGpio } from '@sluice/sdk'
import type { Device, Port } from '../devices.ts'
import { type BoardLine, NO_CAPABILITIES } from './board-line.ts'
import { BridgeLine } from './bridge-line.ts'
import { ProtocolLine } from './protocol-line.ts'
import { SimBoard } from './sim-board.ts'

export type OpenSerial = (path: string, baud: number, signal: AbortSignal) => Promise<Port>

/** `device` returns the device as it is at that moment, because its port changes when it is plugged in elsewhere. */
export function createLine(
  host: Host,
  device: () => Device,
  openSerial: OpenSerial,
  onSignal: (signal: string, value: unknown) => void,
): BoardLine {
  const { alias: name, transport, path, board } = device()
  const { clock, log } = host
  const listener = {
    onSignal,
    onUnwatched: (pin: number, error: unknown) => log.warn('board did not accept the watch on a pin', { device: name, pin, error }),
  }
  switch (transport) {
    case 'native':
      return nativeLine(host, name)
    case 'bridge':
      return new BridgeLine(name, path ?? '', clock)
    case 'sim': {
      const sim = new SimBoard(board?.name ?? name, board)
      return new ProtocolLine(name, clock, async () => sim.open(), listener)
    }
    case 'serial': {
      const open = async (signal: AbortSignal): Promise<Port> => {
        const { connected, path: now, baud } = device()
        if (!connected || now === null) throw new AppError('unavailable', `${name} is not connected`)
        return openSerial(now, baud, signal)
      }
      return new ProtocolLine(name, clock, open, listener)
    }
  }
}

/** The pins of this machine, through the service of the feature that reaches them. */
function nativeLine(host: Host, name: string): BoardLine {
  const gpio = (): NativeGpio => {
    const service = host.service('nativeGpio')
    if (service) return service
    throw new AppError(
      'unavailable',
      `${name} is this machine, but its pins cannot be reached: it is not a supported single-board computer, or the build has no support for it; to add that, ${howToGet('hardware-sbc')}`,
    )
  }
  return {
    capabilities: async () => {
      gpio()
      return NO_CAPABILITIES
    },
    read: async (pin) => gpio().read(pin),
    write: async (pin, value) => gpio().write(pin, value),
    withPort: async () => {
      throw new AppError('invalid_request', `${name} is this machine, so it has no port`)
    },
    listen: () => undefined,
    drop: async () => undefined,
    close: async () => undefined,
  }
}
