/** The no-op sandbox: always there, confines nothing (§2.7 rule 11). */
import { AppError, type Sandbox } from '@sluice/sdk'

export const noSandbox: Sandbox = {
  name: 'none',
  strength: 0,
  probe: async () => ({ available: true, detail: 'runs commands as they are, without isolation' }),
  wrap: (command) => command,
}

/** Stands where a sandbox is required and none works: starts nothing and says why. */
export const refusingSandbox = (why: string): Sandbox => ({
  name: 'unavailable',
  strength: 0,
  probe: async () => ({ available: false, detail: why }),
  wrap: () => {
    throw new AppError('unavailable', why)
  },
})
