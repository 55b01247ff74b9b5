/** Which Chromium there is. */
import { existsSync } from 'node:fs'
import { access, constants } from 'node:fs/promises'
import { findProgram, hasProgram, missingPackages } from '@sluice/kit'
import { AppError } from '@sluice/sdk'

const PROGRAMS = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome', 'microsoft-edge-stable', 'microsoft-edge']
const PLACES: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: [
    '/Applications/Chromium.app/Contents/MacOS/Chromium',
    '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
    '/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge',
  ],
}

export const CHROMIUM_HINT = 'install Chromium (Debian: apt install chromium), or name one by native_chrome_path under [browser]'

/** `configured`, or the first that is found. Throws `unavailable` with what to do. */
export async function findChromium(configured?: string): Promise<string> {
  if (configured !== undefined) {
    if (await isExecutable(configured)) return configured
    throw new AppError('unavailable', `'${configured}' (native_chrome_path under [browser]) is no program`)
  }
  for (const name of PROGRAMS) {
    const path = await findProgram(name)
    if (path !== undefined) return path
  }
  for (const path of PLACES[process.platform] ?? []) if (await isExecutable(path)) return path
  throw new AppError('unavailable', `there is no Chromium on this machine: ${CHROMIUM_HINT}`)
}

/** Says what keeps a browser from being driven in process; a quick look that starts nothing. */
export function lacksNative(configured?: string): string | undefined {
  const missing = missingPackages(['playwright-core'], import.meta.url)
  if (missing !== undefined) return missing
  const isThere =
    configured === undefined
      ? PROGRAMS.some(hasProgram) || (PLACES[process.platform] ?? []).some((path) => existsSync(path))
      : existsSync(configured)
  return isThere ? undefined : `there is no Chromium: ${CHROMIUM_HINT}`
}

const isExecutable = (path: string): Promise<boolean> =>
  access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
