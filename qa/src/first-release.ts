/** Copies the data directory of release 0.1.0, killed while it worked; see fixtures/release-0.1.0/README.md. */
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { gunzipSync } from 'node:zlib'

const FIXTURE = resolve(import.meta.dirname, '../fixtures/release-0.1.0')
const DATABASE_FILES = ['sluice.db', 'sluice.db-wal']

/** The run id and step id of an approval. */
export type FixtureQuestion = readonly [runId: string, stepId: string]

/** The contents of the database, by the names in the fixture's README. */
export interface FirstReleaseFacts {
  readonly killedAtMs: number
  readonly tokens: Readonly<Record<'laptop' | 'tablet' | 'revoked', string>>
  readonly memories: Readonly<Record<string, string>>
  readonly chat: Readonly<Record<'poisoned' | 'running' | 'interrupted' | 'queued', string>>
  readonly turns: Readonly<Record<'interrupted' | 'keyed', string>>
  readonly runs: Readonly<Record<'shipped' | 'waiting' | 'working', string>>
  readonly questions: Readonly<Record<'waiting' | 'program' | 'tool', FixtureQuestion>>
}

/** A copy of the data directory; `dispose` deletes it. */
export interface FirstRelease {
  readonly dataDir: string
  readonly configFile: string
  readonly facts: FirstReleaseFacts
  dispose(): void
}

/** Makes a copy whose configuration uses these addresses; the default addresses refuse connections. */
export function copyFirstRelease({ modelUrl, platformUrl }: { modelUrl?: string; platformUrl?: string } = {}): FirstRelease {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-first-release-'))
  cpSync(join(FIXTURE, 'data'), dataDir, { recursive: true })
  for (const name of DATABASE_FILES) {
    const compressed = join(dataDir, `${name}.gz`)
    writeFileSync(join(dataDir, name), gunzipSync(readFileSync(compressed)), { mode: 0o600 })
    rmSync(compressed)
  }
  const configFile = join(dataDir, 'config.toml')
  const config = readFileSync(configFile, 'utf8')
  writeFileSync(
    configFile,
    config.replace('http://127.0.0.1:1/', `${modelUrl ?? 'http://127.0.0.1:1'}/`).replace('http://127.0.0.1:2', platformUrl ?? '$&'),
  )
  // Version control does not store these modes.
  for (const file of [configFile, join(dataDir, 'secret.key')]) chmodSync(file, 0o600)
  const facts: FirstReleaseFacts = JSON.parse(readFileSync(join(FIXTURE, 'facts.json'), 'utf8'))
  return { dataDir, configFile, facts, dispose: () => rmSync(dataDir, { recursive: true, force: true }) }
}
