/** The data that a stored turn needs to resume after a restart, as JSON in the store. */
import { type IdempotencyKey, STANDINGS, type Trace } from '@sluice/sdk'
import * as v from 'valibot'
import type { LimitedClient } from './admission.ts'

export interface TurnContext {
  /** The span that requested the turn. */
  readonly trace?: Trace | undefined
  readonly idempotency?: IdempotencyKey | undefined
  /** The caller, as in `ToolContext.caller`. */
  readonly caller?: string | undefined
  readonly limited?: LimitedClient | undefined
  /** As in `TurnRequest`. */
  readonly asksOwner?: boolean | undefined
  /** The only tools that the turn may call. */
  readonly tools?: readonly string[] | undefined
  readonly maySilent?: boolean | undefined
  readonly isInRoom?: boolean | undefined
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
  limited: v.fallback(
    v.optional(
      v.pipe(
        v.object({
          client: v.string(),
          standing: v.picklist(STANDINGS),
          channel: v.exactOptional(v.string()),
          name: v.exactOptional(v.string()),
          room: v.exactOptional(v.object({ key: v.string(), turnsPerHour: v.number(), usdPerDay: v.number() })),
        }),
        // Earlier releases call a device of the role `client` listed.
        v.transform((limited) =>
          limited.standing === 'listed' && limited.channel === undefined ? { ...limited, standing: 'client' as const } : limited,
        ),
      ),
    ),
    undefined,
  ),
  asksOwner: v.fallback(v.optional(v.boolean()), undefined),
  tools: v.optional(v.fallback(v.array(v.string()), [])),
  maySilent: v.fallback(v.optional(v.boolean()), undefined),
  isInRoom: v.fallback(v.optional(v.boolean()), undefined),
})

/** Parses a stored context. A turn with an unreadable context runs without its trace, but the limit on its tools always stays. */
export function parseTurnContext(context: unknown): TurnContext {
  const result = v.safeParse(contextSchema, context)
  return result.success ? result.output : {}
}
