import type { Host } from '@sluice/sdk'
import { testHost, throwingHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { mqttSection } from './config.ts'
import feature from './index.ts'
import { soon } from './testing/bench.ts'

const read = (config: object) => v.safeParse(mqttSection.schema, config)
const problems = (config: object) => read(config).issues?.map(({ message }) => message)
const enabled = { enabled: true, broker_url: 'mqtt://127.0.0.1:1' }
const build = (host: Host = testHost(), config: object = enabled) => feature.build(host, v.parse(mqttSection.schema, config))

describe('the feature', () => {
  it('it is off unless it is enabled', () => {
    expect(build(testHost(), {})).toEqual({ off: '`enabled` is false' })
    expect(build().off).toBeUndefined()
  })

  it('build does no I/O', () => {
    build(throwingHost())
  })

  it('registration waits for nothing, and close may be called twice, and before', async () => {
    const parts = build()
    await parts.register?.(new AbortController().signal)
    await parts.close?.()
    await parts.close?.()
    await build().close?.()
  })

  it('it waits for the engine, which may be ready later', async () => {
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

  it('a broker that is not there is told of once, and tried again with random pauses that grow to a minute', async () => {
    const host = testHost({ services: { sops: { topics: () => [], onReload: () => () => undefined } as never } })
    const parts = build(host)
    await parts.register?.(new AbortController().signal)
    const tried = () => host.logs.filter(({ message }) => /out of reach/.test(message))
    for (let tries = 1; tries < 12; tries++) {
      await soon(() => expect(tried().length).toBe(tries))
      await soon(() => expect(host.clock.sleeping).toBe(1))
      await host.advance(Math.min(60_000, 1000 * 2 ** (tries - 1)))
    }
    expect(tried().map(({ level }) => level)).toEqual(['warn', ...Array(tried().length - 1).fill('debug')])
    await parts.close?.()
  })
})

describe('[channels_config.mqtt]', () => {
  it('defaults', () => {
    expect(read({}).output).toEqual({ enabled: false, topics: [], qos: 1, keep_alive_secs: 30 })
  })

  it('enabled, it needs a broker', () => {
    expect(problems({ enabled: true })).toEqual(['it is enabled without broker_url'])
  })

  it.each(['mqtt://broker', 'mqtt://broker:1884', 'mqtts://broker.example/', 'mqtt://[::1]:1883', 'MQTT://192.0.2.1'])(
    '%s is a broker',
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
  ])('"%s" is no broker', (url) => {
    expect(problems({ broker_url: url })).toEqual(['Not mqtt://host, mqtt://host:port, mqtts://host or mqtts://host:port'])
  })

  it.each(['mqtt://me:pa55word@broker', 'mqtt://me@broker', 'mqtt://:pa55word@broker:x'])(
    'credentials have no place in %s, and are not quoted',
    (url) => {
      const [problem, ...others] = problems({ broker_url: url }) ?? []
      expect(problem).toBe('It has a user name or password in it; they go into username and password')
      expect(others.join()).not.toContain('pa55')
    },
  )

  it('QoS 2 is refused, and why', () => {
    expect(problems({ qos: 2 })).toEqual([expect.stringMatching(/^0 or 1; with 2 .* a crash lose it$/)])
  })

  it('a password belongs to a user name, and does not show', () => {
    expect(problems({ password: 'hunter22' })).toEqual(['MQTT has no password without username'])
    expect(JSON.stringify(read({ username: 'me', password: 'hunter22' }).output)).not.toContain('hunter22')
  })

  it.each(['a', 'a/b', '+', '#', '+/b/#', '/', 'a//b', '$SYS/#', 'a b/c'])('"%s" is a topic filter', (filter) => {
    expect(problems({ topics: [filter] })).toBeUndefined()
  })

  it.each(['', 'a+', 'a/#/b', '##', '#/a', '+a/b', 'a\0', '$share/group/a'])('"%s" is no topic filter', (filter) => {
    expect(problems({ topics: [filter] })).toHaveLength(1)
  })
})
