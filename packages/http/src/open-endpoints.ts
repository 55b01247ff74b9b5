/** `GET /health`, `GET /ready` and `GET /metrics`: what anybody may ask. */

import type { Live, Runtime } from '@sluice/runtime'
import { healthSchema, readySchema } from '@sluice/runtime/health'
import type { Endpoint } from './endpoint.ts'
import type { Gate } from './gate.ts'
import { JSON_HEADERS } from './security-headers.ts'

/** What `GET /health` says, before and after the application is loaded. Always 200: whatever is wrong is in the body. */
export const healthBody = ({ health }: Pick<Runtime, 'health'>): string => JSON.stringify(health.look())

/** No store is asked: load balancers call it every second. */
export const healthEndpoint = (runtime: Pick<Runtime, 'health'>): Endpoint => ({
  doc: {
    method: 'GET',
    path: '/health',
    summary: 'That the daemon answers, and how it is',
    auth: 'open',
    answers: { 200: { description: 'It answers; what is not well is in the body', schema: healthSchema } },
  },
  serve: () => new Response(healthBody(runtime), { headers: JSON_HEADERS }),
})

/** What `GET /ready` says, before and after the application is loaded. */
export async function readiness({ health }: Pick<Runtime, 'health'>): Promise<{ readonly status: 200 | 503; readonly body: string }> {
  const reason = await health.notReady()
  return { status: reason === null ? 200 : 503, body: JSON.stringify({ ready: reason === null, reason, ...health.look() }) }
}

/** Channels and the provider are in the body, never in the status: taking a node away does not bring them back. */
export const readyEndpoint = (runtime: Pick<Runtime, 'health'>): Endpoint => ({
  doc: {
    method: 'GET',
    path: '/ready',
    summary: 'Whether requests should be sent here: it is started, not stopping, and the store took a write within 5 seconds',
    auth: 'open',
    answers: {
      200: { description: 'Ready', schema: readySchema },
      503: { description: 'Not ready; `reason` says why', schema: readySchema },
    },
  },
  async serve() {
    const { status, body } = await readiness(runtime)
    return new Response(body, { status, headers: JSON_HEADERS })
  },
})

const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'
const METRICS_OFF = '# Textmetrics backend not enabled. Set [observability] backend = "textmetrics" in config.\n'

/** The metrics of the one observer that has them; a hint where none does. */
export function metricsEndpoint({ observers, metricsLoopbackOnly }: Live, gate: Gate): Endpoint {
  const auth = metricsLoopbackOnly ? 'local' : 'open'
  const renderer = observers.find(({ render }) => render)
  return {
    doc: {
      method: 'GET',
      path: '/metrics',
      summary: 'Metrics in the text format, or a comment that says how to turn them on',
      auth,
      mediaType: 'text/plain',
      answers: { 200: { description: 'The metrics' } },
    },
    async serve(c) {
      await gate.admit(c, auth)
      const { contentType, body } = (await renderer?.render?.()) ?? { contentType: METRICS_TYPE, body: METRICS_OFF }
      return new Response(body, { headers: { ...JSON_HEADERS, 'content-type': contentType } })
    },
  }
}
