import { createServer, type Server } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '@sluice/kit'
import { type OtlpReceiverOptions, startOtlpReceiver } from '@sluice/qa/otlp-receiver'
import type { Observation } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { afterEach, describe, expect, test } from 'vitest'
import { checkCollector } from './check-collector.ts'
import feature from './index.ts'
import { BATCH_MAX, CLOSE_MS_MAX, QUEUE_MAX } from './span-queue.ts'
import { tracesUrl } from './traces-url.ts'

const opened: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const it of opened.splice(0).reverse()) await it.close()
})

const collector = async (instead: NonNullable<OtlpReceiverOptions['instead']>): Promise<string> => {
  const receiver = await startOtlpReceiver({ instead })
  opened.push(receiver)
  return receiver.url
}

const status = (code: number, body = '') =>
  collector((outgoing) => {
    outgoing.writeHead(code, { 'content-type': 'application/json' }).end(body)
    return true
  })

/** Takes connections and says nothing. */
const mute = async (): Promise<string> => {
  const server: Server = createServer((socket) => socket.on('error', () => {}))
  const sockets = new Set<{ destroy(): void }>()
  server.on('connection', (socket) => sockets.add(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  opened.push({
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      }),
  })
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
}

const FAULTS: Readonly<Record<string, () => Promise<string>>> = {
  'nothing listens': async () => 'http://127.0.0.1:9',
  'it says nothing': mute,
  'it answers drop by drop': () =>
    collector((outgoing) => {
      const drops = setInterval(() => outgoing.write(' '), 20)
      outgoing.on('close', () => clearInterval(drops))
      outgoing.writeHead(200)
      return true
    }),
  'it answers 503': () => status(503),
  'it answers 400': () => status(400, 'no'),
  'it answers 500': () => status(500),
  'it answers rubbish': () => status(200, '<html>\u0000'),
  'it breaks off': () =>
    collector((outgoing) => {
      outgoing.destroy()
      return true
    }),
}

const trace = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), parentId: null }
const seen: Observation = { kind: 'tool_call', tool: 't', outcome: 'ok', span: { trace, startMs: 0, tookMs: 1 } }

/** What was logged while spans came faster than any collector takes them, how long they took, and the end. */
async function storm(url: string) {
  const host = testHost()
  const parts = feature.build({ ...host, clock: systemClock }, v.parse(feature.section?.schema ?? v.object({}), { otel_endpoint: url }))
  const [observer] = parts.observers ?? []
  let recordMs = 0
  for (let at = 0; at < QUEUE_MAX * 2; at += BATCH_MAX) {
    const startMs = performance.now()
    for (let more = 0; more < BATCH_MAX; more++) observer?.record(seen)
    recordMs += performance.now() - startMs
    await sleep(1)
  }
  const startMs = performance.now()
  await parts.close?.()
  return { logs: host.logs, recordMs, closeMs: performance.now() - startMs }
}

test('a collector at fault harms nobody: spans cost nothing, what is lost is told, and the end comes within two seconds', async () => {
  const results = await Promise.all(Object.entries(FAULTS).map(async ([fault, start]) => ({ fault, ...(await storm(await start())) })))
  for (const { fault, logs, recordMs, closeMs } of results) {
    expect(recordMs, fault).toBeLessThan(500)
    expect(closeMs, fault).toBeLessThan(CLOSE_MS_MAX + 1000)
    expect(logs.length, fault).toBeLessThan(5)
    // An answer nobody can read is still the answer of somebody who took them.
    if (fault !== 'it answers rubbish')
      expect(logs, fault).toContainEqual(expect.objectContaining({ level: 'warn', message: 'spans were dropped' }))
  }
})

describe('doctor sends one span, and says what the collector answered', () => {
  const check = async (url: string) => {
    const target = { url: tracesUrl(url), serviceName: 'sluice', instanceId: 'i' }
    return checkCollector(target, { clock: systemClock, fetch, signal: new AbortController().signal })
  }

  test('it was taken', async () => {
    const receiver = await startOtlpReceiver()
    opened.push(receiver)
    expect(await check(receiver.url)).toEqual([{ status: 'ok', detail: `${receiver.url}/v1/traces took a span` }])
    expect(receiver.spans).toHaveLength(1)
    expect(receiver.refusals).toEqual([])
  })

  test('what the query of the endpoint holds, such as a key, is not shown', async () => {
    const endpoint = await status(200, '{}')
    const [taken] = await check(`${endpoint}?key=SECRET`)
    expect(taken).toEqual({ status: 'ok', detail: `${new URL(endpoint).origin}/v1/traces took a span` })
    const [refused] = await check('http://127.0.0.1:1/?key=SECRET')
    expect(refused).toMatchObject({ status: 'fail', detail: expect.not.stringContaining('SECRET') })
  })

  const SAID: Readonly<Record<string, string>> = {
    'nothing listens': 'ECONNREFUSED',
    'it says nothing': 'timed out',
    'it answers drop by drop': 'no end',
    'it answers 503': 'the collector answered 503',
    'it answers 400': 'the collector answered 400',
    'it breaks off': 'hang up',
  }
  test('it was not, and why', async () => {
    const found = await Promise.all(
      Object.keys(SAID).map(async (fault) => ({ fault, found: await check((await FAULTS[fault]?.()) ?? '') })),
    )
    for (const { fault, found: findings } of found) {
      const detail = expect.stringContaining(SAID[fault] ?? '')
      expect(findings, fault).toEqual([{ status: 'fail', detail, fix: expect.stringContaining('otel_endpoint') }])
    }
  })

  test.each([['it answers rubbish'], ['spans were rejected']])('%s', async (fault) => {
    const rejecting = () => status(200, '{"partialSuccess":{"rejectedSpans":"1","errorMessage":"quota"}}')
    const [finding] = await check((await (FAULTS[fault] ?? rejecting)()) ?? '')
    expect(finding).toMatchObject({ status: 'warn', detail: expect.stringContaining('not as a collector that took the span') })
  })
})
