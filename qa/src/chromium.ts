/** Finds the Chromium for tests, which `npm run test:browser` runs: the installed one, or Debian's package. */
import { type DebianProgram, debianProgram, type MissingProgram } from './debian-program.ts'

const CHROMIUM = 'usr/lib/chromium/chromium'

/** The tests of a browser are slow, so `npm test` skips them. */
export async function testChromium(): Promise<DebianProgram | MissingProgram> {
  if (!process.env.SLUICE_BROWSER) return { missing: 'slow; `pnpm test:browser` runs it' }
  return await debianProgram({ packages: ['chromium'], program: CHROMIUM })
}
