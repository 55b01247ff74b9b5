/** How often the trigger connects while its broker fails, on a clock that stops while it waits for the broker. */
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { afterEach, expect, it } from 'vitest'
import { mqttSection } from './config.ts'
import feature from './index.ts'
import { fakeSops } from './testing/fake-sops.ts'
import { soon } from './testing/open-trigger.ts'
import { scriptedBroker } from './testing/scripted-broker.ts'

const DAY_MS = 86_400_000
const CONNECTS_MAX = 300
const BREAK_MS = 25_000
const BACK_MS_MAX = 5000
const BREAKS = 10
/** The code of CONNACK for a broker that is not ready. */
const NOT_READY = 3
const SHORT_MS = 5000
const STEP_MS = 100

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function open() {
  let isReady = true
  const broker = await scriptedBroker({ returnCode: () => (isReady ? 0 : NOT_READY) })
  const host = testHost({ services: { sops: fakeSops(['a']) as never } })
  const parts = feature.build(host, v.parse(mqttSection.schema, { enabled: true, broker_url: broker.url }))
  cleanups.push(
    () => broker.close(),
    async () => parts.close?.(),
  )
  await parts.register?.(new AbortController().signal)
  const delays = () => host.logs.flatMap(({ fields }) => (fields?.retry_secs === undefined ? [] : [Number(fields.retry_secs)]))
  const connected = () => soon(() => expect(parts.links?.()).toEqual([{ name: 'mqtt', state: 'ok' }]))
  let ended = 0
  /** Lets the delay pass that follows the end of a connection or of an attempt. */
  const passDelay = async (): Promise<void> => {
    ended += 1
    await soon(() => expect([delays().length, host.clock.sleeping]).toEqual([ended, 1]))
    const delayMs = (delays().at(-1) ?? 0) * 1000
    // The log rounds up, which matters only for short delays.
    for (let passedMs = 0; passedMs < delayMs && host.clock.sleeping > 0; passedMs += STEP_MS) {
      await host.advance(delayMs > SHORT_MS ? delayMs : STEP_MS)
    }
  }
  await connected()
  return {
    host,
    broker,
    connected,
    passDelay,
    setReady: (ready: boolean) => {
      isReady = ready
    },
  }
}

it.each([0, 5000])('connects at most 300 times a day to a broker that breaks each connection after %d ms', async (lastsMs) => {
  const { host, broker, connected, passDelay } = await open()
  while (host.clock.monotonicMs() < DAY_MS) {
    await host.advance(lastsMs)
    broker.cut()
    await passDelay()
    await connected()
  }
  expect(broker.connections).toBeLessThanOrEqual(CONNECTS_MAX)
})

it('connects within 5 s of the return of a broker that was not ready for 25 s', async () => {
  const { host, broker, connected, passDelay, setReady } = await open()
  for (let count = 0; count < BREAKS; count++) {
    await host.advance(60_000)
    const returnsAtMs = host.clock.monotonicMs() + BREAK_MS
    setReady(false)
    broker.cut()
    while (host.clock.monotonicMs() < returnsAtMs) await passDelay()
    setReady(true)
    await connected()
    expect(host.clock.monotonicMs() - returnsAtMs).toBeLessThanOrEqual(BACK_MS_MAX)
  }
})
