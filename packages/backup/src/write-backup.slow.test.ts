import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { openStore } from '@sluice/store'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readArchive } from './archive.ts'
import { type BackupOptions, writeBackup } from './write-backup.ts'

const WRITER = resolve(import.meta.dirname, '../../store/fixtures/answer-messages.ts')

let folder: string
let dataDir: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'backup-'))
  dataDir = join(folder, 'data')
  mkdirSync(dataDir)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const file = (): string => join(folder, 'one.tar')

const backup = async (options: Partial<BackupOptions>): Promise<void> => {
  const fixed = { configFile: join(dataDir, 'config.toml'), dataDir, features: [], env: {}, version: '1.2.3', withSecrets: false }
  await writeBackup({ file: file(), ...fixed, isPaced: false, ...options })
}

/** Returns the texts of the files in a backup. */
async function contents(passphrase?: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  await readArchive({
    file: file(),
    passphrase: async () => passphrase,
    async take({ path, type, chunks }) {
      const parts: Uint8Array[] = []
      for await (const chunk of chunks) parts.push(chunk)
      if (type !== 'directory') found[path] = Buffer.concat(parts).toString('latin1')
    },
  })
  return found
}

test('a backup can be encrypted', async () => {
  await openStore({ file: join(dataDir, 'sluice.db'), clock: testClock(), log: testHost().log }).close()
  mkdirSync(join(dataDir, 'workspace'))
  writeFileSync(join(dataDir, 'workspace/notes.md'), 'notes in the clear')
  await backup({ passphrase: 'open sesame' })
  expect(readFileSync(file(), 'latin1')).not.toContain('notes in the clear')
  expect(await contents('open sesame')).toMatchObject({ 'workspace/notes.md': 'notes in the clear' })
  await expect(contents()).rejects.toThrow('its passphrase is needed')
})

test('a backup of a database under load is consistent and has everything that was acknowledged before it', async () => {
  const database = join(dataDir, 'sluice.db')
  const child = spawn(process.execPath, [WRITER, database], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const acknowledged: string[] = []
  const lines = createInterface(child.stdout).on('line', (line) => acknowledged.push(line))
  const reach = async (count: number): Promise<void> => {
    while (acknowledged.length < count) await once(lines, 'line')
  }
  try {
    for (let round = 1; round <= 2; round++) {
      await reach(round * 1000)
      const before = [...acknowledged]
      await backup({ isPaced: round % 2 === 0 })
      const restored = join(folder, `restored-${round}`)
      mkdirSync(restored)
      for (const [path, text] of Object.entries(await contents())) {
        if (path.startsWith('sluice.db')) writeFileSync(join(restored, path), text, 'latin1')
      }
      rmSync(file())
      const store = openStore({ file: join(restored, 'sluice.db'), clock: testClock(Date.now()), log: testHost().log })
      expect(await store.check()).toEqual([])
      const rows = await store.inbox.list({ limit: 100_000 })
      const stateOf = new Map(rows.map(({ messageId, state }) => [messageId, state]))
      for (const line of before) {
        const [what, id = ''] = line.split(' ')
        expect(stateOf.get(id), line).toEqual(what === 'answered' ? 'done' : expect.any(String))
      }
      // A turn and the end of its message are one commit, so a backup has both or none.
      for (const { messageId, state } of rows) {
        const turn = await store.turns.get(`turn of ${messageId}`)
        expect(turn?.status === 'done').toBe(state === 'done')
      }
      await store.close()
    }
  } finally {
    child.kill('SIGKILL')
    await exited
  }
})
