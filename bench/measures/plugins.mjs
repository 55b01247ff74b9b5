// The time of a warm and of a first plugin call, compared with the same function in plain JavaScript in a worker.
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { runLoad } from '../lib/sluice.mjs'

export async function measurePlugins({ scratch, rounds, scale }) {
  return rounds({ full: 5, quick: 1 }, async () => {
    const own = mkdtempSync(join(scratch, 'plugins-'))
    const job = { scratch: own, slices: scale(40), calls: 250, colds: scale(20) }
    const { ours, bare, coldMs, bareColdMs } = await runLoad({ scratch, name: 'plugins', job })
    rmSync(own, { recursive: true, force: true })
    return { 'plugin-warm': { ours, bare }, 'plugin-cold': { ours: coldMs, bare: bareColdMs } }
  })
}
