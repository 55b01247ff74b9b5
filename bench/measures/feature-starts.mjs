// What a feature adds to a start when it is in the build and nothing is configured: the same profile with it and without it.
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { timeToFirstAnswer } from '../lib/first-answer.mjs'
import { bundleReport, distFolder, newDataDir, sluiceBundle } from '../lib/sluice.mjs'

const ROOT = resolve(import.meta.dirname, '../..')

const buildOf = (id) => `bench-${id}`

function buildWith(id) {
  const args = [join(ROOT, 'scripts', 'build.mjs'), '--features', id, '--name', buildOf(id)]
  const { status } = spawnSync(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] })
  if (status !== 0) throw new Error(`minimal with ${id} does not build`)
}

/** Milliseconds to the first 200, of a start that is not the first one on its data directory. */
async function startTime(scratch, profile, dataDir) {
  const argsFor = (port) => [sluiceBundle(profile), 'daemon', '--data-dir', dataDir, '--port', String(port)]
  const server = await timeToFirstAnswer({ scratch, argsFor })
  await server.stop()
  return server.tookMs
}

/** `rows` are `feature-start-<id>`. */
export const measureFeatureStarts =
  (rows) =>
  async ({ scratch, rounds }) => {
    const ids = rows.map((row) => row.replace('feature-start-', ''))
    const builds = ['minimal', ...ids.map(buildOf)]
    for (const id of ids) buildWith(id)
    const dataDirs = new Map(builds.map((profile) => [profile, newDataDir(scratch)]))
    for (const [profile, dataDir] of dataDirs) await startTime(scratch, profile, dataDir)
    const bytes = (profile) => bundleReport(profile).startBytes
    try {
      return await rounds({ full: 15, quick: 2 }, async () => {
        const results = {}
        for (const id of ids) {
          // Each beside a start of its own, so that both see the same weather.
          const without = await startTime(scratch, 'minimal', dataDirs.get('minimal'))
          const withIt = await startTime(scratch, buildOf(id), dataDirs.get(buildOf(id)))
          const detail = { without, with: withIt, startBytes: bytes(buildOf(id)) - bytes('minimal') }
          results[`feature-start-${id}`] = { ours: withIt - without, detail }
        }
        return results
      })
    } finally {
      for (const id of ids) rmSync(distFolder(buildOf(id)), { recursive: true, force: true })
    }
  }
