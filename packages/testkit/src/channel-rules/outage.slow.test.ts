/** Each rule for outages finds a channel that breaks it. The channels poll a platform in memory. */
import { Cursors, signalScope } from '@sluice/kit'
import { AppError, type Channel, type Deliver, defineFeature, type Feature, type Host, type ListenContext } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import type { ListenSubject } from '../channel-subject.ts'
import { brokenRules } from '../rules.ts'
import { outageRules } from './outage.ts'

type Fault =
  | 'none'
  | 'moves before a message is durable'
  | 'drops failed deliveries'
  | 'drops failed deliveries of the past'
  | 'waits forever'

const POLL_MS = 1000
const SILENCE_MS = 20_000
/** A broken rule waits for this real time. A channel that keeps the rules needs less. */
const BROKEN_LIMIT_MS = 1500

/** Messages are numbered from 1. */
class Platform {
  readonly texts: string[] = []
  isDown = false
  /** Connections up to this number get no answer. */
  silent = 0
  connections = 0
}

function subjectWith(platform: Platform, fault: Fault): Feature {
  const listen = async (host: Host, cursors: Cursors, deliver: Deliver, { signal, report }: ListenContext): Promise<void> => {
    if (platform.isDown) throw new AppError('unavailable', 'down')
    const connection = ++platform.connections
    cursors.follow('room', { after: '0' })
    report.connected()
    const missed = platform.texts.length
    while (!signal.aborted) {
      if (platform.isDown) throw new AppError('unavailable', 'broken')
      if (connection <= platform.silent) {
        await host.clock.sleep(fault === 'waits forever' ? 2 ** 31 : SILENCE_MS, signal)
        throw new AppError('unavailable', 'silent')
      }
      const after = Number(cursors.get('room')?.after)
      for (const [at, text] of platform.texts.entries()) {
        if (at < after) continue
        if (fault === 'moves before a message is durable') cursors.advance('room', String(at + 1))
        const isDropped = fault === 'drops failed deliveries' || (fault === 'drops failed deliveries of the past' && at < missed)
        const delivered = deliver({ id: `m-${at + 1}`, account: 'bot', sender: 'ada', to: { to: 'room' }, text })
        await (isDropped ? delivered.catch(() => undefined) : orAbort(delivered, signal))
        if (!signal.aborted) cursors.advance('room', String(at + 1))
      }
      await host.clock.sleep(POLL_MS, signal)
    }
  }
  return defineFeature({
    id: 'x-polled',
    build(host) {
      const read = (_scope: string, stored: unknown) => stored as { after: string }
      const cursors = new Cursors({ keyValue: host.keyValue, key: 'cursors', groups: [], read })
      const channel: Channel = {
        name: 'polled',
        allow: ['*'],
        limits: { text: 100, unit: 'utf16' },
        cursors,
        send: async () => ({ id: 's' }),
        listen: (deliver, context) => listen(host, cursors, deliver, context),
      }
      return { channels: [channel] }
    },
  })
}

/** Waits for a promise, but only until `signal` aborts. */
async function orAbort(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  const aborted = Promise.withResolvers<void>()
  using scope = signalScope([signal])
  scope.signal.addEventListener('abort', () => aborted.resolve(), { once: true })
  await Promise.race([promise, aborted.promise])
}

function rulesOf(fault: Fault) {
  const listen: ListenSubject = {
    host: () => ({}),
    expect: [],
    canFallSilent: true,
    async platform() {
      const platform = new Platform()
      feature = subjectWith(platform, fault)
      return {
        fake: {
          cut({ isDown = false } = {}) {
            platform.isDown = isDown
          },
          close: async () => undefined,
        },
        config: {},
        say: (text) => void platform.texts.push(text),
        fallSilent() {
          platform.silent = platform.connections
        },
        refuse: () => undefined,
      }
    },
  }
  let feature = subjectWith(new Platform(), fault)
  const subject = {
    get feature() {
      return feature
    },
    config: {},
    allowKey: 'allow',
    secrets: [],
    listen,
  }
  return outageRules(subject, listen, fault === 'none' ? undefined : BROKEN_LIMIT_MS)
}

const RULES = [
  'a message that was not durable when the process was killed is delivered again',
  'a delivery that failed is delivered again',
  'a delivery that failed after an outage is delivered again',
  'a connection that falls silent is replaced',
]

describe('a channel that', () => {
  test.concurrent.each<[fault: Fault, broken: readonly string[]]>([
    ['none', []],
    ['moves before a message is durable', RULES.slice(0, 3)],
    ['drops failed deliveries', RULES.slice(1, 3)],
    ['drops failed deliveries of the past', [RULES[2] ?? '']],
    ['waits forever', [RULES[3] ?? '']],
  ])('%s breaks its rules', { timeout: 60_000 }, async (fault, broken) => {
    const rules = rulesOf(fault)
    const checked = Object.fromEntries(RULES.map((rule) => [rule, rules[rule] ?? (() => undefined)]))
    expect(Object.keys(rules)).toEqual(expect.arrayContaining(RULES))
    expect((await brokenRules(checked)).toSorted()).toEqual(broken.toSorted())
  })
})
