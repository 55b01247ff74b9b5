import { createServer, type Server } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '@sluice/kit'
import { type OtlpReceiverOptions, startOtlpReceiver } from '@sluice/qa/otlp-receiver'
import type { Observation } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { processorMs } from '@sluice/testkit/processor-time'
import * as v from 'valibot'
import { afterEach, describe, expect, test } from 'vitest'
import { checkCollector } from './check-collector.ts'
import { tracesUrl } from './config.ts'
import feature from './index.ts'
import { BATCH_MAX, CLOSE_MS_MAX, QUEUE_MAX } from './span-queue.ts'

const opened: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const resource of opened.splice(0).reverse()) await resource.close()
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

/** Starts a server that accepts connections and never answers. */
const silent = async (): Promise<string> => {
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
  'connection refused': async () => 'http://127.0.0.1:9',
  'no answer': silent,
  'an answer without an end': () =>
    collector((outgoing) => {
      const drops = setInterval(() => outgoing.write(' '), 20)
      outgoing.on('close', () => clearInterval(drops))
      outgoing.writeHead(200)
      return true
    }),
  'status 503': () => status(503),
  'status 400': () => status(400, 'no'),
  'status 500': () => status(500),
  'an unreadable answer': () => status(200, '<html>\u0000'),
  'a closed connection': () =>
    collector((outgoing) => {
      outgoing.destroy()
      return true
    }),
}

const trace = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), parentId: null }
const observation: Observation = { kind: 'tool_call', tool: 't', outcome: 'ok', span: { trace, startMs: 0, tookMs: 1 } }

/** Records spans faster than a collector accepts them. Returns the log, the processor time of recording, and the time that closing took. */
async function storm(url: string) {
  const host = testHost()
  const parts = feature.build({ ...host, clock: systemClock }, v.parse(feature.section?.schema ?? v.object({}), { otel_endpoint: url }))
  const [observer] = parts.observers ?? []
  let recordMs = 0
  for (let at = 0; at < QUEUE_MAX * 2; at += BATCH_MAX) {
    const startMs = processorMs()
    for (let more = 0; more < BATCH_MAX; more++) observer?.record(observation)
    recordMs += processorMs() - startMs
    await sleep(1)
  }
  const startMs = performance.now()
  await parts.close?.()
  return { logs: host.logs, recordMs, closeMs: performance.now() - startMs }
}

test('a failing collector delays neither work nor the end, and lost spans are logged', async () => {
  const results = await Promise.all(Object.entries(FAULTS).map(async ([fault, start]) => ({ fault, ...(await storm(await start())) })))
  for (const { fault, logs, recordMs, closeMs } of results) {
    expect(recordMs, fault).toBeLessThan(500)
    expect(closeMs, fault).toBeLessThan(CLOSE_MS_MAX + 1000)
    expect(logs.length, fault).toBeLessThan(5)
    // An unreadable answer with status 200 still accepts the spans.
    if (fault !== 'an unreadable answer')
      expect(logs, fault).toContainEqual(expect.objectContaining({ level: 'warn', message: 'spans dropped' }))
  }
})

describe('checkCollector', () => {
  const check = async (url: string) => {
    const target = { url: tracesUrl(url), serviceName: 'sluice', instanceId: 'i' }
    return checkCollector(target, { clock: systemClock, fetch, signal: new AbortController().signal })
  }

  test('reports that the collector accepted a span', async () => {
    const receiver = await startOtlpReceiver()
    opened.push(receiver)
    expect(await check(receiver.url)).toEqual([{ status: 'ok', detail: `${receiver.url}/v1/traces accepted a span` }])
    expect(receiver.spans).toHaveLength(1)
    expect(receiver.refusals).toEqual([])
  })

  test('does not show the query of the endpoint, which may contain a key', async () => {
    const endpoint = await status(200, '{}')
    const [accepted] = await check(`${endpoint}?key=SECRET`)
    expect(accepted).toEqual({ status: 'ok', detail: `${new URL(endpoint).origin}/v1/traces accepted a span` })
    const [refused] = await check('http://127.0.0.1:1/?key=SECRET')
    expect(refused).toMatchObject({ status: 'fail', detail: expect.not.stringContaining('SECRET') })
  })

  const DETAILS: Readonly<Record<string, string>> = {
    'connection refused': 'ECONNREFUSED',
    'no answer': 'timed out',
    'an answer without an end': 'did not end',
    'status 503': 'the collector answered 503',
    'status 400': 'the collector answered 400',
    'a closed connection': 'hang up',
  }
  test('reports why the collector did not accept a span', async () => {
    const found = await Promise.all(
      Object.keys(DETAILS).map(async (fault) => ({ fault, found: await check((await FAULTS[fault]?.()) ?? '') })),
    )
    for (const { fault, found: findings } of found) {
      const detail = expect.stringContaining(DETAILS[fault] ?? '')
      expect(findings, fault).toEqual([{ status: 'fail', detail, fix: expect.stringContaining('otel_endpoint') }])
    }
  })

  test.each([['an unreadable answer'], ['rejected spans']])('warns of %s', async (fault) => {
    const rejecting = () => status(200, '{"partialSuccess":{"rejectedSpans":"1","errorMessage":"quota"}}')
    const [finding] = await check((await (FAULTS[fault] ?? rejecting)()) ?? '')
    expect(finding).toMatchObject({ status: 'warn', detail: expect.stringContaining('did not confirm that it accepted the span') })
  })
})
