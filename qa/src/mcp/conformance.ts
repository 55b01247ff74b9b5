/** Runs one scenario of the conformance suite of the protocol, and reads which scenarios a revision requires. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parse } from 'yaml'

export type Role = 'client' | 'server'

/** The revisions that the suite has requirements for. */
export const REVISIONS = ['2025-11-25', '2026-07-28'] as const
export type Revision = (typeof REVISIONS)[number]

const SUITE = dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json'))
const SCENARIO_MS_MAX = 120_000

type Scenarios = Readonly<Record<Role, readonly string[]>>

/** The scenarios that a revision requires of a role. */
export const required = (revision: Revision, role: Role): readonly string[] =>
  (parse(readFileSync(join(SUITE, 'requirements', `${revision}.yaml`), 'utf8')) as Scenarios)[role]

const baselineOf = (revision: Revision): string => join(import.meta.dirname, `expected-failures-${revision}.yaml`)

/** The scenarios, or single checks of them (`<scenario>:<check>`), that are expected to fail. */
export const expectedFailures = (revision: Revision, role: Role): readonly string[] =>
  (parse(readFileSync(baselineOf(revision), 'utf8')) as Scenarios)[role]

export interface ScenarioRun {
  readonly revision: Revision
  readonly role: Role
  readonly scenario: string
  /** The options that name the program under test. */
  readonly subject: readonly string[]
}

export interface ScenarioResult {
  /** True if exactly the expected failures were found. */
  readonly passed: boolean
  /** The output of the suite. */
  readonly report: string
}

export async function runScenario({ revision, role, scenario, subject }: ScenarioRun): Promise<ScenarioResult> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-conformance-'))
  const main = join(SUITE, 'dist', 'index.js')
  const child = spawn(
    process.execPath,
    [
      '--no-deprecation',
      main,
      role,
      ...['--scenario', scenario, '--spec-version', revision, '--expected-failures', baselineOf(revision)],
      ...['--timeout', String(SCENARIO_MS_MAX), '--output-dir', folder, ...subject],
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let report = ''
  const read = (chunk: Buffer) => {
    report += chunk
  }
  for (const stream of [child.stdout, child.stderr]) stream.on('data', read)
  try {
    const code = await new Promise((resolve) => child.on('close', resolve))
    return { passed: code === 0, report }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
