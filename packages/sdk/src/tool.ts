/** The port of everything the model can call. */
import type * as v from 'valibot'
import type { ClientId } from './client-id.ts'
import type { Trace } from './trace.ts'

/**
 * What a call can do, and so who must agree to it (`[security.policy] level`): `read` looks, `write` changes what is
 * inside the workspace or the agent's memory, `execute` reaches beyond.
 */
export type Risk = 'read' | 'write' | 'execute'

export interface ToolContext {
  /** The client on whose behalf this runs; keys every per-client state. */
  readonly client: ClientId
  /** Who that is, on every connection and after a restart; keys what outlives them. Absent: nobody knows. */
  readonly caller?: string
  readonly session: string | null
  readonly turn: string
  /** Aborts when the turn is aborted, times out, or the daemon stops. A tool must end soon after. */
  readonly signal: AbortSignal
  /**
   * Aborts once something else has come in this session, which waits for the end of this turn: for what a person may want to
   * stop by saying so. Absent: outside of a session.
   */
  readonly followed?: AbortSignal
  readonly trace: Trace
  /** The person who agreed to this very call, as in `Approval.by`; absent: nobody was asked. */
  readonly approvedBy?: string
  /** Takes what the text alone does not tell a procedure that runs without a model; the last word counts. */
  readonly report?: (report: ToolReport) => void
}

export interface ToolReport {
  /** It ran, but to no good end: a command with an exit code other than 0, an HTTP status from 400 on. */
  readonly failed?: true
  /** What stands for the whole text where a program goes on with it: a command's bare output, the body of an answer. */
  readonly data?: string
}

export interface Tool<Schema extends v.GenericSchema = v.GenericSchema> {
  /** snake_case, as the model sees it; stands in the feature's catalogue row. */
  readonly name: string
  /** One or two sentences for the model: what it does, what comes back. */
  readonly description: string
  /** A `v.object`; its JSON Schema is what the model sees, and no call runs with input that does not fit. */
  readonly input: Schema
  readonly risk: Risk | ((input: v.InferOutput<Schema>) => Risk)
  /**
   * It runs only if a person agrees to this very call, whatever the policy says; level `readonly` refuses it all the same. A
   * function decides by the input.
   */
  readonly alwaysAsks?: true | ((input: v.InferOutput<Schema>) => boolean)
  /**
   * For what has to be stopped at any time. Of what a model wrote: the input of a call that brings something to a halt and
   * does nothing else, whatever else was written; undefined for any other. Such a call runs at every policy level, unasked,
   * and however often it is made.
   */
  haltOf?(raw: unknown): v.InferInput<Schema> | undefined
  /**
   * Called before a person is asked about a call. Throws the `AppError` with which the call would fail at this moment
   * whatever the person says, such as for a device that is not connected. Touches nothing; `run` checks again.
   */
  precheck?(input: v.InferOutput<Schema>, context: Pick<ToolContext, 'signal'>): void | Promise<void>
  /** Asked after register and at each `Host.refresh`: a tool whose hardware is not there stays out of the model's list. */
  available?(): boolean
  /**
   * Does it and says what happened in text the model can read. Throw an `AppError` to refuse: its sentence becomes an
   * error result. The executor caps the length of what is returned.
   */
  run(input: v.InferOutput<Schema>, context: ToolContext): Promise<string>
}

/** Identity at run time; at compile time it types `run` from `input`. */
export const defineTool = <const Schema extends v.GenericSchema>(tool: Tool<Schema>): Tool => tool as unknown as Tool
