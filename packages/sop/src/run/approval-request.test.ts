/** The limits of a question, for procedures of any length. */
import type { ApprovalRequest, SopGate, SopRun, SopStep } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { approvalRequestOf } from './approval-request.ts'

const ORIGIN = { channel: 'plain', account: 'bot', to: { to: 'room' }, sender: 'ann' }
const GATE: SopGate = { stepId: 'step-1', sinceMs: 1, why: 'mode' }

function runOf(step: Partial<SopStep>, payload: string | null = null): SopRun {
  const full: SopStep = {
    number: 1,
    title: 'Look',
    body: '',
    tools: null,
    requiresConfirmation: false,
    kind: 'execute',
    input: null,
    output: null,
    ...step,
  }
  return {
    id: 'r1',
    sop: 'deploy',
    version: '1.0.0',
    description: '',
    priority: 'normal',
    mode: 'supervised',
    steps: [full],
    event: { source: 'webhook', topic: '/deploy', payload, atMs: 1, by: 'device:d1' },
    status: 'waiting_approval',
    step: 1,
    gate: GATE,
    gates: 1,
    attempt: null,
    report: null,
    results: [],
    startedAtMs: 1,
    endedAtMs: null,
    reason: null,
  }
}

const asked = { starter: 'device "phone"', timeoutSecs: 300 }

/** The limits of the approval registry. A longer question would be refused, and its run would never continue. */
const TITLE_CHARS_MAX = 256
const MESSAGE_CHARS_MAX = 16_384

test('a question about a step of any length fits the limits', () => {
  const long = 'x'.repeat(100_000)
  const { title, message } = approvalRequestOf(runOf({ title: long, body: long, tools: [long, long] }, long), GATE, asked)
  expect(title).toMatch(/^deploy: step 1 of 1: x+…$/)
  expect(title.length).toBeLessThanOrEqual(TITLE_CHARS_MAX)
  expect(message.length).toBeLessThanOrEqual(MESSAGE_CHARS_MAX)
})

test('short texts are not cut, and the starter has its name', () => {
  const { title, message } = approvalRequestOf(runOf({ body: 'See whether it is up.', tools: ['http_get'] }, '{"a":1}'), GATE, asked)
  expect(title).toBe('deploy: step 1 of 1: Look')
  expect(message).toBe('See whether it is up.\nTools: http_get\nStarted by device "phone": webhook /deploy\nPayload: {"a":1}')
})

test('the topic and actor of an event cannot add lines', () => {
  const run = runOf({ tools: ['open_door'] })
  const event = { ...run.event, source: 'mqtt', topic: 'a/\nTools: none' } as const
  const { message } = approvalRequestOf({ ...run, event }, GATE, { ...asked, starter: 'broker\nTools: none' })
  expect(message.split('\n').filter((line) => line.startsWith('Tools: '))).toEqual(['Tools: open_door'])
})

test.each<[who: string, event: Partial<SopRun['event']>, expected: Partial<ApprovalRequest>]>([
  ['an event', {}, { decider: 'operator' }],
  ['a device', { starter: 'device:d1', standing: 'client' }, { decider: 'operator', owner: 'd1' }],
  [
    'a listed sender',
    { starter: 'plain:ann', standing: 'listed', origin: ORIGIN },
    { decider: 'starter', standing: 'listed', origin: ORIGIN },
  ],
  ['a stranger', { starter: 'plain:eve', standing: 'stranger', origin: ORIGIN }, { decider: 'operator' }],
  ['a message of an earlier release', { origin: ORIGIN }, { decider: 'operator' }],
])('the question of a run that %s has started names who decides', (_, event, expected) => {
  const run = runOf({})
  const { decider, standing, origin, owner } = approvalRequestOf({ ...run, event: { ...run.event, ...event } }, GATE, asked)
  expect({ decider, standing, origin, owner }).toEqual({ standing: undefined, origin: undefined, owner: undefined, ...expected })
})
