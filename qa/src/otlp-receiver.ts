/** An OTLP/HTTP receiver of traces: it accepts the protocol's JSON, refuses anything else and records the spans. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { headersIn, jsonIn, listenOnLoopback, readWhole } from '@sluice/testkit/loopback-server'
import * as v from 'valibot'

export type AttributeValue = string | number | boolean

/** A span that was received. */
export interface ReceivedSpan {
  readonly name: string
  readonly kind: 'internal' | 'server' | 'client' | 'producer' | 'consumer'
  readonly traceId: string
  readonly spanId: string
  readonly parentId: string | null
  readonly traceState: string
  readonly startNano: bigint
  readonly endNano: bigint
  readonly isError: boolean
  readonly attributes: Readonly<Record<string, AttributeValue>>
  readonly resource: Readonly<Record<string, AttributeValue>>
  readonly scope: string
}

/** A running receiver. */
export interface OtlpReceiver {
  /** The value for `otel_endpoint`. */
  readonly url: string
  /** The received spans, in order. */
  readonly spans: readonly ReceivedSpan[]
  /** The body of every request, including refused ones. */
  readonly bodies: readonly string[]
  readonly headers: readonly Headers[]
  /** The reasons for refusing requests. */
  readonly refusals: readonly string[]
  /** Resolves to the spans that `isWanted` accepts once there are `count` of them. Rejects after 30 seconds. */
  until(count: number, isWanted?: (span: ReceivedSpan) => boolean): Promise<readonly ReceivedSpan[]>
  close(): Promise<void>
}

/** How the receiver answers. */
export interface OtlpReceiverOptions {
  /** Handles a request in place of the receiver; returns true if it answers the request. */
  readonly instead?: (outgoing: ServerResponse, incoming: IncomingMessage) => boolean
  readonly port?: number
}

const BODY_BYTES_MAX = 16 * 1024 * 1024
const PATIENCE_MS = 30_000
const KINDS = [undefined, 'internal', 'server', 'client', 'producer', 'consumer'] as const

const nanos = v.pipe(
  v.string(),
  v.regex(/^\d{1,20}$/),
  v.transform((text) => BigInt(text)),
)
const valueSchema = v.union([
  v.pipe(
    v.strictObject({ stringValue: v.string() }),
    v.transform(({ stringValue }): AttributeValue => stringValue),
  ),
  v.pipe(
    v.strictObject({ boolValue: v.boolean() }),
    v.transform(({ boolValue }): AttributeValue => boolValue),
  ),
  v.pipe(
    v.strictObject({ intValue: v.union([v.number(), v.string()]) }),
    v.transform(({ intValue }): AttributeValue => Number(intValue)),
  ),
  v.pipe(
    v.strictObject({ doubleValue: v.number() }),
    v.transform(({ doubleValue }): AttributeValue => doubleValue),
  ),
])
const attributesSchema = v.pipe(
  v.optional(v.array(v.object({ key: v.string(), value: valueSchema })), []),
  v.transform((pairs) => Object.fromEntries(pairs.map(({ key, value }) => [key, value]))),
)
const spanSchema = v.object({
  traceId: v.pipe(v.string(), v.regex(/^[0-9a-f]{32}$/)),
  spanId: v.pipe(v.string(), v.regex(/^[0-9a-f]{16}$/)),
  parentSpanId: v.optional(v.pipe(v.string(), v.regex(/^(?:[0-9a-f]{16})?$/)), ''),
  traceState: v.optional(v.string(), ''),
  name: v.pipe(v.string(), v.minLength(1)),
  kind: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(5)),
  startTimeUnixNano: nanos,
  endTimeUnixNano: nanos,
  attributes: attributesSchema,
  status: v.optional(v.object({ code: v.optional(v.number(), 0) }), {}),
})
const requestSchema = v.object({
  resourceSpans: v.array(
    v.object({
      resource: v.object({ attributes: attributesSchema }),
      scopeSpans: v.array(v.object({ scope: v.object({ name: v.string() }), spans: v.array(spanSchema) })),
    }),
  ),
})

/** Starts a receiver on loopback. */
export async function startOtlpReceiver({ instead, port = 0 }: OtlpReceiverOptions = {}): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = []
  const bodies: string[] = []
  const headers: Headers[] = []
  const refusals: string[] = []
  let arrived = Promise.withResolvers<void>()

  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const body = await readWhole(incoming, BODY_BYTES_MAX)
    headers.push(headersIn(incoming))
    if (instead?.(outgoing, incoming)) return
    bodies.push(body.toString())
    const problem = take(incoming, body)
    if (problem !== undefined) refusals.push(problem)
    outgoing
      .writeHead(problem === undefined ? 200 : 400, { 'content-type': 'application/json' })
      .end(JSON.stringify({ partialSuccess: {} }))
    arrived.resolve()
    arrived = Promise.withResolvers()
  }

  const take = ({ method, url, headers: { 'content-type': type } }: IncomingMessage, body: Buffer): string | undefined => {
    if (method !== 'POST' || url !== '/v1/traces') return `${method} ${url}`
    if (type !== 'application/json') return `content-type ${type}`
    const parsed = v.safeParse(requestSchema, jsonIn(body))
    if (!parsed.success) return JSON.stringify(v.flatten(parsed.issues))
    for (const { resource, scopeSpans } of parsed.output.resourceSpans)
      for (const { scope, spans: said } of scopeSpans)
        for (const span of said) spans.push(received(span, { resource: resource.attributes, scope: scope.name }))
    return undefined
  }

  const server = createServer((incoming, outgoing) => {
    serve(incoming, outgoing).catch(() => outgoing.destroy())
  })
  const listening = await listenOnLoopback(server, port)
  return {
    url: listening.url,
    spans,
    bodies,
    headers,
    refusals,
    async until(count, isWanted = () => true) {
      const tooLate = AbortSignal.timeout(PATIENCE_MS)
      const late = new Promise<'late'>((resolve) => tooLate.addEventListener('abort', () => resolve('late'), { once: true }))
      while (spans.filter(isWanted).length < count) {
        if ((await Promise.race([arrived.promise, late])) === 'late')
          throw new Error(
            `received ${spans.filter(isWanted).length} of ${count} spans: ${spans.map(({ name }) => name).join(', ')}; refused: ${refusals.join('; ')}`,
          )
      }
      return spans.filter(isWanted)
    },
    close: listening.close,
  }
}

const received = (
  { parentSpanId, kind, startTimeUnixNano, endTimeUnixNano, status, ...span }: v.InferOutput<typeof spanSchema>,
  about: Pick<ReceivedSpan, 'resource' | 'scope'>,
): ReceivedSpan => ({
  ...span,
  ...about,
  kind: KINDS[kind] ?? 'internal',
  parentId: parentSpanId === '' ? null : parentSpanId,
  startNano: startTimeUnixNano,
  endNano: endTimeUnixNano,
  isError: status.code === 2,
})
