import { describe, expect, test } from 'vitest'
import { bench, clock, type DeliveryBench, host, message, settle, setUpDeliveries, until } from '../testing/delivery-bench.ts'
import { COMMANDS_MAX, COMMANDS_OF_STRANGERS_MAX } from './command-limit.ts'

setUpDeliveries()

const HOUR_MS = 3_600_000
const OPERATOR = '+15550001111'
const stranger = { allow: ['*'], matches: () => false }
const NOTICE = /^Too many commands were written\. Commands are answered again at \d\d:\d\d UTC\.$/

async function write(made: DeliveryBench, texts: readonly string[], prefix = 'c', more = {}): Promise<void> {
  for (const [at, text] of texts.entries()) await made.receive(message(`${prefix}${at}`, { text, ...more }))
  await settle()
}

const times = (count: number, text: string): string[] => Array.from({ length: count }, () => text)
const notices = ({ sent }: DeliveryBench): number => sent.filter(({ text }) => NOTICE.test(text)).length
const limited = async ({ store }: DeliveryBench): Promise<number> => (await store.inbox.list({ limit: 1000, state: 'limited' })).length

describe.each(['/help', '/status', '/usage', '/who', '/stop', '/retry', '/new', '/link'])('%s of a stranger', (text) => {
  test('is answered up to the limit, then once an hour with a notice', async () => {
    const made = await bench({ channel: stranger })
    await write(made, times(COMMANDS_MAX * 2, text))
    expect(notices(made)).toBe(1)
    expect(await limited(made)).toBe(COMMANDS_MAX)
    const answered = made.sent.length
    await clock.advance(600_000)
    await write(made, times(COMMANDS_MAX * 2, text), 'later')
    expect(made.sent.length).toBe((answered - 1) * 2 + 1)
    await clock.advance(HOUR_MS)
    await write(made, times(COMMANDS_MAX + 1, text), 'last')
    expect(notices(made)).toBe(2)
  })
})

test('different commands count together, and commands of an operator do not count', async () => {
  const made = await bench({ operators: [OPERATOR] })
  const all = times(COMMANDS_MAX, '/who').flatMap((who) => [who, '/status'])
  await write(made, all)
  expect(made.sent).toHaveLength(COMMANDS_MAX + 1)
  await write(made, all, 'operator', { sender: OPERATOR, to: { to: OPERATOR } })
  expect(made.sent).toHaveLength(COMMANDS_MAX + 1 + all.length)
})

test('commands of a listed person take no turns, and turns no commands', async () => {
  const made = await bench({ limitsOf: ({ client }) => [{ key: client, turnsPerHour: 2, turnsInFlight: 0, usdPerDay: 0 }] })
  await write(made, [...times(COMMANDS_MAX + 5, '/who'), 'one', 'two', 'three'])
  expect(made.turns.map(({ text }) => text).toSorted()).toEqual(['one', 'two'])
})

test('strangers under many names share a limit, which leaves listed people alone', async () => {
  const made = await bench({ channel: { allow: ['*', 'ann'] } as never })
  const senders = Array.from({ length: COMMANDS_OF_STRANGERS_MAX + 50 }, (_, at) => `s${at}`)
  for (const sender of senders) await made.receive(message(sender, { text: '/who', sender, to: { to: sender } }))
  await settle()
  expect(made.sent).toHaveLength(COMMANDS_OF_STRANGERS_MAX)
  expect(host.emitted.filter(({ type }) => type === 'limit_reached')).toMatchObject([{ client: 'strangers', limit: 'commands' }])
  await write(made, ['/who'], 'ann', { sender: 'ann', to: { to: 'ann' } })
  expect(made.sent).toHaveLength(COMMANDS_OF_STRANGERS_MAX + 1)
})

test('/stop ends the turn of its sender beyond the limit, without an answer', async () => {
  const aborted = Promise.withResolvers<string>()
  const made = await bench({
    turn: () => aborted.promise,
    abort() {
      aborted.resolve('aborted')
      return true
    },
  })
  await write(made, times(COMMANDS_MAX + 1, '/who'))
  await made.receive(message('m'))
  await until(() => made.turns.length === 1)
  await write(made, ['/stop'], 'stop')
  await expect(aborted.promise).resolves.toBe('aborted')
  expect(made.sent.map(({ text }) => text)).not.toContain('Stopped.')
})

test('a /retry that waits for another turn of its sender counts once', async () => {
  const gate = Promise.withResolvers<string>()
  const made = await bench({
    limitsOf: ({ client }) => [{ key: client, turnsPerHour: 0, turnsInFlight: 1, usdPerDay: 0 }],
    turn: ({ text }) => (text === 'slow' ? gate.promise : `re: ${text}`),
  })
  await write(made, ['quick'])
  await write(made, ['slow'], 'room', { to: { to: 'a room' } })
  await clock.advance(1000)
  await write(made, ['/retry'], 'retry')
  for (let second = 0; second < COMMANDS_MAX * 2; second++) await clock.advance(1000)
  gate.resolve('done')
  await settle()
  await clock.advance(2000)
  await settle()
  expect(notices(made)).toBe(0)
  expect(made.turns.map(({ text }) => text)).toEqual(['quick', 'slow', 'quick'])
})

test('a paused conversation answers no command, except to an operator', async () => {
  const made = await bench({ loopTurns: 2, operators: [OPERATOR] })
  for (const id of ['m1', 'm2', 'm3']) {
    await clock.advance(1000)
    await write(made, ['hello'], id)
  }
  expect(made.turns).toHaveLength(2)
  await write(made, ['/who', '/status'])
  expect(made.sent).toHaveLength(2)
  await clock.advance(HOUR_MS)
  await write(made, ['/who'], 'later')
  expect(made.sent).toHaveLength(3)
})
