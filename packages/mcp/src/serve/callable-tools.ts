/** The tools of this daemon that callers may call directly, as `[gateway] callable_tools` names them. */
import { AppError } from '@sluice/sdk'
import type { Caller } from './offered-tools.ts'

interface CallableTool {
  readonly name: string
  readonly description: string
  readonly input_schema: Readonly<Record<string, unknown>>
  readonly read_only: boolean
}

/** A direct call as the API shows it. */
interface ShownCall {
  readonly call_id: string
  readonly outcome?: 'ok' | 'error' | 'interrupted' | null
  readonly output?: string | null
  readonly data?: unknown
  readonly untrusted?: string | null
  readonly error?: { readonly message: string } | null
  readonly status_url?: string
}

/** The member of `_meta` with an idempotency key: a repeat of the request with the same key gets the result of the first one. */
export const KEY_META = 'sluice/idempotency-key'
/** The member of `_meta` with the source of a result that others may have written. */
const UNTRUSTED_META = 'sluice/untrusted'

/** Returns the tools as the protocol lists them. */
export async function listedCallables({ api, signal }: Pick<Caller, 'api' | 'signal'>) {
  const { tools } = (await api({ method: 'GET', path: '/api/callable-tools', signal })) as { readonly tools: readonly CallableTool[] }
  return tools.map(({ name, description, input_schema, read_only }) => ({
    name,
    description,
    inputSchema: { ...input_schema, type: 'object' as const },
    annotations: { readOnlyHint: read_only },
  }))
}

/** Calls a tool, and returns the result as the protocol has it. Throws the `AppError` of the API. */
export async function callCallable(name: string, input: unknown, { api, signal, key }: Caller & { readonly key?: string | undefined }) {
  const answer = await api({
    method: 'POST',
    path: `/api/tools/${encodeURIComponent(name)}/calls`,
    body: { input },
    headers: key === undefined ? undefined : { 'x-idempotency-key': key },
    signal,
  })
  const call = (answer instanceof Response ? await answer.json() : answer) as ShownCall
  if (call.status_url !== undefined)
    throw new AppError('unavailable', `The call is stored and has not ended; GET ${call.status_url} answers its result`)
  const { outcome, output, data, untrusted, error } = call
  return {
    content: [{ type: 'text' as const, text: output ?? error?.message ?? 'The call has no result' }],
    ...(typeof data === 'object' && data !== null && { structuredContent: data as Record<string, unknown> }),
    ...(outcome !== 'ok' && { isError: true }),
    _meta: { 'sluice/call-id': call.call_id, ...(untrusted && { [UNTRUSTED_META]: untrusted }) },
  }
}
