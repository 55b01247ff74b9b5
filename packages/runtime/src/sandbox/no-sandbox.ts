/** Two stand-ins for a sandbox backend: one that confines nothing, and one that refuses every command. */
import { AppError, type Sandbox } from '@sluice/sdk'

export const noSandbox: Sandbox = {
  name: 'none',
  strength: 0,
  probe: async () => ({ available: true, detail: 'runs commands as they are, without isolation' }),
  wrap: (command) => command,
}

/** The name of the sandbox that refuses every command. */
export const REFUSING = 'unavailable'

/** The choice where no sandbox works and commands must not run without one: it starts nothing, and says why. */
export const refusingSandbox = (why: string): Sandbox => ({
  name: REFUSING,
  strength: 0,
  probe: async () => ({ available: false, detail: why }),
  wrap: () => {
    throw new AppError('unavailable', why)
  },
})
