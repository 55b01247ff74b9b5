/** A delivery of GitHub starts one run, although it is repeated at once and after the daemon was killed. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { sluiceWith } from '../daemons/run-command.ts'
import { type SourceDaemon, startSourceDaemon } from '../daemons/source-daemon.ts'

let dataDir: string
let daemon: SourceDaemon | undefined

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'senders-'))
  const folder = join(dataDir, 'sops', 'push')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(dataDir, 'config.toml'), '[sop.secrets]\ngithub = "the secret of the repository"\n')
  const trigger = `type = "webhook"\npath = "/github"\nauth = "github"\nsecret = "github"\ncondition = '$header.X-GitHub-Event == push'`
  writeFileSync(join(folder, 'SOP.toml'), `[sop]\nname = "push"\ndescription = "A push"\nmax_concurrent = 10\n[[triggers]]\n${trigger}\n`)
  writeFileSync(join(folder, 'SOP.md'), '## Steps\n\n1. **Look** - Wait for a person.\n   - kind: checkpoint\n2. **Go on** - Do it.\n')
})
afterEach(async () => {
  await daemon?.kill()
  rmSync(dataDir, { recursive: true })
})

const sluice = (...argv: string[]) => sluiceWith([])(...argv, '--data-dir', dataDir)

/** Sends a delivery and returns its answer without the time it took. */
async function deliver(id: string, event = 'push') {
  const { out } = await sluice('webhook', 'send', '--path', '/github', '--event', event, '--id', id, '--json')
  const { status, answer } = JSON.parse(out)
  return { status, answer }
}

test('a repeated delivery starts nothing and gets the first answer, at once and after a crash', async () => {
  daemon = await startSourceDaemon(dataDir)
  const [first, ...others] = await Promise.all(Array.from({ length: 5 }, () => deliver('delivery-1')))
  expect(first).toMatchObject({ status: 200, answer: { results: [{ sop: 'push', status: 'started' }] } })
  for (const other of others) expect(other).toEqual(first)
  await daemon.kill()
  daemon = await startSourceDaemon(dataDir)
  expect(await deliver('delivery-1')).toEqual(first)
  expect(await deliver('delivery-2')).not.toEqual(first)
  expect(await deliver('delivery-3', 'ping')).toEqual({ status: 200, answer: { status: 'test' } })
  const runs = JSON.parse((await sluice('sop', 'runs', '--json')).out)
  expect(runs).toHaveLength(2)
  expect((await sluice('webhook', 'send', '--path', '/github', '--bad-signature')).code).toBe(0)
}, 60_000)
