/** The conformance suite of the protocol, in both roles. `expected-failures-*.yaml` list what is not passed, with the reasons. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectedFailures, REVISIONS, required, runScenario } from './conformance.ts'
import { type ConformanceDaemon, startConformanceDaemon } from './conformance-daemon.ts'

const TIMEOUT = { timeout: 180_000 }
const CLIENT = `${process.execPath} ${join(import.meta.dirname, 'conformance-client.ts')}`

let daemon: ConformanceDaemon
beforeAll(async () => {
  daemon = await startConformanceDaemon()
}, 60_000)
afterAll(() => daemon.stop())

describe.each(REVISIONS)('revision %s', (revision) => {
  test.each(['client', 'server'] as const)('every expected failure of a %s is required', (role) => {
    const all = required(revision, role)
    expect(expectedFailures(revision, role).filter((entry) => !all.includes(entry.split(':')[0] ?? ''))).toEqual([])
  })

  test.each(required(revision, 'client'))('as a client: %s', TIMEOUT, async (scenario) => {
    const { passed, report } = await runScenario({ revision, role: 'client', scenario, subject: ['--command', CLIENT] })
    expect(passed, report).toBe(true)
  })

  test.each(required(revision, 'server'))('as a server: %s', TIMEOUT, async (scenario) => {
    const { passed, report } = await runScenario({ revision, role: 'server', scenario, subject: ['--url', daemon.url] })
    expect(passed, report).toBe(true)
  })
})
