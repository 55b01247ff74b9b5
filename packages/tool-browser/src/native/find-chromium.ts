/** Which Chromium there is. */
import { access, constants } from 'node:fs/promises'
import { AppError, findProgram } from '@sluice/sdk'

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

const isExecutable = (path: string): Promise<boolean> =>
  access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
