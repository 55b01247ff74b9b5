/** Finds the Chromium for tests: the installed one or, with `SLUICE_BROWSER`, which `npm run test:browser` sets, Debian's package. */
import { type DebianProgram, debianProgram, installedProgram, type MissingProgram } from './debian-program.ts'

const CHROMIUM = 'usr/lib/chromium/chromium'
const MISSING = 'chromium is not installed; npm run test:browser downloads it'

/** Without `SLUICE_BROWSER`, tests are skipped if there is no browser; with it, this function throws. */
export async function testChromium(): Promise<DebianProgram | MissingProgram> {
  if (!process.env.SLUICE_BROWSER) return (await installedProgram(CHROMIUM)) ?? { missing: MISSING }
  const found = await debianProgram({ packages: ['chromium'], program: CHROMIUM })
  if ('missing' in found) throw new Error(`the browser tests cannot run: ${found.missing}`)
  return found
}
