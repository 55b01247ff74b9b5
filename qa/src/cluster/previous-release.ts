/** Builds the release before the newest migration of the PostgreSQL schema, as the neighbour of this release for tests. */
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { glob } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from '../daemons/bundle.ts'
import { cacheFolder } from '../debian-packages.ts'
import { onceAndWhole } from '../once-and-whole.ts'

export interface PreviousRelease {
  /** The file that starts its daemon. */
  readonly program: string
  readonly schemaVersion: number
}

const SCHEMA = 'packages/store-postgres/src/schema/schema.ts'
/** The version that it shows. Its sources may have the version of this release. */
export const PREVIOUS_VERSION = '0.0.9'
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024
const run = promisify(execFile)

const git = async (...args: readonly string[]): Promise<string> =>
  (await run('git', args, { cwd: ROOT, maxBuffer: OUTPUT_BYTES_MAX })).stdout.trim()
const migrationsIn = (source: string): number => [...source.matchAll(/^ {4}sql: `/gm)].length

/** The schema that the sources as they are bring a database to. */
export const schemaVersion = (): number => migrationsIn(readFileSync(join(ROOT, SCHEMA), 'utf8'))

/** Resolves to the reason where the history of the sources or the packages are not available. Several processes may call it at once. */
export async function previousRelease(profile: string): Promise<PreviousRelease | { readonly missing: string }> {
  try {
    const current = schemaVersion()
    for (const commit of (await git('log', '--format=%H', '--', SCHEMA)).split('\n')) {
      const version = migrationsIn(await git('show', `${commit}:${SCHEMA}`))
      if (version === 0 || version >= current) continue
      const newer = await git('rev-list', '--ancestry-path', '--reverse', `${commit}..HEAD`, '--', SCHEMA)
      const [next = ''] = newer.split('\n')
      const folder = cacheFolder('dev/releases', `${next.slice(0, 12)}-${profile}`)
      await onceAndWhole(folder, (draft) => build(`${next}^`, profile, draft))
      return { program: join(folder, 'dist', profile, 'sluice.mjs'), schemaVersion: version }
    }
    return { missing: 'no commit has an earlier schema' }
  } catch (error) {
    return { missing: `the previous release cannot be built: ${error instanceof Error ? error.message : String(error)}` }
  }
}

/** Builds in the folder itself, because a bundle reaches some of its packages through its sources. */
async function build(commit: string, profile: string, folder: string): Promise<void> {
  await run('/bin/sh', ['-c', 'git -C "$1" archive "$2" | tar -x -C "$3"', 'sh', ROOT, commit, folder])
  for await (const name of glob('packages/*/package.json', { cwd: folder })) {
    const manifest = join(folder, name)
    writeFileSync(manifest, readFileSync(manifest, 'utf8').replace(/"version": "[^"]+"/, `"version": "${PREVIOUS_VERSION}"`))
  }
  await run(process.execPath, [join(folder, 'scripts/bootstrap.mjs'), 'build', profile], { cwd: folder, maxBuffer: OUTPUT_BYTES_MAX })
}
