// Start and idle memory of the minimal profile, compared with the build of another commit that `--base` names.
import { existsSync, rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { timeToFirstAnswer } from '../lib/first-answer.mjs'
import { privateMiB, residentMiB, threadsCpuMs } from '../lib/machine.mjs'
import { newDataDir, sluiceBundle } from '../lib/sluice.mjs'

const IDLE_SECS = 5

/** One start. `cpu` is the CPU time of the process until its first answer, which other processes affect less than the time of the clock. */
async function start(scratch, bundle, dataDir, idleSecs) {
  const argsFor = (port) => [bundle, 'daemon', '--data-dir', dataDir, '--port', String(port)]
  const server = await timeToFirstAnswer({ scratch, argsFor })
  const cpu = threadsCpuMs(server.pid)
  await sleep(idleSecs * 1000)
  const found = {
    cpu,
    took: server.tookMs,
    idleCpu: threadsCpuMs(server.pid) - cpu,
    resident: residentMiB(server.pid),
    own: privateMiB(server.pid),
  }
  await server.stop()
  return found
}

export async function measureSince({ scratch, rounds, base, note }) {
  if (base === undefined) throw new Error('name the other build with --base, such as --base ../other/dist/minimal')
  const other = resolve(base, 'sluice.mjs')
  if (!existsSync(other)) throw new Error(`${other} does not exist`)
  const sides = [
    ['ours', sluiceBundle('minimal')],
    ['bare', other],
    // The other build once more: the range of its ratio to itself is the noise of this machine.
    ['again', other],
  ].map(([side, bundle]) => ({ side, bundle, dataDir: newDataDir(scratch) }))
  // The first start of each side fills its compile cache.
  for (const { bundle, dataDir } of sides) await start(scratch, bundle, dataDir, 0)
  let round = 0
  const results = await rounds({ full: 15, quick: 3 }, async () => {
    const found = {}
    // Each side is the first one in every second round.
    for (const { side, bundle, dataDir } of round++ % 2 === 0 ? sides : sides.toReversed())
      found[side] = await start(scratch, bundle, dataDir, IDLE_SECS)
    const row = (name) => ({ ours: found.ours[name], bare: found.bare[name] })
    return {
      'since-spread': { ours: found.again.cpu, bare: found.bare.cpu },
      'since-start-cpu': row('cpu'),
      'since-start': row('took'),
      'since-idle-cpu': row('idleCpu'),
      'since-idle-memory': row('resident'),
      'since-idle-private': row('own'),
    }
  })
  for (const { dataDir } of sides) rmSync(dataDir, { recursive: true, force: true })
  note('bare is the other build; a ratio within the range of since-spread is no difference')
  return results
}
