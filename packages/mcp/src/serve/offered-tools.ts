/** The tools that Sluice offers to other agents. Each calls a route of the API as its caller, so the API decides what a caller may do. */
import { AppError, type RouteRequest } from '@sluice/sdk'
import { toJsonSchema } from '@valibot/to-json-schema'
import * as v from 'valibot'
import { readTurn } from './read-turn.ts'

/** The caller of a tool. */
export interface Caller extends Pick<RouteRequest, 'api' | 'role'> {
  /** Aborts when the caller cancels the call or goes away. */
  readonly signal: AbortSignal
}

export interface OfferedTool {
  readonly name: string
  readonly description: string
  readonly input: v.GenericSchema
  readonly readOnly: boolean
  /** True: only operators may call it, and only they see it. */
  readonly operatorsOnly?: true
  /** Returns the result as plain data. */
  call(input: never, caller: Caller): Promise<unknown>
}

const tool = <const Schema extends v.GenericSchema>(
  given: Omit<OfferedTool, 'input' | 'call'> & {
    readonly input: Schema
    call(input: v.InferOutput<Schema>, caller: Caller): Promise<unknown>
  },
): OfferedTool => given

const described = (text: string) => v.pipe(v.string(), v.minLength(1), v.description(text))
const segment = encodeURIComponent

export const OFFERED: readonly OfferedTool[] = [
  tool({
    name: 'send_message',
    description: 'Sends a message to the agent and returns its answer. With a session, the agent remembers the messages before.',
    input: v.object({
      message: described('The message'),
      session_id: v.optional(described('The name of a conversation; without it, the message stands alone')),
    }),
    readOnly: false,
    call: async ({ message, session_id }, { api, signal }) =>
      readTurn(await api({ method: 'POST', path: '/api/turns', body: { message, session_id, ask: true }, signal })),
  }),
  tool({
    name: 'list_approvals',
    description: 'Lists the questions that wait for a person, such as whether a tool may run.',
    input: v.object({}),
    readOnly: true,
    call: (_, { api, signal }) => api({ method: 'GET', path: '/api/approvals?state=pending', signal }),
  }),
  tool({
    name: 'answer_approval',
    description: 'Approves or rejects one of the questions of list_approvals. Do so only when a person told you to.',
    input: v.object({
      run_id: described('`run_id` of the question'),
      step_id: described('`step_id` of the question'),
      approved: v.boolean(),
      feedback: v.optional(described('Why, or what to do instead')),
    }),
    readOnly: false,
    call: ({ run_id, step_id, ...body }, { api, signal }) =>
      api({ method: 'POST', path: `/api/approvals/${segment(run_id)}/${segment(step_id)}`, body, signal }),
  }),
  tool({
    name: 'list_procedures',
    description: 'Lists the procedures that can be started.',
    input: v.object({}),
    readOnly: true,
    operatorsOnly: true,
    call: (_, { api, signal }) => api({ method: 'GET', path: '/api/sops', signal }),
  }),
  tool({
    name: 'start_procedure',
    description: 'Starts a procedure and returns its run.',
    input: v.object({
      name: described('The name of the procedure'),
      payload: v.optional(v.pipe(v.unknown(), v.description('The event that the procedure gets, as JSON'))),
    }),
    readOnly: false,
    operatorsOnly: true,
    call: ({ name, payload }, { api, signal }) =>
      api({ method: 'POST', path: `/api/sops/${segment(name)}/runs`, body: payload === undefined ? {} : { payload }, signal }),
  }),
  tool({
    name: 'show_run',
    description: 'Shows a run of a procedure with its steps.',
    input: v.object({ run_id: described('The id of the run') }),
    readOnly: true,
    operatorsOnly: true,
    call: ({ run_id }, { api, signal }) => api({ method: 'GET', path: `/api/sops/runs/${segment(run_id)}`, signal }),
  }),
]

/** The tools that a caller may call. */
export const offeredTo = ({ role }: Pick<Caller, 'role'>): readonly OfferedTool[] =>
  OFFERED.filter(({ operatorsOnly }) => !operatorsOnly || role === 'operator')

/** Returns whether the name is one of these tools, whether or not the caller may call it. It hides a callable tool of the same name. */
export const isOwn = (name: string): boolean => OFFERED.some((one) => one.name === name)

/** The tool as the protocol lists it. */
export function listedTool({ name, description, input, readOnly }: OfferedTool) {
  const { $schema: _, ...inputSchema } = toJsonSchema(input, { typeMode: 'input', errorMode: 'ignore' })
  return { name, description, inputSchema: inputSchema as { type: 'object' }, annotations: { readOnlyHint: readOnly } }
}

/** Calls a tool by name. Throws the `AppError` of the API, or `invalid_request`. */
export async function callOffered(name: string, input: unknown, caller: Caller): Promise<unknown> {
  const offered = offeredTo(caller).find((one) => one.name === name)
  if (!offered) throw new AppError('not_found', `There is no tool '${name}'`)
  const read = v.safeParse(offered.input, input)
  if (!read.success) {
    const [issue] = read.issues
    throw new AppError('invalid_request', `The input of ${name} is not valid: ${v.getDotPath(issue) ?? 'input'}: ${issue.message}`)
  }
  return offered.call(read.output as never, caller)
}
