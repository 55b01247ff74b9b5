// CPU time of a turn with a scripted model, compared with the full profile of another commit, which `--base` names.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { cpuOfTurns, startAgent } from '../lib/scripted-agent.mjs'
import { sluiceBundle } from '../lib/sluice.mjs'
import { startScriptedModel } from '../servers/scripted-agent-model.mjs'

const WARMUP = 100
const TURNS = 300

async function cpuMs(scratch, model, bundle) {
  const own = mkdtempSync(join(scratch, 'turns-'))
  const { server, say } = await startAgent({ scratch: own, model, bundle })
  try {
    await cpuOfTurns({ server, say, turns: WARMUP, name: 'warm' })
    return (await cpuOfTurns({ server, say, turns: TURNS })) / 1000
  } finally {
    await server.stop()
    rmSync(own, { recursive: true, force: true, maxRetries: 5 })
  }
}

export async function measureTurnsSince({ scratch, rounds, base, note }) {
  if (base === undefined) throw new Error('name the other build with --base, such as --base ../other/dist/full')
  const other = resolve(base, 'sluice.mjs')
  if (!existsSync(other)) throw new Error(`${other} does not exist`)
  // The other build once more: the range of its ratio to itself is the noise of this machine.
  const sides = Object.entries({ ours: sluiceBundle('full'), bare: other, again: other })
  let round = 0
  const model = await startScriptedModel()
  try {
    const results = await rounds({ full: 9, quick: 2 }, async () => {
      const found = {}
      // Each side is the first one in every second round.
      for (const [side, bundle] of round++ % 2 === 0 ? sides : sides.toReversed()) {
        model.clear('sluice')
        found[side] = await cpuMs(scratch, model, bundle)
      }
      return {
        'turns-since-spread': { ours: found.again, bare: found.bare },
        'turns-since-cpu': { ours: found.ours, bare: found.bare },
      }
    })
    note('bare is the other build; a ratio within the range of turns-since-spread is no difference')
    return results
  } finally {
    model.close()
  }
}
