import { AppError, type Parts, type RouteRequest, type StartTurn, sessionKeys, type ToolContext } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { type TestHost, testHost } from '@sluice/testkit/host'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { toolConformance, toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { afterEach, describe, expect, test } from 'vitest'
import { scheduleSection } from './config.ts'
import feature from './index.ts'

toolConformance({
  feature,
  examples: [
    { tool: 'schedule_create', input: { text: 'Stand up', in_minutes: 5 } },
    { tool: 'schedule_list', input: {} },
  ],
  except: [{ rule: 'each tool has an example, and the examples work', why: 'the suite calls without a client; the tests below have one' }],
})

type Started = Parameters<StartTurn>[0]

const running: Parts[] = []
afterEach(async () => {
  for (const parts of running.splice(0)) await parts.close?.()
})

/** Starts a daemon with this storage. `startTurn` knows each key once, as the real one does. */
async function start({
  keyValue = memoryKeyValue(),
  known = new Map<string, Started>(),
  config = {},
  startTurn = undefined as StartTurn | undefined,
  clock = testClock(),
} = {}) {
  const started: Started[] = []
  const own: StartTurn = async (turn) => {
    if (known.has(turn.key)) return 'known'
    known.set(turn.key, turn)
    started.push(turn)
    return 'started'
  }
  const host = testHost({ keyValue, clock, services: { startTurn: startTurn ?? own } })
  const parts = feature.build(host, v.parse(scheduleSection.schema, config))
  running.push(parts)
  await parts.register?.(new AbortController().signal)
  const call = async (name: string, input: object, by: Partial<ToolContext> = {}) => {
    const tool = parts.tools?.find((one) => one.name === name)
    return tool?.run(v.parse(tool.input, input), { ...toolContext(), caller: 'device:ada', session: 'ada/chat', ...by })
  }
  return { host, parts, call, started, keyValue, known }
}

const minutes = (host: TestHost, count: number) => host.advance(count * 60_000)
const idOf = (text = '') => /[0-9a-f-]{36}/.exec(text)?.[0] ?? ''

describe('reminders', () => {
  test('start one turn in the conversation of the client at their time', async () => {
    const { host, call, started } = await start()
    await call('schedule_create', { text: 'Stand up', in_minutes: 10 })
    await minutes(host, 9)
    expect(started).toEqual([])
    await minutes(host, 1)
    await expect.poll(() => started).toHaveLength(1)
    expect(started[0]).toMatchObject({ session: 'ada/chat', caller: 'device:ada', text: expect.stringMatching(/\n\nStand up$/) })
    await minutes(host, 60)
    expect(started).toHaveLength(1)
    await expect(call('schedule_list', {})).resolves.toContain('There are no reminders')
  })

  test('are listed in a room only where they were set there', async () => {
    const { call } = await start()
    const caller = 'channel:slack/T1/ann'
    const [direct, shared, own] = ['D9/ann', 'C1/', 'C1/ann'].map((place) => ({ caller, session: `channel:slack/T1/${place}` }))
    await call('schedule_create', { text: 'See the doctor', in_minutes: 60 }, direct)
    await call('schedule_create', { text: 'Stand up', in_minutes: 60 }, { ...shared, isInRoom: true })
    const listed = (by: Partial<ToolContext> = {}) => call('schedule_list', {}, { ...by, isInRoom: true })
    await expect(listed(shared)).resolves.toMatch(/^[^\n]*\n[^\n]*"Stand up"$/)
    await expect(listed(own)).resolves.toContain('There are no reminders')
    const inDirectChat = await call('schedule_list', {}, direct)
    expect(inDirectChat).toContain('See the doctor')
    expect(inDirectChat).toContain('Stand up')
  })

  test('tell each of their turns whether they were set in a room', async () => {
    const { host, call, started } = await start()
    await call('schedule_create', { text: 'Drink', cron: '0 * * * *', timezone: 'UTC' }, { isInRoom: true })
    await call('schedule_create', { text: 'Stand up', in_minutes: 10 })
    const afterMore = async () => {
      await minutes(host, 10)
      return started
    }
    for (const count of [1, 2, 3]) await expect.poll(afterMore).toHaveLength(count)
    const told = started.map(({ text, isInRoom }) => [text.split('\n').at(-1), isInRoom])
    expect(told).toEqual([
      ['Stand up', false],
      ['Drink', true],
      ['Drink', true],
    ])
  })

  test('repeat by a cron expression, each instant once', async () => {
    const { host, call, started } = await start()
    await call('schedule_create', { text: 'Drink', cron: '0 * * * *', timezone: 'UTC' })
    for (let hour = 0; hour < 3; hour++) {
      const afterMore = async () => {
        await minutes(host, 10)
        return started
      }
      await expect.poll(afterMore).toHaveLength(hour + 1)
    }
    expect(new Set(started.map(({ atMs }) => atMs)).size).toBe(3)
  })

  test('that a crash interrupts after the start of the turn start no second one', async () => {
    const known = new Map<string, Started>()
    const keyValue = memoryKeyValue()
    const broken = { ...keyValue, swap: async () => Promise.reject(new AppError('unavailable', 'the disk is full')) }
    const first = await start({ keyValue: broken, known })
    await first.call('schedule_create', { text: 'Once', in_minutes: 1 })
    await minutes(first.host, 1)
    await expect.poll(() => first.started).toHaveLength(1)
    await first.parts.close?.()
    const second = await start({ keyValue, known })
    await second.host.advance(120_000)
    await expect.poll(() => keyValue.list('', 10)).toEqual([])
    expect(second.started).toEqual([])
  })

  test('that were missed run once, late, with the number of missed times', async () => {
    const keyValue = memoryKeyValue()
    const first = await start({ keyValue })
    await first.call('schedule_create', { text: 'Daily', cron: '0 9 * * *', timezone: 'UTC' })
    await first.call('schedule_create', { text: 'Single', in_minutes: 5 })
    await first.parts.close?.()
    const second = await start({ keyValue, clock: testClock(first.host.clock.nowMs() + 3 * 86_400_000) })
    await expect.poll(() => second.started).toHaveLength(2)
    const texts = second.started.map(({ text }) => text)
    expect(texts.find((text) => text.endsWith('Single'))).toContain('It comes late')
    expect(texts.find((text) => text.endsWith('Daily'))).toContain('2 earlier times were missed')
  })

  test('wait while a turn cannot be started, and are removed when the client is gone', async () => {
    const answers: (Awaited<ReturnType<StartTurn>> | Error)[] = [new AppError('rate_limited', 'too many'), 'gone']
    const keys: string[] = []
    const { host, call, keyValue } = await start({
      startTurn: async ({ key }) => {
        keys.push(key)
        const answer = answers.shift() ?? 'gone'
        if (answer instanceof Error) throw answer
        return answer
      },
    })
    await call('schedule_create', { text: 'Daily', cron: '0 9 * * *', timezone: 'UTC' })
    const kept = async () => {
      await minutes(host, 60)
      return keyValue.list('', 10)
    }
    await expect.poll(kept).toEqual([])
    expect(keys).toHaveLength(2)
  })

  test('stay until their turn has an answer, also over a restart, and tell of the times that were missed meanwhile', async () => {
    const keyValue = memoryKeyValue()
    const asked: Started[] = []
    let isAway = true
    const startTurn: StartTurn = async (turn) => {
      asked.push(turn)
      const { attempt = 0, counted = 0, sinceMs = turn.atMs } = turn.earlier ?? {}
      return isAway ? { attempt: attempt + 1, counted, sinceMs, atMs: turn.atMs + (attempt + 1) * 40 * 60_000 } : 'known'
    }
    const first = await start({ keyValue, startTurn })
    await first.call('schedule_create', { text: 'Hourly', cron: '0 * * * *', timezone: 'UTC' })
    await first.call('schedule_create', { text: 'Once', in_minutes: 5 })
    const toldOfMissed = async () => {
      await minutes(first.host, 10)
      return asked.some(({ text }) => text.endsWith('Hourly') && text.includes('1 earlier times were missed'))
    }
    await expect.poll(toldOfMissed).toBe(true)
    await expect.poll(() => keyValue.list('', 10)).toHaveLength(2)
    await first.parts.close?.()
    isAway = false
    const second = await start({ keyValue, startTurn, clock: testClock(first.host.clock.nowMs()) })
    const kept = async () => {
      await minutes(second.host, 10)
      return keyValue.list('', 10)
    }
    await expect.poll(kept).toHaveLength(1)
    expect(asked.findLast(({ text }) => text.endsWith('Once'))?.earlier).toMatchObject({ attempt: expect.any(Number) })
    const hourly = asked.filter(({ text }) => text.endsWith('Hourly'))
    expect(hourly[1]).toMatchObject({ key: hourly[0]?.key, earlier: { attempt: 1 } })
  })

  test('go on from the present when the last one was handled while the clock was wrong', async () => {
    const keyValue = memoryKeyValue()
    const farMs = Date.parse('2090-01-01T09:00:00Z')
    const reminder = {
      id: 'r',
      caller: 'device:ada',
      session: 'ada/chat',
      text: 'Daily',
      createdAtMs: 0,
      nextMs: farMs + 86_400_000,
      handledMs: farMs,
    }
    await keyValue.set(`${sessionKeys('ada/chat')}r`, { ...reminder, schedule: { expression: '0 9 * * *', timezone: 'UTC' } })
    const { host, started } = await start({ keyValue })
    const afterAnHour = async () => {
      await minutes(host, 60)
      return started
    }
    await expect.poll(afterAnHour).toHaveLength(1)
  })

  test('belong to their client', async () => {
    const { call } = await start()
    const id = idOf(await call('schedule_create', { text: 'Mine', in_minutes: 5 }))
    const other = { caller: 'device:bob', session: 'bob/chat' }
    await expect(call('schedule_list', {}, other)).resolves.not.toContain('Mine')
    await expect(call('schedule_cancel', { id }, other)).rejects.toMatchObject({ code: 'not_found' })
    await call('schedule_cancel', { id })
    await expect(call('schedule_list', {})).resolves.toContain('There are no reminders')
  })

  test('have a limit for each client, which two calls at the same time keep', async () => {
    const { call } = await start({ config: { max_per_client: 1 } })
    const calls = await Promise.allSettled([1, 2].map((at) => call('schedule_create', { text: 'x', in_minutes: at })))
    expect(calls.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    await expect(call('schedule_create', { text: 'x', in_minutes: 1 }, { caller: 'device:bob' })).resolves.toContain('is set')
  })

  test('are not offered with a limit of 0', async () => {
    const { parts } = await start({ config: { max_per_client: 0 } })
    expect(parts.tools?.map(({ name, available }) => [name, available?.() ?? true])).toContainEqual(['schedule_create', false])
  })

  test.each<[Partial<ToolContext>, string]>([
    [{ session: null }, 'needs a conversation'],
    [{ caller: 'sop:deploy' }, 'belong to a client'],
    [{ caller: 'agent:support/sop:deploy' }, 'belong to a client'],
  ])('are refused for %j', async (by, message) => {
    const { call } = await start()
    await expect(call('schedule_create', { text: 'x', in_minutes: 1 }, by)).rejects.toThrow(message)
  })
})

test('a client lists and cancels its own reminders by the API, an operator all of them', async () => {
  const { call, parts } = await start()
  const id = idOf(await call('schedule_create', { text: 'Mine', in_minutes: 5 }))
  const [list, cancel] = parts.routes ?? []
  const as = (role: RouteRequest['role'], device: string | null) => ({ role, device, params: { id } }) as unknown as RouteRequest
  expect(await list?.handle(as('client', 'bob'))).toEqual({ schedules: [] })
  await expect(cancel?.handle(as('client', 'bob'))).rejects.toMatchObject({ code: 'not_found' })
  expect(await list?.handle(as('client', 'ada'))).toMatchObject({ schedules: [{ id, text: 'Mine' }] })
  expect(await list?.handle(as('operator', null))).toMatchObject({ schedules: [{ id }] })
  expect(await cancel?.handle(as('client', 'ada'))).toMatchObject({ id })
  expect(await list?.handle(as('operator', null))).toEqual({ schedules: [] })
})
