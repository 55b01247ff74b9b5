/** The Chromium that tests drive: the installed one, or with `SLUICE_BROWSER`, as `npm run test:browser` sets it, Debian's package. */
import { type DebianProgram, debianProgram, installedProgram, type MissingProgram } from './debian-program.ts'

const CHROMIUM = 'usr/lib/chromium/chromium'
const MISSING = 'chromium is not installed; npm run test:browser fetches it'

/** Without the variable tests of a missing browser are left out; with it the suite fails. */
export async function testChromium(): Promise<DebianProgram | MissingProgram> {
  if (!process.env.SLUICE_BROWSER) return (await installedProgram(CHROMIUM)) ?? { missing: MISSING }
  const found = await debianProgram({ packages: ['chromium'], program: CHROMIUM })
  if ('missing' in found) throw new Error(`the browser tests cannot run: ${found.missing}`)
  return found
}
