// Backups of a database of a gigabyte: their cost for messages that arrive meanwhile, and the speed of a restore.
import { copyFileSync, fsyncSync, mkdtempSync, openSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { runNode } from '../lib/processes.mjs'
import { newDataDir, runLoad, sluiceBundle, startBare, startSluice } from '../lib/sluice.mjs'
import { ingressConfig } from './ingress.mjs'

const GIGABYTE = 1_000_000_000
const ROW_BYTES = 100_000
const PACED = { connections: 16, perSec: 100, secs: 40 }
/** Longer than any load, so that no turn ends during one. */
const MODEL_SECS = 300
const PROFILE = 'minimal'

/** Adds a conversation of this size to the database of a stopped daemon. */
function fill(file, bytes) {
  const db = new DatabaseSync(file)
  db.exec("BEGIN; INSERT INTO sessions (id, created_at, last_active_at, message_count) VALUES ('bench/large', 1, 1, 0)")
  const { number } = db.prepare("SELECT number FROM sessions WHERE id = 'bench/large'").get()
  const add = db.prepare('INSERT INTO messages (session, up_to, messages_json, at) VALUES (?, ?, ?, 1)')
  for (let row = 0; row * ROW_BYTES < bytes; row++) add.run(number, row, JSON.stringify('x'.repeat(ROW_BYTES - 100)))
  db.exec('COMMIT; PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
}

const secsOf = async (work) => {
  const startMs = performance.now()
  await work()
  return (performance.now() - startMs) / 1000
}

function copyPlainly(from, to) {
  copyFileSync(from, to)
  fsyncSync(openSync(to, 'r+'))
}

export async function measureBackup({ scratch, rounds, scale, note }) {
  return rounds({ full: 3, quick: 1 }, async () => {
    const own = mkdtempSync(join(scratch, 'backup-'))
    const model = await startBare({ scratch: own, name: 'model', args: [String(MODEL_SECS)] })
    try {
      const dataDir = newDataDir(own)
      const config = ingressConfig({ modelUrl: model.url, retentionMb: 100_000 })
      const start = () => startSluice({ scratch: own, dataDir, config, profile: PROFILE })
      await (await start()).stop()
      fill(join(dataDir, 'sluice.db'), scale(GIGABYTE))
      const server = await start()
      const file = join(own, 'one.tar')
      const load = () => runLoad({ scratch: own, name: 'paced', job: { url: server.url, ...PACED } })
      const command = (...args) => runNode({ scratch: own, args: [sluiceBundle(PROFILE), ...args, '--data-dir', dataDir] })
      await load()
      const idle = await load()
      let busy
      const backupSecs = await secsOf(async () => {
        const backup = command('backup', file)
        busy = await load()
        await backup
      })
      await server.stop()
      const { size } = statSync(file)
      const restoreSecs = await secsOf(() => command('restore', file))
      const copySecs = await secsOf(async () => copyPlainly(file, join(own, 'copy')))
      note(
        `backup ${size} bytes in ${backupSecs.toFixed(1)} s or less, p99 ${idle.p99Ms.toFixed(1)} ms idle and ${busy.p99Ms.toFixed(1)} ms`,
      )
      const perSec = (secs) => size / 1_000_000 / secs
      return {
        'backup-ingress': { ours: busy.p99Ms, bare: idle.p99Ms, detail: { idle, busy } },
        'backup-restore': { ours: perSec(restoreSecs), bare: perSec(copySecs) },
      }
    } finally {
      await model.stop()
      rmSync(own, { recursive: true, force: true })
    }
  })
}
