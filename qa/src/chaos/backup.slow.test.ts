/** Kills the built command at any time of a backup, a restore and a rotation: the files are wholly old or wholly new. */
import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { bundle, environment, run, scratch, startDaemon } from '../daemons/bundle.ts'

const TIMEOUT = { timeout: 600_000 }
const ROUNDS = 12
const FILES = 300

/** Starts a command and kills it after a time, unless it ends before. Resolves to whether it ended by itself. */
async function killed(args: readonly string[], afterMs: number): Promise<boolean> {
  const child = spawn(process.execPath, [bundle('full'), ...args], { stdio: 'ignore', env: environment() })
  const exited = once(child, 'exit')
  const isDone = await Promise.race([exited.then(() => true), sleep(afterMs, false)])
  if (!isDone) child.kill('SIGKILL')
  await exited
  return isDone
}

async function succeed(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run('full', args)
  expect([code, stderr]).toEqual([0, expect.anything()])
  return stdout
}

const fill = (dir: string, text: string): void => {
  mkdirSync(join(dir, 'workspace'), { recursive: true })
  for (let number = 0; number < FILES; number++) writeFileSync(join(dir, 'workspace', `${number}`), `${text} ${number}`)
}

/** Returns the generation of the files, which is one: `then` or `now`. */
function generation(dir: string): string {
  const texts = new Set(readdirSync(join(dir, 'workspace')).map((name) => readFileSync(join(dir, 'workspace', name), 'utf8').split(' ')[0]))
  expect([texts.size, readdirSync(join(dir, 'workspace')).length]).toEqual([1, FILES])
  return [...texts].join()
}

/** The times at which a command of `tookMs` is killed. */
const times = (tookMs: number): number[] => Array.from({ length: ROUNDS }, (_, round) => Math.round(((round + 1) * tookMs) / (ROUNDS + 1)))

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now()
  await work()
  return performance.now() - startMs
}

test('a backup that is killed leaves no file of its name', TIMEOUT, async () => {
  const { dir, dispose } = scratch('[provider]\nkind = "offline"\n')
  const daemon = await startDaemon('full', dir)
  try {
    fill(dir, 'then')
    const file = join(dir, 'backups', 'one.tar')
    mkdirSync(join(dir, 'backups'))
    const tookMs = await timed(() => succeed('backup', file, '--data-dir', dir))
    for (const afterMs of times(tookMs)) {
      rmSync(file, { force: true })
      await killed(['backup', file, '--data-dir', dir], afterMs)
      if (existsSync(file)) await succeed('restore', '--check', file, '--data-dir', dir)
    }
  } finally {
    daemon.kill('SIGTERM')
    await daemon.exited
    dispose()
  }
})

// Only root may mount a file system.
test.skipIf(process.getuid?.() !== 0)('a backup on a full disk fails and leaves nothing there', TIMEOUT, async () => {
  const { dir, dispose } = scratch('[provider]\nkind = "offline"\n')
  const disk = join(dir, 'disk')
  mkdirSync(disk)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=512k', 'sluice-test', disk])
  const daemon = await startDaemon('full', dir)
  try {
    fill(dir, 'then')
    writeFileSync(join(dir, 'workspace', 'large'), randomBytes(2 ** 20))
    const { code, stderr } = await run('full', ['backup', join(disk, 'one.tar'), '--data-dir', dir])
    expect([code, stderr]).toEqual([1, expect.stringContaining('Make room, or write the backup to another disk.')])
    expect(readdirSync(disk)).toEqual([])
    await succeed('backup', join(dir, 'one.tar'), '--data-dir', dir)
  } finally {
    daemon.kill('SIGTERM')
    await daemon.exited
    execFileSync('umount', [disk])
    dispose()
  }
})

test('a restore that is killed leaves the old data or the new', TIMEOUT, async () => {
  const { dir, dispose } = scratch('[provider]\nkind = "offline"\n')
  try {
    const file = join(dir, 'backups', 'one.tar')
    mkdirSync(join(dir, 'backups'))
    await succeed('pair', 'token', '--name', 'then', '--data-dir', dir)
    fill(dir, 'then')
    await succeed('backup', file, '--data-dir', dir)
    const restore = ['restore', file, '--data-dir', dir]
    const tookMs = await timed(() => succeed(...restore))
    const seen = new Set<string>()
    for (const afterMs of times(tookMs)) {
      rmSync(join(dir, 'workspace'), { recursive: true })
      fill(dir, 'now')
      await succeed('pair', 'token', '--name', 'now', '--data-dir', dir)
      await killed(restore, afterMs)
      // Every command finishes a restore that was decided.
      const devices = (JSON.parse(await succeed('pair', 'list', '--json', '--data-dir', dir)) as { name: string }[]).map(({ name }) => name)
      const found = generation(dir)
      expect(devices.includes('now')).toBe(found === 'now')
      expect(devices).toContain('then')
      seen.add(found)
      for (const name of readdirSync(dir)) if (name.startsWith('before-restore-')) rmSync(join(dir, name), { recursive: true })
    }
    expect(seen).toContain('now')
    await succeed(...restore)
    expect([generation(dir), readdirSync(dir).filter((name) => name.startsWith('.restore-'))]).toEqual(['then', []])
  } finally {
    dispose()
  }
})

test('a rotation of the key that is killed loses no secret, next to a daemon', TIMEOUT, async () => {
  const { dir, dispose } = scratch('[provider]\nkind = "offline"\n\n[gateway]\nrequire_pairing = false\n')
  await succeed('config', 'set', 'gateway.webhook_secret', 'hidden', '--data-dir', dir)
  const daemon = await startDaemon('full', dir)
  try {
    const ask = async (secret: string): Promise<number> => {
      const headers = { 'content-type': 'application/json', 'x-webhook-secret': secret }
      return (await fetch(`${daemon.url}/webhook`, { method: 'POST', headers, body: '{"message":"hello"}' })).status
    }
    const rotate = ['secrets', 'rotate', '--data-dir', dir]
    const tookMs = await timed(() => succeed(...rotate))
    for (const afterMs of times(tookMs)) {
      await killed(rotate, afterMs)
      // A new process and the running daemon read the secret, whichever key it has.
      await succeed('config', 'check', '--data-dir', dir)
      expect(await ask('hidden')).toBe(200)
      expect(await ask('wrong')).toBe(401)
    }
    await succeed(...rotate)
    expect(readFileSync(join(dir, 'secret.key'), 'utf8')).toMatch(/^[0-9a-f]{64}\n$/)
    await succeed('config', 'check', '--data-dir', dir)
  } finally {
    daemon.kill('SIGTERM')
    await daemon.exited
    dispose()
  }
})
