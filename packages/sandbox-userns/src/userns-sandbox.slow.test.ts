import { existsSync, rmSync } from 'node:fs'
import { runBare } from '@sluice/testkit/run-bare'
import { afterAll, describe, expect, test } from 'vitest'
import { probedUserns } from './testing/probed-userns.ts'

/** A folder below a visible folder of programs, as a data directory may be. */
const HIDDEN = '/usr/local/share'
const { folder, sandbox, available } = await probedUserns({ hidden: HIDDEN })
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('userns sandbox', () => {
  test.skipIf(!available || !existsSync(HIDDEN))('hides a data directory below a folder of programs', async () => {
    const look = { file: 'sh', args: ['-c', `ls ${HIDDEN}; : > ${HIDDEN}/new`], cwd: '/tmp', env: {} }
    const command = await sandbox.wrap(look, { writable: [], network: false })
    const { exitCode, stdout, stderr } = await runBare(command, new AbortController().signal).finally(() => command.release?.(runBare))
    expect(stdout).toBe('')
    expect(exitCode).not.toBe(0)
    expect(stderr).toMatch(/Read-only file system/)
  })

  test.skipIf(!available)('a probe does not affect commands wrapped before or during it', async () => {
    const { signal } = new AbortController()
    const wrap = async () => sandbox.wrap({ file: 'true', args: [], cwd: '/tmp', env: {} }, { writable: [], network: false })
    const commands = [await wrap()]
    const probed = sandbox.probe(signal, async (...given) => {
      commands.push(await wrap())
      return runBare(...given)
    })
    expect(await probed).toMatchObject({ available: true })
    expect(commands.length).toBeGreaterThan(1)
    for (const command of commands) {
      expect(await runBare(command, signal).finally(() => command.release?.(runBare))).toMatchObject({ exitCode: 0 })
    }
  })
})
