import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import tls from 'node:tls'
import { REFUSED_MS } from '@sluice/kit'
import type { DebianProgram } from '@sluice/qa/debian-program'
import { findMosquitto, type Mosquitto, type MosquittoOptions, startMosquitto } from '@sluice/qa/mosquitto'
import { AppError } from '@sluice/sdk'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { connectAsync, type IClientOptions } from 'mqtt'
import { afterEach, describe, expect, it } from 'vitest'
import { openLine } from './testing/broker-line.ts'
import { fakeSops } from './testing/fake-sops.ts'
import { type OpenTrigger, openTrigger, soon, type TriggerOptions } from './testing/open-trigger.ts'
import { TYPES } from './testing/packets.ts'

const program = await findMosquitto()
const found = 'missing' in program ? undefined : program
const skipReason = 'missing' in program ? ` (skipped: ${program.missing})` : ''

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

describe.skipIf(!found)(`MqttTrigger with a real broker${skipReason}`, () => {
  const startBroker = async (options: MosquittoOptions = {}): Promise<Mosquitto> => {
    const broker = await startMosquitto(found as DebianProgram, options)
    cleanups.push(() => broker.dispose())
    return broker
  }
  const start = async (url: string, options: TriggerOptions): Promise<OpenTrigger> => {
    const trigger = await openTrigger(url, options)
    cleanups.push(() => trigger.close())
    return trigger
  }
  const lineTo = async ({ port }: Mosquitto) => {
    const line = await openLine(port)
    cleanups.push(() => line.close())
    return line
  }
  const publisher = async (broker: Mosquitto, options: IClientOptions = {}) => {
    const client = await connectAsync(broker.url, { reconnectPeriod: 50, ...options })
    cleanups.push(() => client.endAsync(true))
    return {
      publish: (topic: string, payload: string, retain = false) => client.publishAsync(topic, payload, { qos: 1, retain }),
    }
  }
  const ready = (broker: Mosquitto, count = 1) =>
    soon(() => expect(broker.log().match(/Received SUBSCRIBE/g)?.length).toBeGreaterThanOrEqual(count))
  const verbose: MosquittoOptions = { lines: ['log_type all'] }

  it('fires messages on the topics of triggers in order and ignores others', async () => {
    const broker = await startBroker(verbose)
    const sops = fakeSops(['home/+/door', 'garden/#'])
    const { logged } = await start(broker.url, { sops })
    await ready(broker)
    const { publish } = await publisher(broker)
    for (const topic of ['home/hall/door', 'home/door', 'garden', 'garden/a/b', 'other']) await publish(topic, `on ${topic}`)
    await publish('home/attic/door', 'last')
    await soon(() => expect(sops.payloads).toEqual(['on home/hall/door', 'on garden', 'on garden/a/b', 'last']))
    expect(logged('connected to the MQTT broker')).toMatchObject([{ level: 'info', fields: { session: 'new' } }])
  })

  it('receives messages published while it was stopped, once', async () => {
    const broker = await startBroker(verbose)
    const sops = fakeSops(['a'])
    const keyValue = memoryKeyValue()
    const first = await start(broker.url, { sops, keyValue })
    await ready(broker)
    await first.close()
    const { publish } = await publisher(broker)
    for (const payload of ['1', '2', '3']) await publish('a', payload)
    expect(sops.payloads).toEqual([])
    const second = await start(broker.url, { sops, keyValue })
    await soon(() => expect(sops.payloads).toEqual(['1', '2', '3']))
    expect(second.logged('connected to the MQTT broker')).toMatchObject([{ fields: { session: 'resumed' } }])
  })

  it.each(['stop', 'kill'] as const)('reconnects after a %s of the broker without lost or repeated messages', async (how) => {
    const broker = await startBroker(verbose)
    const sops = fakeSops(['a'])
    const { logged } = await start(broker.url, { sops })
    await ready(broker)
    const before = await publisher(broker)
    await before.publish('a', 'before')
    await soon(() => expect(sops.payloads).toEqual(['before']))
    await soon(() => expect(broker.log()).toMatch(/Received PUBACK from sluice/))
    if (how === 'kill') await soon(() => expect(broker.log()).toMatch(/Saving in-memory database/))
    await broker[how]()
    await soon(() => expect(logged('connection lost')).toHaveLength(1))
    await broker.start()
    await ready(broker, 2)
    await before.publish('a', 'after')
    await soon(() => expect(sops.payloads).toEqual(['before', 'after']))
  })

  it('acknowledges a message only when its runs are stored', async () => {
    const broker = await startBroker(verbose)
    const line = await lineTo(broker)
    const sops = fakeSops(['a'])
    const held = Promise.withResolvers<void>()
    sops.before = () => held.promise
    await start(line.url, { sops })
    await ready(broker)
    const { publish } = await publisher(broker)
    await publish('a', '1')
    await publish('a', '2')
    await soon(() => expect(sops.fired).toHaveLength(1))
    // The broker has sent both messages, so the second has arrived, too.
    await soon(() => expect(broker.log().match(/Sending PUBLISH to sluice/g)).toHaveLength(2))
    expect(line.count(TYPES.puback)).toBe(0)
    held.resolve()
    await soon(() => expect(line.count(TYPES.puback)).toBe(2))
    expect(sops.payloads).toEqual(['1', '2'])
  })

  it('fires a repeated message as the same event after a lost connection', async () => {
    const broker = await startBroker(verbose)
    const line = await lineTo(broker)
    const sops = fakeSops(['a'])
    sops.after = () => {
      if (sops.fired.length === 1) line.cut()
    }
    await start(line.url, { sops })
    await ready(broker)
    const { publish } = await publisher(broker)
    await publish('a', '1')
    await soon(() => expect(sops.fired).toHaveLength(2))
    await publish('a', '2')
    await soon(() => expect(sops.payloads).toEqual(['1', '2']))
    expect(sops.fired[0]?.key).toBe(sops.fired[1]?.key)
    expect(sops.fired).toHaveLength(3)
  })

  it('fires a repeated message as the same event after a restart', async () => {
    const broker = await startBroker(verbose)
    const line = await lineTo(broker)
    const sops = fakeSops(['a'])
    const keyValue = memoryKeyValue()
    sops.after = () => new Promise(() => undefined)
    const first = await start(line.url, { sops, keyValue })
    await ready(broker)
    const { publish } = await publisher(broker)
    await publish('a', '1')
    await soon(() => expect(sops.stored).toHaveLength(1))
    line.cut()
    await first.close()
    sops.after = () => undefined
    await publish('a', '2')
    await start(line.url, { sops, keyValue })
    await soon(() => expect(sops.payloads).toEqual(['1', '2']))
    expect(sops.fired.map(({ payload }) => payload)).toEqual(['1', '1', '2'])
    await soon(() => expect(line.count(TYPES.puback)).toBe(2))
  })

  it('keeps messages in order while their runs cannot be stored', async () => {
    const broker = await startBroker(verbose)
    const line = await lineTo(broker)
    const sops = fakeSops(['a'])
    sops.before = () => {
      throw new AppError('unavailable', 'the disk is full')
    }
    const { logged } = await start(line.url, { sops, waitMsMax: 5 })
    await ready(broker)
    const { publish } = await publisher(broker)
    for (const payload of ['1', '2', '3']) await publish('a', payload)
    await soon(() => expect(sops.fired.length).toBeGreaterThan(5))
    expect(new Set(sops.fired.map(({ payload }) => payload))).toEqual(new Set(['1']))
    expect(line.count(TYPES.puback)).toBe(0)
    sops.before = () => undefined
    await soon(() => expect(sops.payloads).toEqual(['1', '2', '3']))
    expect(logged('runs of an MQTT message not stored, trying again').length).toBeGreaterThan(4)
    expect(logged('connection lost')).toEqual([])
  })

  it('ignores a retained message unless it is published later', async () => {
    const broker = await startBroker(verbose)
    const { publish } = await publisher(broker)
    await publish('a', 'old state', true)
    const sops = fakeSops(['a'])
    const { logged } = await start(broker.url, { sops })
    await soon(() => expect(logged('ignored a retained MQTT message')).toHaveLength(1))
    await publish('a', 'new state', true)
    await soon(() => expect(sops.payloads).toEqual(['new state']))
  })

  it('changes its subscriptions after a reload and after a restart', async () => {
    const broker = await startBroker(verbose)
    const sops = fakeSops(['a', 'b'])
    const keyValue = memoryKeyValue()
    const first = await start(broker.url, { sops, keyValue })
    await ready(broker)
    const { publish } = await publisher(broker)
    sops.reload(['b', 'c'])
    await ready(broker, 2)
    await soon(() => expect(broker.log()).toMatch(/Received UNSUBSCRIBE[\s\S]*\ta\n/))
    await publish('c', 'new')
    await soon(() => expect(sops.payloads).toEqual(['new']))
    await first.close()
    const other = fakeSops(['d/+', 'd/x'])
    await start(broker.url, { sops: other, keyValue })
    await soon(() => expect(broker.log()).toMatch(/\tb\n[\s\S]*\tc\n/))
    await publish('d/x', 'there')
    await soon(() => expect(other.payloads).toEqual(['there']))
    expect(await keyValue.get('subscribed')).toEqual(['d/+'])
  })

  it('prefers configured topics over the topics of triggers', async () => {
    const broker = await startBroker(verbose)
    const sops = fakeSops(['#'])
    await start(broker.url, { sops, config: { topics: ['only/#'] } })
    await ready(broker)
    const { publish } = await publisher(broker)
    await publish('else', '1')
    await publish('only/this', '2')
    await soon(() => expect(sops.payloads).toEqual(['2']))
  })

  it('sends no acknowledgement with QoS 0', async () => {
    const broker = await startBroker(verbose)
    const line = await lineTo(broker)
    const sops = fakeSops(['a'])
    await start(line.url, { sops, config: { qos: 0 } })
    await ready(broker)
    const { publish } = await publisher(broker)
    for (const payload of ['1', '2']) await publish('a', payload)
    await soon(() => expect(sops.payloads).toEqual(['1', '2']))
    expect(line.count(TYPES.puback)).toBe(0)
  })

  it('logs refused credentials once and retries rarely', async () => {
    const broker = await startBroker({ users: { sluice: 'right-password' } })
    const { logs, waits, close } = await start(broker.url, {
      sops: fakeSops(['a']),
      config: { username: 'sluice', password: 'wrong-password' },
      waitMsMax: 10,
    })
    await soon(() => expect(waits.length).toBeGreaterThan(2))
    await close()
    expect(logs.filter(({ level }) => level !== 'debug')).toMatchObject([
      { level: 'error', message: 'platform refused the connection', fields: { reason: 'Connection refused: Not authorized' } },
    ])
    expect(Math.min(...waits.filter((ms) => ms > 0))).toBeGreaterThanOrEqual(0.75 * REFUSED_MS)
    expect(JSON.stringify(logs)).not.toContain('wrong-password')
  })

  it('connects with user name and password', async () => {
    const broker = await startBroker({ users: { sluice: 'right-password' } })
    const { logged } = await start(broker.url, { sops: fakeSops(['a']), config: { username: 'sluice', password: 'right-password' } })
    await soon(() => expect(logged('connected to the MQTT broker')).toHaveLength(1))
  })

  it('closes within a second and sends DISCONNECT', async () => {
    const broker = await startBroker(verbose)
    const line = await lineTo(broker)
    const trigger = await start(line.url, { sops: fakeSops(['a']), waitMsMax: 60_000 })
    await ready(broker)
    expect(await trigger.closeMs()).toBeLessThan(1000)
    await soon(() => expect(line.count(TYPES.disconnect)).toBe(1))
  })

  it('closes within a second while a message is being handled', async () => {
    const broker = await startBroker(verbose)
    const sops = fakeSops(['a'])
    sops.before = () => new Promise(() => undefined)
    const trigger = await start(broker.url, { sops, waitMsMax: 60_000 })
    await ready(broker)
    const { publish } = await publisher(broker)
    await publish('a', '1')
    await soon(() => expect(sops.fired).toHaveLength(1))
    expect(await trigger.closeMs()).toBeLessThan(1000)
  })

  describe.skipIf(!hasOpenssl())('with TLS', () => {
    it('connects only to a broker with a trusted certificate', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'mqtt-tls-'))
      const defaults = tls.getCACertificates('default')
      cleanups.push(async () => {
        tls.setDefaultCACertificates(defaults)
        rmSync(folder, { recursive: true })
      })
      const files = { certFile: join(folder, 'cert.pem'), keyFile: join(folder, 'key.pem') }
      selfSigned(files)
      const broker = await startBroker({ tls: files })
      const sops = fakeSops(['a'])
      const { logged, logs } = await start(broker.url, { sops })
      await soon(() => expect(logged('connection failed, trying again')).toHaveLength(1))
      expect(logs.at(0)?.fields.reason).toMatch(/self-signed/)
      tls.setDefaultCACertificates([...defaults, readFileSync(files.certFile, 'utf8')])
      await soon(() => expect(logged('connected to the MQTT broker')).toHaveLength(1))
    })
  })
})

function hasOpenssl(): boolean {
  try {
    execFileSync('openssl', ['version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

const selfSigned = ({ certFile, keyFile }: { readonly certFile: string; readonly keyFile: string }): void => {
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', keyFile]
  const cert = ['-x509', '-days', '1', '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-out', certFile]
  execFileSync('openssl', ['req', ...key, ...cert], { stdio: 'ignore' })
}
