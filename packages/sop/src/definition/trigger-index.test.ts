import { bodyHmac, SENDER_SCHEMES, STANDINGS, type Standing, type WebhookAuth } from '@sluice/sdk'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type SopDefinition, type SopTrigger, triggerText } from './definition.ts'
import { TriggerIndex } from './trigger-index.ts'

const sop = (name: string, ...triggers: SopTrigger[]): SopDefinition => ({
  name,
  description: '',
  version: '0.1.0',
  agent: 'main',
  priority: 'normal',
  mode: 'auto',
  cooldownSecs: 0,
  maxConcurrent: 1,
  maxWaiting: 100,
  countWaiting: true,
  triggers,
  steps: [],
  folder: `/sops/${name}`,
})
const webhook = (path: string, condition: string | null = null): SopTrigger => ({ type: 'webhook', path, condition })
const mqtt = (topic: string, condition: string | null = null): SopTrigger => ({ type: 'mqtt', topic, condition })
const cron = (expression: string): SopTrigger => ({ type: 'cron', expression, timezone: 'UTC' })
const board = (name: string, signal: string): SopTrigger => ({ type: 'peripheral', board: name, signal, condition: null })

const index = new TriggerIndex([
  sop('zeta', webhook('/deploy'), mqtt('home/+/temp', '$.value > 30')),
  sop('beta', webhook('/deploy'), webhook('/deploy', '$.force == true'), cron('0 9 * * *')),
  sop('alpha', webhook('/deploy', '$.env == "prod"'), mqtt('home/kitchen/temp'), { type: 'manual' }),
  sop('gamma', mqtt('#'), board('nucleo', 'button'), cron('0 9 * * *')),
])
const names = (source: Parameters<TriggerIndex['matches']>[0], topic: string, payload: string | null = null) =>
  index.match({ source, topic, payload, standing: 'operator' }).map(({ name }) => name)

describe('an event matches every procedure with a matching trigger', () => {
  test.each<[Parameters<typeof names>, string[]]>([
    [
      ['webhook', '/deploy'],
      ['beta', 'zeta'],
    ],
    [
      ['webhook', '/deploy', '{"env":"prod","force":true}'],
      ['alpha', 'beta', 'zeta'],
    ],
    [
      ['webhook', '/deploy', 'no JSON'],
      ['beta', 'zeta'],
    ],
    [['webhook', '/Deploy'], []],
    [['webhook', '/deploy/'], []],
    [
      ['mqtt', 'home/kitchen/temp', '{"value":31}'],
      ['alpha', 'gamma', 'zeta'],
    ],
    [['mqtt', 'home/hall/temp', '{"value":30}'], ['gamma']],
    [['mqtt', '$SYS/uptime'], []],
    [
      ['cron', '0 9 * * *'],
      ['beta', 'gamma'],
    ],
    [['cron', '0  9 * * *'], []],
    [['peripheral', 'nucleo/button'], ['gamma']],
    [['peripheral', 'nucleo/led'], []],
    [['manual', 'alpha'], ['alpha']],
    [['manual', 'beta'], []],
  ])('%j: %j', (event, expected) => {
    expect(names(...event)).toEqual(expected)
  })

  test('matches ignores conditions', () => {
    expect(index.matches('webhook', '/deploy')).toBe(true)
    expect(new TriggerIndex([sop('a', webhook('/x', '$.a == 1'))]).matches('webhook', '/x')).toBe(true)
    expect(index.matches('webhook', '/other')).toBe(false)
    expect(index.matches('mqtt', 'any/topic')).toBe(true)
  })

  test('topics lists each topic of a kind once, as it is written', () => {
    expect(index.topics('mqtt')).toEqual(['#', 'home/+/temp', 'home/kitchen/temp'])
    expect(index.topics('cron')).toEqual(['0 9 * * *'])
    expect(index.topics('webhook')).toEqual(['/deploy'])
    expect(index.topics('peripheral')).toEqual(['nucleo/button'])
  })

  test.each<[SopTrigger, string]>([
    [webhook('/deploy'), 'webhook:/deploy'],
    [cron('0 9 * * *'), 'cron:0 9 * * *'],
    [mqtt('a/#'), 'mqtt:a/#'],
    [board('nucleo', 'button'), 'peripheral:nucleo/button'],
    [{ type: 'manual' }, 'manual'],
  ])('triggerText shows every type of trigger: %j', (trigger, label) => {
    expect(triggerText(trigger)).toBe(label)
  })
})

describe('a path starts the procedures that are open to the standing of the cause', () => {
  const AUTH = { name: 'token', scheme: { kind: 'token', header: 'x-key' }, secrets: ['s'], windowSecs: 300 } as const
  const open = (role: Standing): SopTrigger => ({ ...webhook('/in'), role }) as SopTrigger
  const mixed = new TriggerIndex([
    sop('plain', webhook('/in')),
    ...STANDINGS.map((role) => sop(`to-${role}`, open(role))),
    sop('signed', { type: 'webhook', path: '/in', condition: null, auth: AUTH }),
  ])

  test.each(STANDINGS.map((standing, index) => [standing, index] as const))('of %s', (standing, index) => {
    const found = mixed.match({ source: 'webhook', topic: '/in', payload: null, standing }).map(({ name }) => name)
    const opened = STANDINGS.slice(index).map((role) => `to-${role}`)
    expect(found.toSorted()).toEqual([...(standing === 'operator' ? ['plain'] : []), ...opened].toSorted())
  })

  test('and nothing for a cause without a standing, or that only claims to be verified', () => {
    expect(mixed.match({ source: 'webhook', topic: '/in', payload: null }).map(({ name }) => name)).toEqual(['to-unverified'])
    expect(mixed.match({ source: 'webhook', topic: '/in', payload: null, standing: 'unverified' }, [AUTH])).toMatchObject([
      { name: 'signed' },
    ])
    expect(mixed.webhooks('/in').map(({ auth, role }) => [auth?.name, role])).toEqual([
      [undefined, 'unverified'],
      ['token', 'operator'],
    ])
  })

  test('while events of brokers, boards and the clock have no standing', () => {
    for (const [source, topic] of [
      ['mqtt', 'home/kitchen/temp'],
      ['peripheral', 'nucleo/button'],
      ['cron', '0 9 * * *'],
    ] as const)
      expect(index.match({ source, topic, payload: null })).not.toEqual([])
  })
})

describe('procedures that do not match cost nothing', () => {
  afterEach(() => {
    vi.restoreAllMocks()
  })

  /** Returns the number of look-ups for one event of each kind. */
  function costWith(count: number): number {
    const definitions = Array.from({ length: count }, (_, n) =>
      sop(
        `sop-${n}`,
        webhook(`/hook/${n}`, '$.a == 1'),
        cron(`${n % 60} ${n % 24} * * *`),
        mqtt(`site/${n}/+/state`),
        mqtt(`site/${n}/door`),
        board(`board-${n}`, 'x'),
      ),
    )
    const built = new TriggerIndex(definitions)
    const looks = vi.spyOn(Map.prototype, 'get')
    const adds = vi.spyOn(Set.prototype, 'add')
    for (const [source, topic] of [
      ['webhook', '/hook/7'],
      ['mqtt', 'site/7/a/state'],
      ['mqtt', 'site/7/door'],
      ['peripheral', 'board-7/x'],
    ] as const) {
      expect(built.match({ source, topic, payload: '{"a":1}', standing: 'operator' })).toHaveLength(1)
    }
    const cost = looks.mock.calls.length + adds.mock.calls.length
    vi.restoreAllMocks()
    return cost
  }

  test('10,000 procedures need as many look-ups as 10', () => {
    const few = costWith(10)
    expect(few).toBeGreaterThan(10)
    expect(costWith(10_000)).toBe(few)
  })

  test('indexing 10,000 procedures does not block the event loop', async () => {
    const definitions = Array.from({ length: 10_000 }, (_, n) => sop(`sop-${n}`, webhook(`/hook/${n}`, `$.a == ${n % 3}`)))
    let ticks = 0
    let isBuilding = true
    const countTicks = (): void => {
      ticks++
      if (isBuilding) setImmediate(countTicks)
    }
    setImmediate(countTicks)
    const built = await TriggerIndex.of(definitions)
    isBuilding = false
    expect(ticks).toBeGreaterThan(10)
    expect(built.topics('webhook')).toEqual(new TriggerIndex(definitions).topics('webhook'))
    expect(built.match({ source: 'webhook', topic: '/hook/9999', payload: '{"a":0}', standing: 'operator' })).toEqual([definitions[9999]])
    expect(built.match({ source: 'webhook', topic: '/hook/9999', payload: '{"a":1}', standing: 'operator' })).toEqual([])
  })
})

describe('the event with which a sender tries an endpoint', () => {
  const github: WebhookAuth = { name: 'github', scheme: SENDER_SCHEMES.github, secrets: ['gh'], windowSecs: 300 }
  const own: WebhookAuth = { ...github, name: 'hmac', scheme: bodyHmac('x-hub-signature-256') }
  const started = (auth: WebhookAuth, condition: string | null, name = 'ping') =>
    new TriggerIndex([sop('a', { type: 'webhook', path: '/in', condition, auth })]).match(
      { source: 'webhook', topic: '/in', payload: '{"zen":"x"}', headers: { 'x-github-event': name } },
      [auth],
    ).length

  test.each<[string, WebhookAuth, string | null, string, number]>([
    ['starts nothing', github, null, 'ping', 0],
    ['starts nothing under a condition about something else', github, '$.zen == "x"', 'ping', 0],
    ['starts nothing under a condition that excludes another event', github, '$header.X-GitHub-Event != push', 'ping', 0],
    ['starts a procedure whose condition names it', github, '$header.X-GitHub-Event == ping', 'ping', 1],
    ['is an event like any other for a trigger with another scheme', own, null, 'ping', 1],
    ['differs from the other events of the sender', github, null, 'push', 1],
  ])('%s', (_what, auth, condition, name, count) => {
    expect(started(auth, condition, name)).toBe(count)
  })
})
