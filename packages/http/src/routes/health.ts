/** `GET /health`, `GET /ready` and `GET /metrics`: routes that ask for no token. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Runtime } from '@sluice/runtime'
import { healthSchema, readySchema } from '@sluice/runtime/health-answer'
import { howToGet } from '@sluice/sdk'
import { authenticate } from '../middleware/authenticate.ts'
import { sameOrigin } from '../middleware/origin.ts'
import type { Endpoint } from '../request/context.ts'
import { JSON_HEADERS } from '../request/respond.ts'
import { isUsualHost } from '../request/usual-host.ts'
import type { AppParts } from '../server/app-parts.ts'

/** The body of `GET /health`, before and after the application is loaded. The status is always 200: faults are in the body. */
export const healthBody = ({ health }: Runtime): string => JSON.stringify(health.look())

/** Does not ask the store: load balancers call it every second. */
export const healthEndpoint = (runtime: Runtime): Endpoint => ({
  doc: {
    method: 'GET',
    path: '/health',
    summary: 'Whether the daemon answers, and its health',
    auth: 'open',
    answers: { 200: { description: 'The daemon answers; faults are in the body', schema: healthSchema } },
  },
  steps: [async () => new Response(healthBody(runtime), { headers: JSON_HEADERS })],
})

/** The answer to `GET /ready`, before and after the application is loaded. */
export async function readiness({ health }: Runtime): Promise<{ readonly status: 200 | 503; readonly body: string }> {
  const reason = await health.notReady()
  return { status: reason === null ? 200 : 503, body: JSON.stringify({ ready: reason === null, reason, ...health.look() }) }
}

/** Channels and the provider are in the body, never in the status: taking a node out of service does not repair them. */
export const readyEndpoint = (runtime: Runtime): Endpoint => ({
  doc: {
    method: 'GET',
    path: '/ready',
    summary:
      'Whether to send requests here: the daemon has started, is not stopping, its store took a write within 5 seconds and refuses no messages',
    auth: 'open',
    answers: {
      200: { description: 'Ready', schema: readySchema },
      503: { description: 'Not ready; `reason` says why', schema: readySchema },
    },
  },
  steps: [
    async () => {
      const { status, body } = await readiness(runtime)
      return new Response(body, { status, headers: JSON_HEADERS })
    },
  ],
})

/** Answers `GET /health` and `GET /ready` before the application is loaded. Returns false for every other request. */
export function answerProbe(runtime: Runtime, incoming: IncomingMessage, outgoing: ServerResponse): boolean {
  const { method, url, headers } = incoming
  const write = ({ status, body }: { readonly status: number; readonly body: string }): void => {
    outgoing.writeHead(status, { ...JSON_HEADERS, 'content-length': Buffer.byteLength(body) })
    outgoing.end(method === 'HEAD' ? undefined : body)
  }
  if ((method !== 'GET' && method !== 'HEAD') || !isUsualHost(headers.host)) return false
  if (url === '/health') write({ status: 200, body: healthBody(runtime) })
  else if (url === '/ready') void readiness(runtime).then(write)
  else return false
  return true
}

const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'
const METRICS_OFF = '# Textmetrics backend not enabled. Set [observability] backend = "textmetrics" in config.\n'

const METRICS_LEFT_OUT = `# This build leaves metrics out. To get them, ${howToGet('observability-metrics')}, and set [observability] backend = "textmetrics" in config.\n`

/** The metrics of the first observer that renders them; without such an observer, a hint in a comment. */
export function metricsEndpoint(parts: AppParts): Endpoint {
  const { features, observers, metricsLoopbackOnly, gateway } = parts.snapshot
  const isLeftOut = features.some(({ feature, compiled }) => feature === 'observability-metrics' && !compiled)
  const hint = isLeftOut ? METRICS_LEFT_OUT : METRICS_OFF
  const auth = metricsLoopbackOnly ? 'local' : 'open'
  const renderer = observers.find(({ render }) => render)
  return {
    doc: {
      method: 'GET',
      path: '/metrics',
      summary: 'Metrics in the text format, or a comment that explains how to enable them',
      auth,
      mediaType: 'text/plain',
      answers: { 200: { description: 'The metrics' } },
    },
    steps: [
      sameOrigin(gateway),
      authenticate(auth, parts),
      async () => {
        const { contentType, body } = (await renderer?.render?.()) ?? { contentType: METRICS_TYPE, body: hint }
        return new Response(body, { headers: { ...JSON_HEADERS, 'content-type': contentType } })
      },
    ],
  }
}
