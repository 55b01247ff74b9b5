import type { Host } from '@sluice/sdk'
import { testHost, throwingHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { mqttSection } from './config.ts'
import feature from './index.ts'
import { soon } from './testing/open-trigger.ts'

const read = (config: object) => v.safeParse(mqttSection.schema, config)
const problems = (config: object) => read(config).issues?.map(({ message }) => message)
const enabled = { enabled: true, broker_url: 'mqtt://127.0.0.1:1' }
const build = (host: Host = testHost(), config: object = enabled) => feature.build(host, v.parse(mqttSection.schema, config))

describe('the feature', () => {
  it('is off unless it is enabled', () => {
    expect(build(testHost(), {})).toEqual({ disabledReason: '`enabled` is false' })
    expect(build().disabledReason).toBeUndefined()
  })

  it('does no I/O in build', () => {
    build(throwingHost())
  })

  it('registers at once, and closes twice or before it is registered', async () => {
    const parts = build()
    await parts.register?.(new AbortController().signal)
    await parts.close?.()
    await parts.close?.()
    await build().close?.()
  })

  it('waits until the procedure engine is ready', async () => {
    let asked = 0
    const test = testHost()
    const parts = feature.build({ ...test, service: () => void asked++ }, v.parse(mqttSection.schema, enabled))
    await parts.register?.(new AbortController().signal)
    for (const looks of [2, 3, 4]) {
      await test.advance(250)
      expect(asked).toBe(looks)
    }
    await parts.close?.()
    expect(test.logs).toEqual([])
  })

  it('logs an unreachable broker once and retries with growing delays', async () => {
    // The test advances the clock by the longest delay that each attempt can be followed by.
    const longestMs = (tries: number): number => (tries < 3 ? tries * 1000 : 480_000)
    const host = testHost({ services: { sops: { topics: () => [], onReload: () => () => undefined } as never } })
    const parts = build(host)
    await parts.register?.(new AbortController().signal)
    const tried = () => host.logs.filter(({ message }) => /^connection failed/.test(message))
    for (let tries = 1; tries < 12; tries++) {
      await soon(() => expect(tried().length).toBe(tries))
      await soon(() => expect(host.clock.sleeping).toBe(1))
      await host.advance(longestMs(tries))
    }
    expect(tried().map(({ level }) => level)).toEqual(['warn', ...Array(tried().length - 1).fill('debug')])
    await parts.close?.()
  })

  it('tries an unreachable broker at most 300 times a day, and within 5 s of the end of a short outage', async () => {
    const host = testHost({ services: { sops: { topics: () => [], onReload: () => () => undefined } as never } })
    const parts = build(host)
    await parts.register?.(new AbortController().signal)
    const delays = () => host.logs.flatMap(({ message, fields }) => (/^connection failed/.test(message) ? [Number(fields.retry_secs)] : []))
    let tries = 0
    while (host.clock.monotonicMs() < 86_400_000) {
      tries += 1
      await soon(() => expect([delays().length, host.clock.sleeping]).toEqual([tries, 1]))
      const delaySecs = delays().at(-1) ?? 0
      if (host.clock.monotonicMs() < 30_000) expect(delaySecs).toBeLessThanOrEqual(5)
      await host.advance(delaySecs * 1000)
    }
    expect(tries).toBeLessThanOrEqual(300)
    await parts.close?.()
  })
})

describe('[channels_config.mqtt]', () => {
  it('has defaults', () => {
    expect(read({}).output).toEqual({ enabled: false, topics: [], qos: 1, keep_alive_secs: 30 })
  })

  it('requires broker_url when it is enabled', () => {
    expect(problems({ enabled: true })).toEqual(['it is enabled without broker_url'])
  })

  it.each(['mqtt://broker', 'mqtt://broker:1884', 'mqtts://broker.example/', 'mqtt://[::1]:1883', 'MQTT://192.0.2.1'])(
    'accepts the broker %s',
    (url) => {
      expect(problems({ broker_url: url })).toBeUndefined()
    },
  )

  it.each([
    '',
    'broker',
    'http://broker',
    'ws://broker',
    'mqtt://',
    'mqtt:broker',
    'mqtt://b:0',
    'mqtt://b:99999',
    'mqtt://b/x',
    'mqtt://b?x',
    'mqtt://a b',
  ])('rejects the broker "%s"', (url) => {
    expect(problems({ broker_url: url })).toEqual(['Must be mqtt://host, mqtt://host:port, mqtts://host or mqtts://host:port'])
  })

  it.each(['mqtt://me:pa55word@broker', 'mqtt://me@broker', 'mqtt://:pa55word@broker:x'])(
    'rejects credentials in %s without quoting them',
    (url) => {
      const [problem, ...others] = problems({ broker_url: url }) ?? []
      expect(problem).toBe('The URL contains a user name or password; write them in username and password')
      expect(others.join()).not.toContain('pa55')
    },
  )

  it('rejects QoS 2 with a reason', () => {
    expect(problems({ qos: 2 })).toEqual([expect.stringMatching(/^Must be 0 or 1; with 2 .* a crash would lose it$/)])
  })

  it('requires a user name with a password and hides the password', () => {
    expect(problems({ password: 'hunter22' })).toEqual(['MQTT has no password without username'])
    expect(JSON.stringify(read({ username: 'me', password: 'hunter22' }).output)).not.toContain('hunter22')
  })

  it.each(['a', 'a/b', '+', '#', '+/b/#', '/', 'a//b', '$SYS/#', 'a b/c'])('accepts the topic filter "%s"', (filter) => {
    expect(problems({ topics: [filter] })).toBeUndefined()
  })

  it.each(['', 'a+', 'a/#/b', '##', '#/a', '+a/b', 'a\0', '$share/group/a'])('rejects the topic filter "%s"', (filter) => {
    expect(problems({ topics: [filter] })).toHaveLength(1)
  })
})
