/** Runs the commands of README in a shell next to a running daemon. */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Daemon, startDaemon } from '@sluice/daemon'
import { systemClock } from '@sluice/kit'
import { newToken } from '@sluice/runtime'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { always } from '../../../profiles/always.ts'
import { environment, ROOT } from '../daemons/bundle.ts'

const SHELL_MS_MAX = 60_000

let home: string
let daemon: Daemon
beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'readme-'))
  const dataDir = join(home, '.sluice')
  mkdirSync(dataDir, { mode: 0o700 })
  // A checkout in which the built command runs from source.
  mkdirSync(join(home, 'dist/full'), { recursive: true })
  writeFileSync(join(home, 'dist/full/sluice.mjs'), `await import(${JSON.stringify(join(ROOT, 'profiles/full.ts'))})\n`)
  writeFileSync(join(home, 'package.json'), JSON.stringify({ scripts: { sluice: 'node dist/full/sluice.mjs' } }))
  symlinkSync(join(ROOT, 'examples'), join(home, 'examples'))
  const configFile = join(dataDir, 'config.toml')
  daemon = await startDaemon({ features: always, dataDir, configFile, env: {}, profile: 'test', version: '0', host: '127.0.0.1', port: 0 })
})
afterEach(async () => {
  await daemon.stop()
  rmSync(home, { recursive: true, force: true })
})

function blockBelow(heading: string): string {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
  // The commands must also work where the machine's own Node is too old for the built command.
  expect(readme).not.toContain('node dist/')
  const block = /```sh\n([\s\S]*?)```/.exec(readme.slice(readme.indexOf(heading)))?.[1]
  return block?.replaceAll('http://127.0.0.1:42617', daemon.url) ?? expect.fail(`README.md has no shell commands below "${heading}".`)
}

const run = (heading: string, env: Record<string, string> = {}) =>
  promisify(execFile)('sh', ['-euc', blockBelow(heading)], {
    cwd: home,
    env: environment({ HOME: home, PATH: `${join(process.execPath, '..')}:${process.env.PATH}`, ...env }),
    timeout: SHELL_MS_MAX,
  })

test(
  'the first message of README.md is answered',
  async () => {
    expect(JSON.parse((await run('## The first message')).stdout)).toMatchObject({ response: expect.stringContaining('hello') })
  },
  SHELL_MS_MAX,
)

test(
  'the procedure of README.md runs, waits for approval and ends, all in one paste',
  async () => {
    const { token } = await newToken(daemon.runtime.store, { name: 'readme', expiresAtMs: null, role: 'operator' }, systemClock)
    const { stdout } = await run('## A procedure', { TOKEN: token })
    expect(stdout).toMatch(/waits for a person: sluice approvals approve \S+ step-2/)
    expect(stdout).toMatch(/approved \S+ step-2/)
    expect(stdout).toContain('none changed, missing or inserted')
    const live = join(home, '.sluice/workspace/releases/live.txt')
    await expect.poll(() => existsSync(live) && readFileSync(live, 'utf8')).toBe('v1.4.0')
  },
  SHELL_MS_MAX,
)
