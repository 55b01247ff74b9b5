/** `/api/tools/{name}/calls` and `/api/calls`: tools that a client calls itself, without a model. See `docs/direct-calls.md`. */
import { createToolSpecs, DIRECT_CALL, directCallText, readDirectAnswer, readDirectCall } from '@sluice/agent'
import { isoTime } from '@sluice/kit'
import type { Runtime } from '@sluice/runtime'
import { AppError, defineRoute, type IdempotencyKey, MAIN_AGENT, type Route, type RouteRequest, type TurnRow } from '@sluice/sdk'
import * as v from 'valibot'
import { limitedClient, ownerOf, personOf } from '../auth/identity.ts'
import { type ClaimedKey, claimKey, keyIn, lostKey } from '../middleware/idempotency.ts'
import { chosenAgent } from '../request/chosen-agent.ts'
import { prefersAsync } from '../request/prefer.ts'
import { jsonResponse } from '../request/respond.ts'
import type { AppParts } from '../server/app-parts.ts'

/** The longest input, and the JSON around it. */
const BODY_BYTES_MAX = 1_048_576 + 4096

const callableSchema = v.object({
  name: v.string(),
  description: v.string(),
  input_schema: v.pipe(v.record(v.string(), v.unknown()), v.description('The JSON Schema of the input')),
  read_only: v.pipe(v.boolean(), v.description('True: no call of the tool changes anything')),
})

const callSchema = v.object({
  call_id: v.string(),
  tool: v.string(),
  agent: v.string(),
  status: v.pipe(v.picklist(['queued', 'running', 'done', 'failed', 'aborted']), v.description('`running` also while a person is asked')),
  outcome: v.pipe(
    v.nullable(v.picklist(['ok', 'error', 'interrupted'])),
    v.description('`interrupted`: the call may or may not have taken effect, and is not repeated; null until it is done'),
  ),
  output: v.nullable(v.string()),
  data: v.pipe(v.nullable(v.unknown()), v.description('Data of the tool besides the text')),
  untrusted: v.pipe(v.nullable(v.string()), v.description('The source of the output, when others may have written it')),
  error: v.nullable(v.object({ code: v.string(), message: v.string() })),
  created_at: v.string(),
  ended_at: v.nullable(v.string()),
})

const acceptedSchema = v.object({ call_id: v.string(), status_url: v.string() })

const bodySchema = v.object({
  input: v.optional(v.pipe(v.record(v.string(), v.unknown()), v.description('The input of the tool')), {}),
  agent: v.exactOptional(v.pipe(v.string(), v.description('The agent whose tool it is; default: `main`. Only an operator may name one'))),
})
type Body = v.InferOutput<typeof bodySchema>

type CallParts = Pick<AppParts, 'runtime' | 'snapshot'>

export function callRoutes(parts: CallParts): Route[] {
  const { runtime, snapshot } = parts
  const specs = createToolSpecs()
  return [
    defineRoute({
      method: 'GET',
      path: '/api/callable-tools',
      summary: 'The tools of `[gateway] callable_tools`, which clients may call directly',
      auth: 'client',
      answers: { 200: { description: 'The tools', schema: v.object({ tools: v.array(callableSchema) }) } },
      async handle() {
        const { callable_tools } = snapshot.gateway
        const tools = callable_tools.length === 0 ? [] : await specs(snapshot.registry)
        const isReadOnly = (name: string) => snapshot.registry.tools.get(name)?.risk === 'read'
        const shown = tools.filter(({ name }) => callable_tools.includes(name))
        return {
          tools: shown.map(({ name, description = '', inputSchema }) => ({
            name,
            description,
            input_schema: inputSchema,
            read_only: isReadOnly(name),
          })),
        }
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/tools/:name/calls',
      summary: 'Call a tool of `[gateway] callable_tools` without a model, under the policy and approvals of its agent',
      auth: 'client',
      bodyBytesMax: BODY_BYTES_MAX,
      body: bodySchema,
      answers: {
        200: { description: 'The call has ended', schema: callSchema },
        202: { description: 'The call is stored; `GET status_url` answers its state', schema: acceptedSchema },
      },
      handle: (request) => callTool(parts, request),
    }),
    defineRoute({
      method: 'GET',
      path: '/api/calls/:id',
      summary: 'The state of a direct call of a tool',
      auth: 'client',
      answers: { 200: { description: 'The call', schema: callSchema } },
      async handle({ device, role, params: { id = '' } }) {
        const turn = await runtime.store.turns.get(id)
        const isHidden = role !== 'operator' && turn?.owner !== ownerOf(device)
        if (turn?.source !== DIRECT_CALL || isHidden) throw new AppError('not_found', 'There is no such call')
        return shownCall(turn)
      },
    }),
  ]
}

async function callTool(parts: CallParts, request: RouteRequest<Body>): Promise<unknown> {
  const { runtime, snapshot } = parts
  const { device, role, client, trace, headers, url, signal, body, onControlSocket } = request
  const { name = '' } = request.params
  if (!snapshot.gateway.callable_tools.includes(name)) throw new AppError('not_found', `No tool '${name}' may be called directly`)
  const agent = chosenAgent(body.agent, 'agent', request, snapshot)
  const text = directCallText({ tool: name, input: body.input })
  const idempotency = keyIn(headers, device, url.pathname)
  const known = idempotency && (await earlierCall(parts, idempotency, text))
  if (known) return answer(runtime, known)
  const person = onControlSocket ? 'cli' : personOf(device)
  const accepting = runtime.agent.accept({
    source: DIRECT_CALL,
    session: null,
    ...(agent !== MAIN_AGENT && { agent }),
    text,
    client,
    owner: ownerOf(device),
    caller: person,
    limited: limitedClient(person, role),
    trace,
    tools: [name],
    ...(idempotency && { idempotency }),
  })
  const id = await accepting.catch(async (error: unknown) => {
    const again = idempotency && (await lostKey(parts, idempotency, error))
    return again && again.claim !== 'claimed' ? sameCall(parts, again, text) : Promise.reject(error)
  })
  if (prefersAsync(headers)) return accepted(id)
  await endOf(runtime, { id, hasKey: idempotency !== undefined }, signal)
  return answer(runtime, id)
}

/** Returns the call that has the key; undefined when the key is free. Throws `conflict` for a key of another call. */
async function earlierCall(parts: CallParts, key: IdempotencyKey, text: string): Promise<string | undefined> {
  const claimed = await claimKey(parts, key)
  return claimed.claim === 'claimed' ? undefined : sameCall(parts, claimed, text)
}

/** Returns the call that holds a key. Throws `conflict` when it is another call. */
async function sameCall(parts: CallParts, { turnId }: ClaimedKey, text: string): Promise<string> {
  const turn = turnId === undefined ? undefined : await parts.runtime.store.turns.get(turnId)
  if (!turn) throw new AppError('conflict', 'A request with this idempotency key is being processed')
  if (turn.input !== text) throw new AppError('conflict', 'The idempotency key belongs to a call with another input')
  return turn.id
}

/** Waits for the end of a call. A caller that goes away aborts it, unless it has a key by which the caller can ask again. */
async function endOf(
  { agent }: Runtime,
  { id, hasKey }: { readonly id: string; readonly hasKey: boolean },
  signal: AbortSignal,
): Promise<void> {
  const abort = () => void (hasKey || agent.abort(id))
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  try {
    await agent.ended(id)
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

async function answer({ store }: Runtime, id: string): Promise<unknown> {
  const turn = await store.turns.get(id)
  return !turn || turn.endedAtMs === null ? accepted(id) : shownCall(turn)
}

const accepted = (id: string): Response => jsonResponse({ call_id: id, status_url: `/api/calls/${id}` }, 202)

function shownCall(turn: TurnRow) {
  const result = turn.response === null ? undefined : readDirectAnswer(turn.response)
  return {
    call_id: turn.id,
    tool: readDirectCall(turn.input).tool,
    agent: turn.agent,
    status: turn.status,
    outcome: result?.outcome ?? null,
    output: result?.output ?? null,
    data: result?.data === undefined ? null : parsed(result.data),
    untrusted: result?.untrusted ?? null,
    error: turn.error,
    created_at: isoTime(turn.createdAtMs),
    ended_at: isoTime(turn.endedAtMs),
  }
}

/** Returns the value of a JSON text; null for one that was shortened. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return null
  }
}
