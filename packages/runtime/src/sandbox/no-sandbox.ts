/** The no-op sandbox, which confines nothing, and the one that refuses to run anything. */
import { AppError, type Sandbox } from '@sluice/sdk'

export const noSandbox: Sandbox = {
  name: 'none',
  strength: 0,
  probe: async () => ({ available: true, detail: 'runs commands as they are, without isolation' }),
  wrap: (command) => command,
}

export const REFUSING = 'unavailable'

/** Stands where no sandbox works and commands are not to run without one: starts nothing and says why. */
export const refusingSandbox = (why: string): Sandbox => ({
  name: REFUSING,
  strength: 0,
  probe: async () => ({ available: false, detail: why }),
  wrap: () => {
    throw new AppError('unavailable', why)
  },
})
