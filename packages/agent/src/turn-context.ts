/** What a kept turn needs beside its row to be taken up after a restart, as JSON in the store. */
import type { IdempotencyKey, Trace } from '@sluice/sdk'
import * as v from 'valibot'

export interface TurnContext {
  /** The span that asked for it. */
  readonly trace?: Trace | undefined
  readonly idempotency?: IdempotencyKey | undefined
  /** As in `ToolContext.caller`. */
  readonly caller?: string | undefined
  /** The only tools it may call. */
  readonly tools?: readonly string[] | undefined
}

const traceSchema = v.object({
  traceId: v.string(),
  spanId: v.string(),
  parentId: v.nullable(v.string()),
  state: v.exactOptional(v.string()),
})
const contextSchema = v.object({
  trace: v.fallback(v.optional(traceSchema), undefined),
  idempotency: v.fallback(v.optional(v.object({ scope: v.string(), key: v.string() })), undefined),
  caller: v.fallback(v.optional(v.string()), undefined),
  tools: v.optional(v.fallback(v.array(v.string()), [])),
})

/** A context this version cannot read costs the turn its place in the trace, not its run; a bound on its tools is never lifted. */
export function parseTurnContext(context: unknown): TurnContext {
  const result = v.safeParse(contextSchema, context)
  return result.success ? result.output : {}
}
