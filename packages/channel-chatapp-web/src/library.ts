/**
 * Loads the protocol library baileys. No build contains it: it depends on libsignal, which has the licence GPL-3.0, so operators install
 * it themselves with `sluice native install`.
 */
import { installPackage, missingPackages } from '@sluice/kit'
import { AppError, errorText } from '@sluice/sdk'
import { isSignedBy } from './xeddsa.ts'

const NAME = '@whiskeysockets/baileys'

export type Library = typeof import('@whiskeysockets/baileys')

/** What operators read before they install the library. */
export const LICENCE_NOTE = `${NAME} has the licence MIT, and its dependency libsignal has the licence GPL-3.0, so no build contains them`

/** Says that the library is missing and how to install it; undefined if it is there. */
export function missingLibrary(): string | undefined {
  const missing = missingPackages([NAME], import.meta.url)
  return missing && `${missing} (${LICENCE_NOTE})`
}

/** Throws `forbidden` with the instruction to install the library if it is missing. */
export async function loadLibrary(): Promise<Library> {
  try {
    const library = await import('@whiskeysockets/baileys')
    if (library.Curve.verify !== isSignedBy) {
      library.Curve.verify = isSignedBy
      keepSessionsOutOfLogs()
    }
    return library
  } catch (cause) {
    const [why] = errorText(cause).split('\n')
    throw new AppError('forbidden', `The package ${NAME} cannot be loaded (${why}); ${installPackage(NAME)}. ${LICENCE_NOTE}.`, { cause })
  }
}

/** libsignal prints whole sessions with their private keys to the console, and offers no way to turn that off. */
function keepSessionsOutOfLogs(): void {
  for (const method of ['log', 'info', 'warn', 'error'] as const) {
    const print = console[method].bind(console)
    console[method] = (...values: unknown[]) => {
      if (!isCalledByLibsignal()) print(...values)
    }
  }
}

/** The first line of a stack is its message; the lines of this file come before the caller. */
function isCalledByLibsignal(): boolean {
  const { stack = '' } = new Error('stack')
  return /[\\/]libsignal[\\/]/.test(stack.split('\n').slice(1, 5).join('\n'))
}
