// The size of the minimal profile: the code that the daemon has loaded before its first turn, and all code.
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { timeToFirstAnswer } from '../lib/first-answer.mjs'
import { bundleReport, distFolder, newDataDir, sluiceBundle } from '../lib/sluice.mjs'

/** Code that is loaded in the background just after the start counts as loaded before the first turn. */
const SETTLE_MS = 1000
const RECORDER = pathToFileURL(join(import.meta.dirname, '../lib/record-loads.mjs'))

/** Returns the files of the profile that a daemon has loaded before its first turn. */
async function loadedFiles(scratch) {
  const record = join(scratch, 'loaded.txt')
  const dataDir = newDataDir(scratch)
  const recorder = `${RECORDER}?to=${encodeURIComponent(record)}`
  const argsFor = (port) => ['--import', recorder, sluiceBundle('minimal'), 'daemon', '--data-dir', dataDir, '--port', String(port)]
  const server = await timeToFirstAnswer({ scratch, argsFor })
  await sleep(SETTLE_MS)
  const urls = new Set(readFileSync(record, 'utf8').trim().split('\n'))
  await server.stop()
  return [...urls].map((url) => fileURLToPath(url)).filter((file) => file.startsWith(distFolder('minimal')))
}

export async function measureSize({ scratch }) {
  const files = await loadedFiles(scratch)
  const bytes = files.reduce((sum, file) => sum + statSync(file).size, 0)
  return [
    {
      'size-before-first-turn': { ours: bytes / 1000, detail: { files: files.length } },
      'size-in-all': { ours: bundleReport('minimal').totalBytes / 1000 },
    },
  ]
}
