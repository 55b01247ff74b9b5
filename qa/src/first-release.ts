/** Copies data directories that earlier builds left behind when they were killed at work; see the README of each fixture. */
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { gunzipSync } from 'node:zlib'

const FIXTURES = resolve(import.meta.dirname, '../fixtures')
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
export interface CopiedFixture<Facts> {
  readonly dataDir: string
  readonly configFile: string
  readonly facts: Facts
  dispose(): void
}

export type FirstRelease = CopiedFixture<FirstReleaseFacts>

/** Makes a copy whose configuration uses these addresses; the default addresses refuse connections. */
export function copyFirstRelease({ modelUrl, platformUrl }: { modelUrl?: string; platformUrl?: string } = {}): FirstRelease {
  return copyFixture<FirstReleaseFacts>('release-0.1.0', {
    'http://127.0.0.1:1/': modelUrl && `${modelUrl}/`,
    'http://127.0.0.1:2': platformUrl,
  })
}

/** The contents of the data directory from before files had owners; see fixtures/before-owners/README.md. */
export interface BeforeOwnersFacts {
  readonly killedAtMs: number
  readonly tokens: Readonly<Record<'laptop' | 'phone', string>>
  readonly files: Readonly<Record<'phone' | 'laptop' | 'unnamed', string>>
  readonly questions: Readonly<Record<'listed' | 'stranger' | 'procedure', FixtureQuestion>>
}

export const copyBeforeOwners = (platformUrl: string): CopiedFixture<BeforeOwnersFacts> =>
  copyFixture('before-owners', { 'http://127.0.0.1:2/': platformUrl })

/** Copies a fixture, and replaces texts of its configuration. */
function copyFixture<Facts>(name: string, replaced: Readonly<Record<string, string | undefined>>): CopiedFixture<Facts> {
  const fixture = join(FIXTURES, name)
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-earlier-'))
  cpSync(join(fixture, 'data'), dataDir, { recursive: true })
  for (const file of DATABASE_FILES) {
    const compressed = join(dataDir, `${file}.gz`)
    writeFileSync(join(dataDir, file), gunzipSync(readFileSync(compressed)), { mode: 0o600 })
    rmSync(compressed)
  }
  const configFile = join(dataDir, 'config.toml')
  let config = readFileSync(configFile, 'utf8')
  for (const [from, to] of Object.entries(replaced)) config = config.replace(from, to ?? from)
  writeFileSync(configFile, config)
  // Version control does not store these modes.
  for (const file of [configFile, join(dataDir, 'secret.key')]) chmodSync(file, 0o600)
  const facts: Facts = JSON.parse(readFileSync(join(fixture, 'facts.json'), 'utf8'))
  return { dataDir, configFile, facts, dispose: () => rmSync(dataDir, { recursive: true, force: true }) }
}
