/** The pins of this very machine, by the feature that reaches them. */
import { AppError, buildHint, type Host, type NativeGpio } from '@sluice/sdk'
import { type BoardLine, SAYS_NOTHING } from './board-line.ts'

export function createNativeLine(host: Pick<Host, 'service'>, name: string): BoardLine {
  const gpio = (): NativeGpio => {
    const service = host.service('nativeGpio')
    if (service) return service
    throw new AppError(
      'unavailable',
      `${name} is this machine, whose pins this build or this machine does not have: ${buildHint('hardware-sbc')}`,
    )
  }
  return {
    capabilities: async () => {
      gpio()
      return SAYS_NOTHING
    },
    read: async (pin) => gpio().read(pin),
    write: async (pin, value) => gpio().write(pin, value),
    withPort: async () => {
      throw new AppError('invalid_request', `${name} is this machine: there is no port to it`)
    },
    listen: () => undefined,
    drop: async () => undefined,
    close: async () => undefined,
  }
}
