/**
 * What each kind of work is called in a trace, and what is said of it: the semantic conventions of OpenTelemetry for HTTP,
 * messaging and generative AI, and `sluice.…` for the rest. No message text and no secret is in an observation, so none is here.
 */
import type { Outcome } from '@sluice/sdk'
import type { Spanned } from './spanned.ts'

export interface SpanDescription {
  readonly name: string
  readonly kind: 'internal' | 'server' | 'client' | 'producer' | 'consumer'
  readonly isError: boolean
  readonly attributes: Readonly<Record<string, string | number | boolean>>
}

const NOTHING = {}
/** `_OTHER` is the convention's word for an error without a name. */
const FAILED = { 'error.type': '_OTHER' }
const ABORTED = { 'sluice.outcome': 'aborted' }

/** Of what went well, nothing is said. */
const ended = (outcome: Outcome) => (outcome === 'ok' ? NOTHING : outcome === 'error' ? FAILED : ABORTED)

const modelOf = ({ provider, model }: { readonly provider: string; readonly model: string }) => ({
  ...(provider !== '' && { 'gen_ai.provider.name': provider }),
  ...(model !== '' && { 'gen_ai.request.model': model }),
})

const SERVER_ERROR = 500

export function describeSpan(seen: Spanned): SpanDescription {
  switch (seen.kind) {
    case 'request':
      return {
        name: `${seen.method} ${seen.route}`,
        kind: 'server',
        isError: seen.status >= SERVER_ERROR,
        attributes: {
          'http.request.method': seen.method,
          'http.route': seen.route,
          'http.response.status_code': seen.status,
          ...(seen.status >= SERVER_ERROR && { 'error.type': String(seen.status) }),
        },
      }
    case 'ingress':
      return {
        name: `receive ${seen.channel}`,
        kind: 'consumer',
        isError: seen.verdict === 'refused',
        attributes: {
          'messaging.system': seen.channel,
          'messaging.operation.name': 'receive',
          'messaging.operation.type': 'receive',
          'sluice.verdict': seen.verdict,
          'sluice.signed': seen.signed,
          ...(seen.verdict === 'refused' && { 'error.type': seen.verdict }),
        },
      }
    case 'delivery': {
      const [operation, kind] = seen.direction === 'inbound' ? (['process', 'consumer'] as const) : (['send', 'producer'] as const)
      return {
        name: `${operation} ${seen.channel}`,
        kind,
        isError: seen.outcome === 'error',
        attributes: {
          'messaging.system': seen.channel,
          'messaging.operation.name': operation,
          'messaging.operation.type': operation,
          'sluice.direction': seen.direction,
          ...ended(seen.outcome),
        },
      }
    }
    case 'turn':
      return {
        name: `turn ${seen.source}`,
        kind: 'internal',
        isError: seen.outcome === 'error',
        attributes: {
          'gen_ai.operation.name': 'invoke_agent',
          ...modelOf(seen),
          'sluice.source': seen.source,
          'sluice.iterations': seen.iterations,
          ...ended(seen.outcome),
        },
      }
    case 'model_call':
      return {
        name: `chat ${seen.model}`.trimEnd(),
        kind: 'client',
        isError: seen.outcome === 'error',
        attributes: {
          'gen_ai.operation.name': 'chat',
          ...modelOf(seen),
          // What the provider's name was called before, and still is what many look for.
          ...(seen.provider !== '' && { 'gen_ai.system': seen.provider }),
          'gen_ai.usage.input_tokens': seen.inputTokens,
          'gen_ai.usage.output_tokens': seen.outputTokens,
          ...(seen.costUsd > 0 && { 'sluice.cost_usd': seen.costUsd }),
          ...ended(seen.outcome),
        },
      }
    case 'tool_call':
      return {
        name: `execute_tool ${seen.tool}`,
        kind: 'internal',
        isError: seen.outcome === 'error',
        attributes: { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': seen.tool, ...ended(seen.outcome) },
      }
    case 'sop_run':
      return {
        name: `sop_run ${seen.sop}`,
        kind: 'internal',
        isError: seen.outcome === 'failed',
        attributes: { 'sluice.sop': seen.sop, ...endedStep(seen.outcome) },
      }
    case 'sop_step':
      return {
        name: `sop_step ${seen.sop} ${seen.step}`,
        kind: 'internal',
        isError: seen.outcome === 'failed',
        attributes: { 'sluice.sop': seen.sop, 'sluice.step': seen.step, ...endedStep(seen.outcome) },
      }
  }
}

const endedStep = (outcome: string) => ({ 'sluice.outcome': outcome, ...(outcome === 'failed' && FAILED) })
