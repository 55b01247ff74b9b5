import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import tls from 'node:tls'
import type { DebianProgram } from '@sluice/qa/debian-program'
import { findMosquitto, type Mosquitto, type MosquittoOptions, startMosquitto } from '@sluice/qa/mosquitto'
import { AppError } from '@sluice/sdk'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { within } from '@sluice/testkit/within'
import { connectAsync, type IClientOptions } from 'mqtt'
import { afterEach, describe, expect, it } from 'vitest'
import { type Bench, type BenchOptions, openTrigger, soon } from './testing/bench.ts'
import { openLine } from './testing/broker-line.ts'
import { fakeSops } from './testing/fake-sops.ts'
import { TYPES } from './testing/packets.ts'

const program = await findMosquitto()
const found = 'missing' in program ? undefined : program
const why = 'missing' in program ? ` (left out: ${program.missing})` : ''

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

describe.skipIf(!found)(`with a real broker${why}`, () => {
  const startBroker = async (options: MosquittoOptions = {}): Promise<Mosquitto> => {
    const broker = await startMosquitto(found as DebianProgram, options)
    cleanups.push(() => broker.dispose())
    return broker
  }
  const start = async (url: string, options: BenchOptions): Promise<Bench> => {
    const bench = await openTrigger(url, options)
    cleanups.push(() => bench.close())
    return bench
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
      say: (topic: string, payload: string, retain = false) => client.publishAsync(topic, payload, { qos: 1, retain }),
    }
  }
  const ready = (broker: Mosquitto, count = 1) =>
    soon(() => expect(broker.log().match(/Received SUBSCRIBE/g)?.length).toBeGreaterThanOrEqual(count))
  const talkative: MosquittoOptions = { lines: ['log_type all'] }

  it('§2.4 a message on a topic of a trigger is an event, with wildcards and in order; others are not', async () => {
    const broker = await startBroker(talkative)
    const sops = fakeSops(['home/+/door', 'garden/#'])
    const { said } = await start(broker.url, { sops })
    await ready(broker)
    const { say } = await publisher(broker)
    for (const topic of ['home/hall/door', 'home/door', 'garden', 'garden/a/b', 'other']) await say(topic, `on ${topic}`)
    await say('home/attic/door', 'last')
    await soon(() => expect(sops.payloads).toEqual(['on home/hall/door', 'on garden', 'on garden/a/b', 'last']))
    expect(said('connected to the MQTT broker')).toMatchObject([{ level: 'info', fields: { session: 'new' } }])
  })

  it('what was published while we were down arrives when we are back, once', async () => {
    const broker = await startBroker(talkative)
    const sops = fakeSops(['a'])
    const keyValue = memoryKeyValue()
    const first = await start(broker.url, { sops, keyValue })
    await ready(broker)
    await first.close()
    const { say } = await publisher(broker)
    for (const payload of ['1', '2', '3']) await say('a', payload)
    expect(sops.payloads).toEqual([])
    const second = await start(broker.url, { sops, keyValue })
    await soon(() => expect(sops.payloads).toEqual(['1', '2', '3']))
    expect(second.said('connected to the MQTT broker')).toMatchObject([{ fields: { session: 'resumed' } }])
  })

  it.each(['stop', 'kill'] as const)('after a %s of the broker it is connected again, and nothing is lost or repeated', async (how) => {
    const broker = await startBroker(talkative)
    const sops = fakeSops(['a'])
    const { said } = await start(broker.url, { sops })
    await ready(broker)
    const before = await publisher(broker)
    await before.say('a', 'before')
    await soon(() => expect(sops.payloads).toEqual(['before']))
    await soon(() => expect(broker.log()).toMatch(/Received PUBACK from sluice/))
    if (how === 'kill') await soon(() => expect(broker.log()).toMatch(/Saving in-memory database/))
    await broker[how]()
    await soon(() => expect(said('the connection to the MQTT broker was lost')).toHaveLength(1))
    await broker.start()
    await ready(broker, 2)
    await before.say('a', 'after')
    await soon(() => expect(sops.payloads).toEqual(['before', 'after']))
  })

  it('a message is acknowledged when what it starts is kept, and not before', async () => {
    const broker = await startBroker(talkative)
    const line = await lineTo(broker)
    const sops = fakeSops(['a'])
    const held = Promise.withResolvers<void>()
    sops.before = () => held.promise
    await start(line.url, { sops })
    await ready(broker)
    const { say } = await publisher(broker)
    await say('a', '1')
    await say('a', '2')
    await soon(() => expect(sops.fired).toHaveLength(1))
    // The second has reached us, too: the broker has sent both.
    await soon(() => expect(broker.log().match(/Sending PUBLISH to sluice/g)).toHaveLength(2))
    expect(line.count(TYPES.puback)).toBe(0)
    held.resolve()
    await soon(() => expect(line.count(TYPES.puback)).toBe(2))
    expect(sops.payloads).toEqual(['1', '2'])
  })

  it('a line cut between the event and its acknowledgement: the message comes again as the same event', async () => {
    const broker = await startBroker(talkative)
    const line = await lineTo(broker)
    const sops = fakeSops(['a'])
    sops.after = () => {
      if (sops.fired.length === 1) line.cut()
    }
    await start(line.url, { sops })
    await ready(broker)
    const { say } = await publisher(broker)
    await say('a', '1')
    await soon(() => expect(sops.fired).toHaveLength(2))
    await say('a', '2')
    await soon(() => expect(sops.payloads).toEqual(['1', '2']))
    expect(sops.fired[0]?.key).toBe(sops.fired[1]?.key)
    expect(sops.fired).toHaveLength(3)
  })

  it('a process that ends between the event and its acknowledgement: the next one knows the message again', async () => {
    const broker = await startBroker(talkative)
    const line = await lineTo(broker)
    const sops = fakeSops(['a'])
    const keyValue = memoryKeyValue()
    sops.after = () => new Promise(() => undefined)
    const first = await start(line.url, { sops, keyValue })
    await ready(broker)
    const { say } = await publisher(broker)
    await say('a', '1')
    await soon(() => expect(sops.kept).toHaveLength(1))
    line.cut()
    await first.close()
    sops.after = () => undefined
    await say('a', '2')
    await start(line.url, { sops, keyValue })
    await soon(() => expect(sops.payloads).toEqual(['1', '2']))
    expect(sops.fired.map(({ payload }) => payload)).toEqual(['1', '1', '2'])
    await soon(() => expect(line.count(TYPES.puback)).toBe(2))
  })

  it('while nothing can be kept messages wait, in order, and are all there afterwards', async () => {
    const broker = await startBroker(talkative)
    const line = await lineTo(broker)
    const sops = fakeSops(['a'])
    sops.before = () => {
      throw new AppError('unavailable', 'the disk is full')
    }
    const { said } = await start(line.url, { sops, waitMsMax: 5 })
    await ready(broker)
    const { say } = await publisher(broker)
    for (const payload of ['1', '2', '3']) await say('a', payload)
    await soon(() => expect(sops.fired.length).toBeGreaterThan(5))
    expect(new Set(sops.fired.map(({ payload }) => payload))).toEqual(new Set(['1']))
    expect(line.count(TYPES.puback)).toBe(0)
    sops.before = () => undefined
    await soon(() => expect(sops.payloads).toEqual(['1', '2', '3']))
    expect(said('a message waits: what it starts could not be kept').length).toBeGreaterThan(4)
    expect(said('the connection to the MQTT broker was lost')).toEqual([])
  })

  it('a retained message is no event when we subscribe, and one when it is published', async () => {
    const broker = await startBroker(talkative)
    const { say } = await publisher(broker)
    await say('a', 'old state', true)
    const sops = fakeSops(['a'])
    const { said } = await start(broker.url, { sops })
    await soon(() => expect(said('a retained message is no event')).toHaveLength(1))
    await say('a', 'new state', true)
    await soon(() => expect(sops.payloads).toEqual(['new state']))
  })

  it('a reload changes what is subscribed, and a restart with other triggers does', async () => {
    const broker = await startBroker(talkative)
    const sops = fakeSops(['a', 'b'])
    const keyValue = memoryKeyValue()
    const first = await start(broker.url, { sops, keyValue })
    await ready(broker)
    const { say } = await publisher(broker)
    sops.reload(['b', 'c'])
    await ready(broker, 2)
    await soon(() => expect(broker.log()).toMatch(/Received UNSUBSCRIBE[\s\S]*\ta\n/))
    await say('c', 'new')
    await soon(() => expect(sops.payloads).toEqual(['new']))
    await first.close()
    const other = fakeSops(['d/+', 'd/x'])
    await start(broker.url, { sops: other, keyValue })
    await soon(() => expect(broker.log()).toMatch(/\tb\n[\s\S]*\tc\n/))
    await say('d/x', 'there')
    await soon(() => expect(other.payloads).toEqual(['there']))
    expect(await keyValue.get('subscribed')).toEqual(['d/+'])
  })

  it('topics of the configuration take the place of those of triggers', async () => {
    const broker = await startBroker(talkative)
    const sops = fakeSops(['#'])
    await start(broker.url, { sops, config: { topics: ['only/#'] } })
    await ready(broker)
    const { say } = await publisher(broker)
    await say('else', '1')
    await say('only/this', '2')
    await soon(() => expect(sops.payloads).toEqual(['2']))
  })

  it('with QoS 0 messages come without acknowledgement', async () => {
    const broker = await startBroker(talkative)
    const line = await lineTo(broker)
    const sops = fakeSops(['a'])
    await start(line.url, { sops, config: { qos: 0 } })
    await ready(broker)
    const { say } = await publisher(broker)
    for (const payload of ['1', '2']) await say('a', payload)
    await soon(() => expect(sops.payloads).toEqual(['1', '2']))
    expect(line.count(TYPES.puback)).toBe(0)
  })

  it('refused credentials are told of once, at error, without them, and tried again after the longest pause', async () => {
    const broker = await startBroker({ users: { sluice: 'right-password' } })
    const { logs, waits, close } = await start(broker.url, {
      sops: fakeSops(['a']),
      config: { username: 'sluice', password: 'wrong-password' },
      waitMsMax: 10,
    })
    await soon(() => expect(waits.length).toBeGreaterThan(2))
    await close()
    expect(logs.filter(({ level }) => level !== 'debug')).toMatchObject([
      { level: 'error', message: 'the MQTT broker refuses us', fields: { reason: 'Connection refused: Not authorized' } },
    ])
    expect(new Set(waits)).toEqual(new Set([60_000]))
    expect(JSON.stringify(logs)).not.toContain('wrong-password')
  })

  it('user name and password let us in', async () => {
    const broker = await startBroker({ users: { sluice: 'right-password' } })
    const { said } = await start(broker.url, { sops: fakeSops(['a']), config: { username: 'sluice', password: 'right-password' } })
    await soon(() => expect(said('connected to the MQTT broker')).toHaveLength(1))
  })

  it('close takes less than a second, says goodbye, and leaves the session with the broker', async () => {
    const broker = await startBroker(talkative)
    const line = await lineTo(broker)
    const bench = await start(line.url, { sops: fakeSops(['a']), waitMsMax: 1000 })
    await ready(broker)
    expect(await within(1000, bench.close())).toBe('ended')
    await soon(() => expect(line.count(TYPES.disconnect)).toBe(1))
  })

  it('close while a message is at hand leaves it to the broker, within a second', async () => {
    const broker = await startBroker(talkative)
    const sops = fakeSops(['a'])
    sops.before = () => new Promise(() => undefined)
    const bench = await start(broker.url, { sops, waitMsMax: 1000 })
    await ready(broker)
    const { say } = await publisher(broker)
    await say('a', '1')
    await soon(() => expect(sops.fired).toHaveLength(1))
    expect(await within(1000, bench.close())).toBe('ended')
  })

  describe.skipIf(!hasOpenssl())('with TLS', () => {
    it('a broker whose certificate is trusted is connected to, and another one is not', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'mqtt-tls-'))
      const usual = tls.getCACertificates('default')
      cleanups.push(async () => {
        tls.setDefaultCACertificates(usual)
        rmSync(folder, { recursive: true })
      })
      const files = { certFile: join(folder, 'cert.pem'), keyFile: join(folder, 'key.pem') }
      selfSigned(files)
      const broker = await startBroker({ tls: files })
      const sops = fakeSops(['a'])
      const { said, logs } = await start(broker.url, { sops })
      await soon(() => expect(said('the MQTT broker is out of reach')).toHaveLength(1))
      expect(logs.at(0)?.fields.reason).toMatch(/self-signed/)
      tls.setDefaultCACertificates([...usual, readFileSync(files.certFile, 'utf8')])
      await soon(() => expect(said('connected to the MQTT broker')).toHaveLength(1))
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
