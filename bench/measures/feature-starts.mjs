// The start time that a feature adds when it is in the build and not configured: the same profile with and without it.
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

/** Returns the milliseconds to the first 200. The caller has started the profile on the data directory before. */
async function startTime(scratch, profile, dataDir) {
  const argsFor = (port) => [sluiceBundle(profile), 'daemon', '--data-dir', dataDir, '--port', String(port)]
  const server = await timeToFirstAnswer({ scratch, argsFor })
  await server.stop()
  return server.tookMs
}

/** Returns the measurement of these rows, whose names are `feature-start-<id>`. */
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
          // Each start with a feature follows a start without it, so that both run under the same conditions.
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
