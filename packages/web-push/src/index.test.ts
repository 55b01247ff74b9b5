import { AppError, type FollowWaiting, type PairedDevice, type RouteRequest, type WaitingWork } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { memorySecrets } from '@sluice/testkit/memory-store'
import * as v from 'valibot'
import { afterEach, describe, expect, test } from 'vitest'
import { webPushSection } from './config.ts'
import feature from './index.ts'
import { PushService } from './testing/push-service.ts'

const CONTACT = 'mailto:admin@example.com'
const ADA: PairedDevice = { id: 'ada', name: 'Firefox on Linux', role: 'operator', origin: 'ada' }
const BOB: PairedDevice = { id: 'bob', name: 'Chrome on Android', role: 'client', origin: 'bob' }

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

interface World {
  readonly secrets?: ReturnType<typeof memorySecrets>
  readonly devices?: PairedDevice[]
  readonly config?: object
  readonly publicFetch?: (usual: PushService['fetch']) => PushService['fetch']
}

/** A daemon with the feature turned on, whose devices can be revoked by the test. */
async function start({
  secrets = memorySecrets(),
  devices = [ADA, BOB],
  config = { enabled: true, contact: CONTACT },
  publicFetch,
}: World = {}) {
  const clock = testClock()
  const service = new PushService(() => clock.nowMs())
  const audits: object[] = []
  let receive: Parameters<FollowWaiting>[0] | undefined
  const host = testHost({
    clock,
    secrets,
    publicFetch: publicFetch?.(service.fetch) ?? service.fetch,
    services: {
      pairing: {
        devices: async () => devices,
        device: async (wanted) => devices.find(({ id }) => id === wanted),
        revokedAmong: async () => [],
        originOf: async (id) => id,
      },
      audit: async (record) => void audits.push(record),
      followWaiting: (given) => {
        receive = given
        return () => {
          receive = undefined
        }
      },
    },
  })
  const parts = feature.build(host, v.parse(webPushSection.schema, config))
  await parts.register?.(new AbortController().signal)
  ends.push(async () => {
    await parts.drain?.()
    await parts.close?.()
  })
  const call = async (name: string, device: PairedDevice | null, given: { readonly body?: unknown; readonly params?: object } = {}) => {
    const route = parts.routes?.find(({ method, path }) => `${method} ${path}` === name)
    if (!route) throw new Error(`no route ${name}`)
    const body = route.body ? v.parse(route.body, given.body) : undefined
    const request = { device: device?.id ?? null, role: device?.role ?? null, by: `device:${device?.id}`, params: {}, ...given, body }
    return (await route.handle(request as unknown as RouteRequest)) as Record<string, unknown>
  }
  const turnOn = async (device: PairedDevice) => {
    const { public_key } = await call('GET /api/web-push', device)
    const subscription = service.subscribe(String(public_key))
    await call('PUT /api/web-push', device, { body: subscription })
    return subscription
  }
  const run = async (name: string, ...args: string[]) => {
    const lines: string[] = []
    const command = parts.commands?.find((one) => one.name === name)
    await command?.run({ args, json: false, by: 'cli:me', print: (line: string) => void lines.push(line), warn: () => {} } as never)
    return lines
  }
  return {
    host,
    clock,
    service,
    secrets,
    devices,
    parts,
    audits,
    call,
    turnOn,
    run,
    wait: (work: WaitingWork) => receive?.(work),
    follows: () => receive !== undefined,
  }
}

const approval = (given: Partial<Extract<WaitingWork, { kind: 'approval' }>> = {}): WaitingWork => ({
  kind: 'approval',
  runId: 'turn-1',
  stepId: 'call-1',
  gate: 'tool',
  name: 'shell',
  expiresAtMs: null,
  mayDecide: ({ role }) => role === 'operator',
  isOpen: async () => true,
  ...given,
})
const deadLetter = (number: number, direction: 'inbound' | 'outbound' = 'outbound', channel = 'telegram'): WaitingWork => ({
  kind: 'dead_letter',
  direction,
  channel,
  number,
})

describe('an approval', () => {
  test('is sent to the browsers of the people who may decide it, encrypted and signed as push services demand', async () => {
    const { turnOn, wait, clock, service } = await start()
    const { endpoint } = await turnOn(ADA)
    await turnOn(BOB)
    wait(approval())
    await clock.advance(0)
    await expect.poll(() => service.received).toHaveLength(1)
    expect(service.refused).toEqual([])
    expect(service.received).toEqual([
      {
        endpoint,
        ttl: 86_400,
        urgency: 'high',
        shown: {
          title: 'An approval waits',
          body: 'A call of the tool shell waits for your decision.',
          place: '#/approvals',
          tag: expect.stringMatching(/^approval [0-9a-f]{64}$/),
        },
      },
    ])
  })

  test('has no name of a program, and a short one of a procedure', async () => {
    const { turnOn, wait, clock, service } = await start()
    await turnOn(ADA)
    wait(approval({ gate: 'event', name: 'private text' }))
    wait(approval({ gate: 'sop', name: 'p'.repeat(5000), stepId: 'step-2' }))
    await clock.advance(0)
    await expect.poll(() => service.received).toHaveLength(2)
    expect(service.received.map(({ shown }) => shown.body)).toEqual([
      'A program waits for your decision.',
      `A step of the procedure ${'p'.repeat(79)}… waits for your decision.`,
    ])
  })

  test('is kept by the push service until it expires, and no longer', async () => {
    const { turnOn, wait, clock, service } = await start()
    await turnOn(ADA)
    wait(approval({ expiresAtMs: clock.nowMs() + 90_500 }))
    await clock.advance(0)
    await expect.poll(() => service.received.map(({ ttl }) => ttl)).toEqual([90])
  })

  test('that is decided before a retry is not sent', async () => {
    const { turnOn, wait, clock, service } = await start()
    await turnOn(ADA)
    let isOpen = true
    service.next.push(() => new Response(null, { status: 503 }))
    wait(approval({ isOpen: async () => isOpen }))
    await clock.advance(0)
    await expect.poll(() => service.requests).toBe(1)
    isOpen = false
    await clock.advance(3_600_000)
    expect(service.requests).toBe(1)
  })
})

describe('dead letters', () => {
  test('of an outage are one notification to operators, and the next comes a minute later', async () => {
    const { turnOn, wait, clock, service } = await start()
    await turnOn(ADA)
    await turnOn(BOB)
    for (let number = 1; number <= 500; number++) wait(deadLetter(number))
    await clock.advance(2_000)
    await expect.poll(() => service.received).toHaveLength(1)
    wait(deadLetter(501, 'inbound'))
    wait(deadLetter(502, 'outbound', 'slack'))
    await clock.advance(59_000)
    expect(service.received).toHaveLength(1)
    await clock.advance(3_000)
    await expect.poll(() => service.received).toHaveLength(2)
    expect(service.received.map(({ shown, urgency }) => [shown.body, shown.place, urgency])).toEqual([
      ['500 messages and replies on telegram were given up.', '#/deliveries/outbox?state=dead', 'normal'],
      ['2 messages and replies on 2 channels were given up.', '#/deliveries/inbox?state=dead', 'normal'],
    ])
  })

  test('lead to the one entry when there is one', async () => {
    const { turnOn, wait, clock, service } = await start()
    await turnOn(ADA)
    wait(deadLetter(7))
    await clock.advance(2_000)
    await expect
      .poll(() => service.received.map(({ shown }) => [shown.body, shown.place]))
      .toEqual([['A reply on telegram was given up.', '#/deliveries/outbox/7']])
  })
})

describe('the push service', () => {
  test.each([404, 410])('that answers %i ends the subscription', async (status) => {
    const { turnOn, wait, clock, service, call } = await start()
    await turnOn(ADA)
    service.next.push(() => new Response(null, { status }))
    wait(approval())
    await clock.advance(0)
    await expect.poll(async () => (await call('GET /api/web-push', ADA)).endpoint).toBe(null)
    wait(approval({ stepId: 'call-2' }))
    await clock.advance(3_600_000)
    expect(service.requests).toBe(1)
  })

  test('that has ended a subscription does not end the one that the browser has set since', async () => {
    const answer = Promise.withResolvers<void>()
    let isHeld = true
    const { turnOn, wait, clock, service, call } = await start({
      publicFetch: (usual) => async (url, init) => {
        if (!isHeld) return usual(url, init)
        isHeld = false
        await answer.promise
        return new Response(null, { status: 410 })
      },
    })
    await turnOn(ADA)
    wait(approval())
    await clock.advance(0)
    await expect.poll(() => isHeld).toBe(false)
    const { endpoint } = await turnOn(ADA)
    answer.resolve()
    wait(approval({ stepId: 'call-2' }))
    await clock.advance(1_000)
    await expect.poll(() => service.received.map((one) => one.endpoint)).toEqual([endpoint])
    expect((await call('GET /api/web-push', ADA)).endpoint).toBe(endpoint)
  })

  test.each([
    ['429 with Retry-After', () => new Response(null, { status: 429, headers: { 'retry-after': '120' } }), 119_000, 1_001],
    ['503', () => new Response(null, { status: 503 }), 2_000, 3_001],
    ['500', () => new Response(null, { status: 500 }), 2_000, 3_001],
  ])('that answers %s gets the message again later', async (_, answer, tooEarlyMs, thenMs) => {
    const { turnOn, wait, clock, service } = await start()
    await turnOn(ADA)
    service.next.push(answer)
    wait(approval())
    await clock.advance(0)
    await expect.poll(() => service.requests).toBe(1)
    await clock.advance(tooEarlyMs)
    expect(service.requests).toBe(1)
    await clock.advance(thenMs)
    await expect.poll(() => service.received).toHaveLength(1)
  })

  test('that stays away is tried until the message is of no use, and then given up', async () => {
    const { turnOn, wait, clock, service, host } = await start()
    await turnOn(ADA)
    for (let count = 0; count < 100; count++)
      service.next.push(() => {
        throw new AppError('upstream', 'no connection')
      })
    wait(approval({ expiresAtMs: clock.nowMs() + 600_000 }))
    for (let minute = 0; minute < 20; minute++) await clock.advance(60_000)
    expect(service.requests).toBeGreaterThan(3)
    expect(service.requests).toBeLessThan(20)
    expect(host.logs.map(({ message }) => message)).toContain('notification of a browser given up')
    expect(clock.sleeping).toBe(0)
  })

  describe('that asks for a pause of ten hours', () => {
    const pause = () => new Response(null, { status: 429, headers: { 'retry-after': '36000' } })
    const paused = async () => {
      const world = await start()
      await world.turnOn(ADA)
      world.service.next.push(pause)
      world.wait(approval())
      await world.clock.advance(0)
      await expect.poll(() => world.service.requests).toBe(1)
      return world
    }

    test('gets nothing until then, and then everything that is open', async () => {
      const { wait, clock, service, host } = await paused()
      for (let number = 0; number < 10; number++) wait(approval({ stepId: `open-${number}` }))
      wait(approval({ stepId: 'short', expiresAtMs: clock.nowMs() + 600_000 }))
      let isOpen = true
      wait(approval({ stepId: 'decided', isOpen: async () => isOpen, expiresAtMs: clock.nowMs() + 600_000 }))
      await clock.advance(0)
      isOpen = false
      for (let minute = 0; minute < 599; minute++) await clock.advance(60_000)
      expect(service.requests).toBe(1)
      const fields = { device: 'ada', service: 'push.example', reason: 'the push service answered with status 429' }
      expect(host.logs.filter(({ level }) => level === 'warn')).toEqual([
        { level: 'warn', message: 'notification of a browser given up', fields },
      ])
      await clock.advance(60_000)
      await expect.poll(() => service.received).toHaveLength(11)
      await clock.advance(60_000)
      expect(clock.sleeping).toBe(0)
    })

    test('holds back nothing of a browser that is turned off and on', async () => {
      const { turnOn, call, wait, clock, service } = await paused()
      await call('DELETE /api/web-push', ADA)
      const { endpoint } = await turnOn(ADA)
      await clock.advance(60_000)
      await expect.poll(() => service.received.map((one) => one.endpoint)).toEqual([endpoint])
      wait(approval({ stepId: 'later' }))
      await clock.advance(0)
      await expect.poll(() => service.received).toHaveLength(2)
    })

    test('gets what comes to another subscription at once', async () => {
      const { turnOn, wait, clock, service } = await paused()
      await turnOn(ADA)
      wait(approval({ stepId: 'later' }))
      await clock.advance(0)
      await expect.poll(() => service.received).toHaveLength(2)
    })
  })

  test('that cannot take one message gets the others', async () => {
    const { turnOn, wait, clock, service } = await start()
    await turnOn(ADA)
    service.next.push(() => new Response(null, { status: 500 }))
    wait(approval({ stepId: 'bad' }))
    wait(approval({ stepId: 'good' }))
    await clock.advance(0)
    await expect.poll(() => service.requests).toBe(1)
    service.next.push(
      () => new Response(null, { status: 201 }),
      () => new Response(null, { status: 500 }),
    )
    await clock.advance(5_001)
    await expect.poll(() => service.requests).toBe(3)
    await clock.advance(5_001)
    await expect.poll(() => service.received).toHaveLength(1)
  })

  test('that refuses a message does not get it again', async () => {
    const { turnOn, wait, clock, service, host } = await start()
    await turnOn(ADA)
    service.next.push(() => new Response(null, { status: 403 }))
    wait(approval())
    await clock.advance(3_600_000)
    expect(service.requests).toBe(1)
    expect(host.logs).toContainEqual(expect.objectContaining({ level: 'warn', message: 'notification of a browser refused' }))
  })

  test.each([
    ['at an address that is not public', new AppError('forbidden', 'the address is not public'), 'not public'],
    ['that redirects', undefined, 'redirects'],
  ])('%s gets nothing', async (_, error, reason) => {
    let requests = 0
    const { turnOn, call, clock, wait } = await start({
      publicFetch:
        () =>
        async (url, { admit }) => {
          requests += 1
          if (error) throw error
          admit?.(new URL(url))
          admit?.(new URL('https://elsewhere.example/'))
          return new Response()
        },
    })
    await turnOn(ADA)
    await expect(call('POST /api/web-push/test', ADA)).rejects.toThrow(reason)
    wait(approval())
    await clock.advance(3_600_000)
    expect(requests).toBe(2)
  })

  test('must have a public address, also where the host may have a private one for other requests', async () => {
    const rules: unknown[] = []
    const { turnOn, call } = await start({
      publicFetch: (usual) => (url, init) => {
        rules.push(init.onlyPublic)
        return usual(url, init)
      },
    })
    await turnOn(BOB)
    await call('POST /api/web-push/test', BOB)
    expect(rules).toEqual([true])
  })

  test('that is down for a browser holds at most 20 notifications back, and none of another browser', async () => {
    const CAT: PairedDevice = { ...ADA, id: 'cat' }
    let endpoint = ''
    let down = 0
    const { turnOn, wait, clock, service, host } = await start({
      devices: [ADA, CAT],
      publicFetch: (usual) => async (url, init) => {
        if (url !== endpoint) return usual(url, init)
        down += 1
        return new Response(null, { status: 503 })
      },
    })
    endpoint = (await turnOn(ADA)).endpoint
    await turnOn(CAT)
    for (let number = 0; number < 30; number++) wait(approval({ stepId: `call-${number}` }))
    await clock.advance(0)
    await expect.poll(() => host.logs.filter(({ message }) => message.includes('too many wait')).length).toBeGreaterThan(9)
    await expect.poll(() => service.received.length).toBeGreaterThan(19)
    expect(down).toBeLessThan(3)
  })
})

describe('a device', () => {
  test('that is revoked loses its subscription at once, also while a notification waits for a retry', async () => {
    const { turnOn, wait, clock, service, devices, run, secrets } = await start()
    await turnOn(ADA)
    service.next.push(() => new Response(null, { status: 503 }))
    wait(approval())
    await clock.advance(0)
    await expect.poll(() => service.requests).toBe(1)
    devices.splice(0, 1)
    await clock.advance(3_600_000)
    expect(service.requests).toBe(1)
    expect(await run('web-push list')).toEqual(['No browser has notifications.'])
    expect(await secrets.list('subscription:', 10)).toEqual([])
  })

  test('of a former operator gets no notification for operators', async () => {
    const { turnOn, wait, clock, service, devices } = await start()
    await turnOn(ADA)
    devices[0] = { ...ADA, role: 'client' }
    wait(deadLetter(1))
    wait(approval())
    await clock.advance(3_600_000)
    expect(service.requests).toBe(0)
  })

  test('takes over an endpoint that another device has given before', async () => {
    const { turnOn, call, run } = await start()
    const subscription = await turnOn(ADA)
    await call('PUT /api/web-push', BOB, { body: subscription })
    expect((await call('GET /api/web-push', ADA)).endpoint).toBe(null)
    expect(await run('web-push list')).toEqual([
      expect.stringMatching(/^bob {2}Chrome on Android {2}client {2}push\.example {2}since 2026-/),
    ])
  })

  test('has one subscription, and turns it off', async () => {
    const { turnOn, call, wait, clock, service } = await start()
    await turnOn(ADA)
    const { endpoint } = await turnOn(ADA)
    expect(await call('GET /api/web-push', ADA)).toEqual({ public_key: expect.stringMatching(/^[\w-]{87}$/), endpoint })
    expect(await call('DELETE /api/web-push', ADA)).toEqual({ on: false })
    wait(approval())
    await clock.advance(3_600_000)
    expect(service.requests).toBe(0)
    await expect(call('POST /api/web-push/test', ADA)).rejects.toMatchObject({ code: 'not_found' })
  })

  test('sends itself a test', async () => {
    const { turnOn, call, service } = await start()
    await turnOn(BOB)
    expect(await call('POST /api/web-push/test', BOB)).toEqual({ sent: true })
    expect(service.received.map(({ shown }) => shown.body)).toEqual(['Notifications work in this browser.'])
    expect(service.refused).toEqual([])
  })

  test('is needed: a gateway without pairing has nothing to revoke', async () => {
    const { call, service } = await start()
    await expect(call('PUT /api/web-push', null, { body: service.subscribe('x') })).rejects.toMatchObject({ code: 'conflict' })
  })
})

test.each([
  ['http', 'http://push.example/1'],
  ['a password', 'https://me:secret@push.example/1'],
  ['no address', 'push.example'],
  ['a long address', `https://push.example/${'x'.repeat(2048)}`],
])('an endpoint with %s is refused', async (_, endpoint) => {
  const { call, service } = await start()
  const { keys } = service.subscribe('x')
  await expect(call('PUT /api/web-push', ADA, { body: { endpoint, keys } })).rejects.toThrow()
})

test('keys that no message can be encrypted for are refused', async () => {
  const { call, service } = await start()
  const { endpoint, keys } = service.subscribe('x')
  const p256dh = Buffer.alloc(65, 4).toString('base64url')
  await expect(call('PUT /api/web-push', ADA, { body: { endpoint, keys: { ...keys, p256dh } } })).rejects.toThrow('not those of a browser')
})

describe('the places for browsers', () => {
  const people = (count: number, given: PairedDevice) =>
    Array.from(
      { length: count },
      (_, number): PairedDevice => ({ ...given, id: `${given.role}-${number}`, origin: `${given.role}-${number}` }),
    )

  test('are 10 for one person, whose other devices were signed in with a passkey', async () => {
    const own = people(11, BOB).map((device) => ({ ...device, origin: 'bob' }))
    const { turnOn, call } = await start({ devices: [...own, ADA] })
    for (const device of own.slice(0, 10)) await turnOn(device)
    await expect(turnOn(own[10] as PairedDevice)).rejects.toMatchObject({ code: 'conflict', message: expect.stringMatching(/10 of your/) })
    await turnOn(own[3] as PairedDevice)
    await turnOn(ADA)
    await call('DELETE /api/web-push', own[0] as PairedDevice)
    await turnOn(own[10] as PairedDevice)
  })

  test('are 200, of which an operator takes the one that a client has had longest', async () => {
    const clients = people(201, BOB)
    const { turnOn, call, clock, host } = await start({ devices: [...clients, ADA] })
    for (const device of clients.slice(0, 200)) {
      await turnOn(device)
      await clock.advance(1)
    }
    await expect(turnOn(clients[200] as PairedDevice)).rejects.toMatchObject({ code: 'conflict' })
    await turnOn(clients[0] as PairedDevice)
    const { endpoint } = await turnOn(ADA)
    expect((await call('GET /api/web-push', ADA)).endpoint).toBe(endpoint)
    expect((await call('GET /api/web-push', clients[0] as PairedDevice)).endpoint).not.toBe(null)
    expect((await call('GET /api/web-push', clients[1] as PairedDevice)).endpoint).toBe(null)
    expect(host.logs.at(-1)).toMatchObject({ level: 'warn', fields: { device: 'client-1' } })
  })

  test('are not taken from operators', async () => {
    const operators = people(200, ADA)
    const { turnOn } = await start({ devices: [...operators, ADA] })
    for (const device of operators) await turnOn(device)
    await expect(turnOn(ADA)).rejects.toMatchObject({ code: 'conflict' })
  })
})

test('a notification reads all subscriptions once, and then the one of each attempt', async () => {
  const secrets = memorySecrets()
  let lists = 0
  const counted: typeof secrets = {
    ...secrets,
    list(prefix, limit) {
      lists += 1
      return secrets.list(prefix, limit)
    },
  }
  const devices = Array.from({ length: 30 }, (_, number): PairedDevice => ({ ...ADA, id: `d${number}`, origin: `d${number}` }))
  const { turnOn, call, wait, clock, service } = await start({ secrets: counted, devices })
  for (const device of devices) await turnOn(device)
  lists = 0
  wait(approval())
  await clock.advance(0)
  await expect.poll(() => service.received).toHaveLength(30)
  await call('GET /api/web-push', devices[0] as PairedDevice)
  expect(lists).toBe(1)
})

test('the key and the subscriptions survive a restart, and nothing is sent again', async () => {
  const first = await start()
  await first.turnOn(ADA)
  const { public_key } = await first.call('GET /api/web-push', ADA)
  first.service.next.push(() => new Response(null, { status: 503 }))
  first.wait(approval())
  await first.clock.advance(0)
  await expect.poll(() => first.service.requests).toBe(1)
  await first.parts.close?.()
  const second = await start({ secrets: first.secrets })
  await second.clock.advance(3_600_000)
  expect(second.service.requests).toBe(0)
  expect(await second.call('GET /api/web-push', ADA)).toMatchObject({
    public_key,
    endpoint: expect.stringContaining('https://push.example/'),
  })
})

test('a build that another one replaces reports nothing more', async () => {
  const { parts, follows } = await start()
  expect(follows()).toBe(true)
  await parts.drain?.()
  expect(follows()).toBe(false)
})

test('operators see the browsers and turn them off, with a record', async () => {
  const { turnOn, call, run, audits } = await start()
  await turnOn(ADA)
  await turnOn(BOB)
  expect(await call('GET /api/web-push/browsers', ADA)).toMatchObject({
    browsers: [{ device: 'ada', service: 'push.example' }, { device: 'bob' }],
  })
  expect(await call('DELETE /api/web-push/browsers/:device', ADA, { params: { device: 'bob' } })).toEqual({ removed: 'bob' })
  expect(await run('web-push remove', 'ada')).toEqual(['removed the notifications of ada'])
  await expect(run('web-push remove', 'ada')).rejects.toMatchObject({ code: 'not_found' })
  expect(audits).toEqual([
    { kind: 'notifications_removed', by: 'device:ada', detail: { device: 'bob' } },
    { kind: 'notifications_removed', by: 'cli:me', detail: { device: 'ada' } },
  ])
})

test('the configuration needs a contact, and is off unless it is turned on', async () => {
  expect(v.parse(webPushSection.schema, {})).toEqual({ enabled: false })
  expect(() => v.parse(webPushSection.schema, { enabled: true })).toThrow('contact is needed')
  for (const contact of ['admin@example.com', 'mailto:admin', 'http://example.com'])
    expect(() => v.parse(webPushSection.schema, { enabled: true, contact })).toThrow('mailto:')
  const { parts } = await start({ config: {} })
  expect(parts).toMatchObject({ disabledReason: '`enabled` is false', commands: [{ name: 'web-push list' }, { name: 'web-push remove' }] })
  expect(parts.routes).toBeUndefined()
})
