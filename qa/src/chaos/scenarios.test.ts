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

test('SIGTERM under load ends with 0 in time, and what was acknowledged is done after the next start', { timeout: MS_MAX }, () =>
  play(sigtermUnderLoad),
)

test('a message that takes the daemon down is dead after five starts, and other sessions go on', { timeout: MS_MAX }, () => play(poison))

test('hundreds of messages left behind are worked off, never more at once than max_concurrent_turns', { timeout: MS_MAX }, () =>
  play(recoveryStorm({ messages: 500 })),
)

test('over max_pending the answer is 503 with Retry-After, and the retry is taken once', { timeout: MS_MAX }, () => play(fullInbox))

test('an outage of all platforms loses no reply and doubles none, although the daemon is killed in it', { timeout: MS_MAX }, () =>
  play(platformOutage({ lives: 2, restMs: 300 })),
)

test('a suspended machine loses no reply and leaves none in doubt', { timeout: MS_MAX }, () => play(suspend({ ms: 1500 })))

// Other tests run on the same machine: the best of three counts.
test('while the model hangs, acknowledgements stay below 50 ms at 200 a second', { timeout: MS_MAX, retry: 2 }, () =>
  play(slowModel({ perSecond: 200, seconds: 3, answerMs: Number.POSITIVE_INFINITY })),
)
