/** The line to a device, by its transport. */
import { AppError, type Host } from '@sluice/sdk'
import type { Device, Port } from '../devices.ts'
import type { BoardLine } from './board-line.ts'
import { createBridgeLine } from './bridge-line.ts'
import { createNativeLine } from './native-line.ts'
import { createProtocolLine } from './protocol-line.ts'
import { createSimBoard } from './sim-board.ts'

export interface LineOptions {
  /** As it is now: its port changes when it is plugged in elsewhere. */
  readonly device: () => Device
  readonly host: Host
  readonly openSerial: (path: string, baud: number, signal: AbortSignal) => Promise<Port>
  readonly onSignal: (signal: string, value: unknown) => void
}

export function createLine({ device, host, openSerial, onSignal }: LineOptions): BoardLine {
  const { alias: name, transport, path, board } = device()
  const { clock, log } = host
  const onUnwatched = (pin: number, error: unknown): void =>
    log.warn('a board does not watch a pin that a procedure waits for', { device: name, pin, error })
  switch (transport) {
    case 'native':
      return createNativeLine(host, name)
    case 'bridge':
      return createBridgeLine({ name, address: path ?? '', clock })
    case 'sim': {
      const sim = createSimBoard(board?.name ?? name, board)
      return createProtocolLine({ name, clock, onSignal, onUnwatched, open: async () => sim.open() })
    }
    case 'serial': {
      const open = async (signal: AbortSignal): Promise<Port> => {
        const { connected, path: now, baud } = device()
        if (!connected || now === null) throw new AppError('unavailable', `${name} is not connected`)
        return openSerial(now, baud, signal)
      }
      return createProtocolLine({ name, clock, onSignal, onUnwatched, open })
    }
  }
}
