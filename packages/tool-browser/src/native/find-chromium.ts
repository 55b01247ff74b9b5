/** Finds an installed Chromium. */
import { existsSync } from 'node:fs'
import { access, constants } from 'node:fs/promises'
import { findProgram, hasProgram } from '@sluice/kit'
import { AppError, howToGet, type Services } from '@sluice/sdk'

const PROGRAMS = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome', 'microsoft-edge-stable', 'microsoft-edge']
/** Where browsers are installed on systems that do not put them on the PATH. */
const PATHS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: [
    '/Applications/Chromium.app/Contents/MacOS/Chromium',
    '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
    '/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge',
  ],
}

/** Why the backend `native` cannot be used in a build without it. */
export const notInBuild = (): string => `this build has no backend "native": ${howToGet('tool-browser-native')}`

export const CHROMIUM_HINT = 'install Chromium (Debian: apt install chromium), or set native_chrome_path under [browser]'

/** Returns the path of the configured browser, or of the first one found. Throws `unavailable` with a hint on a machine without one. */
export async function findChromium(configured?: string): Promise<string> {
  if (configured !== undefined) {
    if (await isExecutable(configured)) return configured
    throw new AppError('unavailable', `'${configured}' (native_chrome_path under [browser]) is not an executable file`)
  }
  for (const name of PROGRAMS) {
    const path = await findProgram(name)
    if (path !== undefined) return path
  }
  for (const path of PATHS[process.platform] ?? []) if (await isExecutable(path)) return path
  throw new AppError('unavailable', `Chromium is not installed: ${CHROMIUM_HINT}`)
}

/** Returns what the backend `native` is missing on this machine. A quick check that starts no program. */
export function missingForNative(library: Services['browserLibrary'] | undefined, configured?: string): string | undefined {
  const missing = library ? library.missing() : notInBuild()
  if (missing !== undefined) return missing
  const isInstalled =
    configured === undefined
      ? PROGRAMS.some(hasProgram) || (PATHS[process.platform] ?? []).some((path) => existsSync(path))
      : existsSync(configured)
  return isInstalled ? undefined : `Chromium is not installed: ${CHROMIUM_HINT}`
}

const isExecutable = (path: string): Promise<boolean> =>
  access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
