import { formatTraceparent, type PublicRequest, type Trace } from '@sluice/sdk'
import { startFakeProvider } from '@sluice/testkit/fake-provider'
import { describe, expect, test } from 'vitest'
import { createTraceScope, outboundFetch } from './outbound-fetch.ts'

const trace: Trace = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), parentId: null }
const traceparent = formatTraceparent(trace)

/** The requests made within the trace, as the inner fetch gets them. */
function bench({ isTracing = true, within = trace }: { readonly isTracing?: boolean; readonly within?: Trace } = {}) {
  const scope = createTraceScope(() => isTracing)
  const seen: (Parameters<typeof fetch>[1] | PublicRequest)[] = []
  const traced = scope.traced(async (_, init) => {
    seen.push(init)
    return new Response()
  })
  const tracedPublic = scope.tracedPublic(async (_, init) => {
    seen.push(init)
    return new Response()
  })
  return { scope, seen, traced, tracedPublic, in: <Result>(work: () => Result) => scope.within(within, work) }
}

const { signal } = new AbortController()

test('outboundFetch sets the user agent Sluice unless the caller sets one', async () => {
  const server = await startFakeProvider(() => ({ status: 200, body: {} }))
  try {
    await outboundFetch(server.url, { method: 'POST', headers: { 'x-own': '1' }, body: 'text' })
    await outboundFetch(new URL(server.url), { headers: { 'User-Agent': 'DiscordBot (https://example.org, 1)' } })
    await outboundFetch(new Request(server.url, { headers: { 'x-own': '2' } }))
    const sent = server.requests.map(({ method, headers }) => [method, headers.get('user-agent'), headers.get('x-own')])
    expect(sent).toEqual([
      ['POST', 'Sluice', '1'],
      ['GET', 'DiscordBot (https://example.org, 1)', null],
      ['GET', 'Sluice', '2'],
    ])
  } finally {
    await server.close()
  }
})

describe('requests in a trace scope', () => {
  test('name the span they are made in as their parent, also after an await', async () => {
    const { in: inTrace, traced, seen } = bench()
    await inTrace(async () => {
      await traced('http://x/', { method: 'POST', headers: { a: '1' } })
      await new Promise((resolve) => setImmediate(resolve))
      await traced(new Request('http://x/', { headers: { b: '2' } }))
    })
    expect(seen.map((init) => Object.fromEntries(new Headers(init?.headers)))).toEqual([
      { a: '1', traceparent },
      { b: '2', traceparent },
    ])
    expect(seen[0]).toMatchObject({ method: 'POST' })
  })

  test('pass on the trace state', async () => {
    const { in: inTrace, traced, tracedPublic, seen } = bench({ within: { ...trace, state: 'v=1' } })
    await inTrace(() => Promise.all([traced('http://x/'), tracedPublic('http://x/', { signal, headers: { a: '1' } })]))
    for (const init of seen) expect(new Headers(init?.headers).get('tracestate')).toBe('v=1')
    expect(seen[1]).toEqual({ signal, headers: { a: '1', traceparent, tracestate: 'v=1' } })
  })

  test('keep a traceparent that the caller sets', async () => {
    const { in: inTrace, traced, seen } = bench()
    const own = `00-${'c'.repeat(32)}-${'d'.repeat(16)}-00`
    await inTrace(() => traced('http://x/', { headers: [['traceparent', own]] }))
    expect(new Headers(seen[0]?.headers).get('traceparent')).toBe(own)
  })

  test('are unchanged outside a span, and while nothing is traced', async () => {
    const init = { signal, headers: { a: '1' } }
    const outside = bench()
    await outside.traced('http://x/', init)
    await outside.tracedPublic('http://x/', init)
    const off = bench({ isTracing: false })
    await off.in(() => Promise.all([off.traced('http://x/', init), off.tracedPublic('http://x/', init)]))
    for (const given of [...outside.seen, ...off.seen]) expect(given).toBe(init)
    expect(off.seen).toHaveLength(2)
  })

  test('of concurrent spans each name their own', async () => {
    const { scope, traced, seen } = bench()
    const other = { ...trace, spanId: 'e'.repeat(16) }
    const twice = async () => {
      await new Promise((resolve) => setImmediate(resolve))
      await traced('http://x/')
    }
    await Promise.all([scope.within(trace, twice), scope.within(other, twice)])
    expect(seen.map((init) => new Headers(init?.headers).get('traceparent'))).toEqual([traceparent, formatTraceparent(other)])
  })
})
