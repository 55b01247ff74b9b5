/** Runs the commands of each guide in `docs/guides` with the built command of the full profile on the PATH. */
import { existsSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parseGuide, readGuides } from './guide.ts'
import { type PreparedGuide, prepareGuide, runGuide } from './run-guide.ts'
import { sandboxProblem } from './sandbox.ts'

const GUIDE_MS_MAX = 600_000

const problem = await sandboxProblem()
const prepared: PreparedGuide[] = []
for (const guide of readGuides()) if (guide.blocks.some(({ language }) => language === 'sh')) prepared.push(await prepareGuide(guide))

describe.skipIf(problem !== undefined)(`the runner${problem === undefined ? '' : ` (skipped: ${problem})`}`, () => {
  const run = (markdown: string) => runGuide({ guide: parseGuide('page.md', markdown), packages: [] }, GUIDE_MS_MAX)
  const SH = '```sh'

  test('keeps variables and the folder between blocks, and runs the built command', { timeout: GUIDE_MS_MAX }, async () => {
    await run(
      `${SH}\nNAME=$(sluice --version)\nmkdir own && cd own\n\`\`\`\n${SH}\n[ -n "$NAME" ] && [ "$(basename "$PWD")" = own ]\n\`\`\`\n`,
    )
  })

  test('fails with the block and its output', { timeout: GUIDE_MS_MAX }, async () => {
    const page = `${SH}\ntrue\n\`\`\`\n\n${SH}\necho before\nfalse\necho after\n\`\`\`\n`
    const error = await run(page).catch((reason: Error) => reason.message)
    expect(error).toContain('docs/guides/page.md: the block at line 5 ended with 1.\n')
    expect(error).toContain('before')
    expect(error).not.toContain('after')
  })

  test('writes blocks with a file name, and changes nothing outside', { timeout: GUIDE_MS_MAX }, async () => {
    const file = '<!-- file: /etc/sluice-guide/a.conf -->\n```nginx\nhello\n```\n'
    await run(`${file}${SH}\n[ "$(cat /etc/sluice-guide/a.conf)" = hello ]\nsudo touch /usr/local/bin/x-guide\n\`\`\`\n`)
    expect(['/etc/sluice-guide', '/usr/local/bin/x-guide'].filter((path) => existsSync(path))).toEqual([])
  })

  test('starts a daemon for a guide that needs one, and ends it', { timeout: GUIDE_MS_MAX }, async () => {
    await run(`<!-- needs: daemon -->\n${SH}\nsluice status\n(sleep 3600 &)\n\`\`\`\n`)
  })
})

describe.skipIf(prepared.length === 0)('the commands of docs/guides', () => {
  for (const { guide, missing, packages } of prepared) {
    const why = missing === undefined ? '' : ` (skipped: ${missing})`
    test.skipIf(missing !== undefined)(`${guide.name} succeed${why}`, { timeout: GUIDE_MS_MAX }, async () => {
      await runGuide({ guide, packages }, GUIDE_MS_MAX - 10_000)
    })
  }
})
