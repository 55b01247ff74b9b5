/** `GET /health` and `GET /metrics` (§4.5): what anybody may ask, answered without a detour. */
import * as v from 'valibot'
import type { GatewayConfig } from '../config/core-sections.ts'
import type { Live } from '../runtime.ts'
import type { Endpoint } from './endpoint.ts'
import type { Gate } from './gate.ts'
import { JSON_HEADERS } from './security-headers.ts'

/** What `GET /health` says, before and after the application is loaded. */
export const healthBody = ({ require_pairing }: Pick<GatewayConfig, 'require_pairing'>): string =>
  JSON.stringify({ status: 'ok', require_pairing })

/** No store is asked and nothing is made but the answer: load balancers call it every second. */
export function healthEndpoint({ config }: Live): Endpoint {
  const body = healthBody(config)
  return {
    doc: {
      method: 'GET',
      path: '/health',
      summary: 'Whether the daemon answers',
      auth: 'open',
      answers: { 200: { description: 'It does', schema: v.object({ status: v.literal('ok'), require_pairing: v.boolean() }) } },
    },
    serve: () => new Response(body, { headers: JSON_HEADERS }),
  }
}

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
