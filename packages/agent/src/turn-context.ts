/** What a kept turn needs beside its row to be taken up after a restart, as JSON in the store. */
import type { IdempotencyKey, Trace } from '@sluice/sdk'
import * as v from 'valibot'
import { newTrace } from './ids.ts'

export interface TurnContext {
  readonly trace: Trace
  readonly idempotency?: IdempotencyKey | undefined
}

const contextSchema = v.object({
  trace: v.object({ traceId: v.string(), spanId: v.string(), parentId: v.nullable(v.string()) }),
  idempotency: v.optional(v.object({ scope: v.string(), key: v.string() })),
})

/** A context this version cannot read costs the turn its place in the trace, not its run. */
export function parseTurnContext(context: unknown): TurnContext {
  const result = v.safeParse(contextSchema, context)
  return result.success ? result.output : { trace: newTrace() }
}
