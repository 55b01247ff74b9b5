/** The port of the functions that a model can call (docs/contract.md#tools). */
import type * as v from 'valibot'
import type { ClientId } from '../values/client-id.ts'
import type { Policy } from '../values/policy.ts'
import type { Standing } from '../values/standing.ts'
import type { Trace } from '../values/trace.ts'
import type { Workspace } from './workspace.ts'

/**
 * The effect of a call, which decides who must approve it (`[security.policy] level`): `read` changes nothing, `write`
 * changes the workspace or the agent's memory, `execute` has effects outside.
 */
export type Risk = 'read' | 'write' | 'execute'

/**
 * Who may decide a call that needs an approval (docs/approvals.md#who-may-decide): `asker`, the principal of the turn, `starter`, the
 * person who started the procedure, or only an `operator`. Operators decide every call, and a principal below `listed` decides none.
 */
export const DECIDERS = ['asker', 'starter', 'operator'] as const
export type Decider = (typeof DECIDERS)[number]

/** Whether only an operator decides a call, and its principal is not an operator. */
export const isForOperators = (decider: Decider | null | undefined, standing: Standing | null | undefined): boolean =>
  decider === 'operator' && standing !== 'operator'

/** The agent that makes a call, with its limits. They are in force when the call runs; do not keep them. */
export interface CallingAgent {
  /** `main`, or the name in `[agents.<name>]`. */
  readonly agent: string
  readonly policy: Policy
  readonly workspace: Workspace
}

export interface ToolContext extends CallingAgent {
  /** The client that the call belongs to; in a room, where others read the answers, in this conversation only. Key the state of clients by it. */
  readonly client: ClientId
  /** The durable identity of that client over connections and restarts. Key stored data by it. Absent when it is unknown. */
  readonly caller?: string
  /** The owner of the memories of a caller whose accounts are linked; absent for any other. */
  readonly person?: string
  /** True in a conversation whose answers several people read. Without a shared session, nothing that belongs to the caller alone is shown there. */
  readonly isInRoom?: true
  /** The standing of the turn: the lowest among the principals whose words it answers. */
  readonly standing: Standing
  readonly session: string | null
  readonly turn: string
  /** Aborts when the turn is aborted or times out, or the daemon stops. A tool must end soon after. */
  readonly signal: AbortSignal
  /**
   * Aborts when a newer message of the same person waits in the session, so that a person can stop a tool by writing. Absent outside of a
   * session.
   */
  readonly superseded?: AbortSignal
  readonly trace: Trace
  /** The person who approved this call, as in `Approval.by`. Absent when the call needed no approval. */
  readonly approvedBy?: string
  /**
   * Asks the person who would approve the call, while it runs, and shows `about` as it would show an input. Resolves to the person
   * who approved, and to undefined if none did. Meanwhile the time limit of the turn is paused. Absent for calls with the risk `read`.
   */
  readonly ask?: (about: Readonly<Record<string, unknown>>) => Promise<string | undefined>
  /** Tells whether the model of this turn has read text of others. Absent outside of a turn, where nothing is known. */
  readonly hasReadUntrusted?: () => boolean
  /** Reports results that a procedure without a model cannot read from the text. The last report counts. */
  readonly report?: (report: ToolReport) => void
}

export interface ToolReport {
  /** The tool ran and its work failed: a command exited with another code than 0, or an HTTP status was 400 or higher. */
  readonly failed?: true
  /** The result for a program that continues with it: the plain output of a command, or the body of an HTTP answer. */
  readonly data?: string
  /** The source of text of others in the result, when the tool knows it only from the content. */
  readonly untrusted?: string
  /** The call was refused before it read anything: its error has no text of others. */
  readonly readNothing?: true
}

export interface Tool<Schema extends v.GenericSchema = v.GenericSchema> {
  /** The name in snake case, as the model sees it and as the catalogue row of the feature lists it. */
  readonly name: string
  /** One or two sentences for the model: the effect of the tool and its result. */
  readonly description: string
  /** A `v.object`. The model sees its JSON Schema, and no call runs with input that does not match. */
  readonly input: Schema
  /** The JSON Schema that the model sees in place of the one of `input`, for tools that another program describes. */
  readonly inputSchema?: Readonly<Record<string, unknown>>
  readonly risk: Risk | ((input: v.InferOutput<Schema>, by: CallingAgent) => Risk)
  /**
   * Whether a call sends data out of this machine, where its address, arguments or body reach others. A call without effects that
   * fetches a URL does. With `ask_after_untrusted`, a person approves such a call once its turn has read untrusted text.
   */
  readonly egress: boolean | ((input: v.InferOutput<Schema>, by: CallingAgent) => boolean)
  /**
   * Whether results contain text that others may have written, such as a web page. The model gets them framed as data. A function
   * returns the source of the text by the input, such as `http_request https://example.com`, or undefined; true means the name
   * of the tool. It is called before and after the call, because a call may move the files that it reads.
   */
  readonly untrusted: boolean | ((input: v.InferOutput<Schema>, by: CallingAgent) => string | undefined)
  /**
   * For a tool that sends out no more than an address. Once the turn has read untrusted text, a call runs unasked only if a message of
   * a person, or a result of a tool with `showsAddresses`, contains its address; a person approves every other call, whatever
   * `ask_after_untrusted` says.
   */
  readonly address?: (input: v.InferOutput<Schema>) => string
  /** True for a tool whose results contain addresses that may be opened, such as a search. */
  readonly showsAddresses?: true
  /** True for a tool that waits, so that a turn may make the same call any number of times. Of another call, the third in a row is refused. */
  readonly mayRepeat?: true
  /** True for a tool that only reports the outcome of the turn itself. `ask_after_untrusted` does not apply to it. */
  readonly reportsOnly?: true
  /**
   * True when a person must approve each call, whatever the policy says. The policy level `readonly` still refuses it. A
   * function decides by the input.
   */
  readonly alwaysAsks?: true | ((input: v.InferOutput<Schema>, by: CallingAgent) => boolean)
  /**
   * Who may decide a call that needs an approval; `asker` unless given. A function decides by the input, and by the standing of the turn.
   */
  readonly decider?: Decider | ((input: v.InferOutput<Schema>, by: CallingAgent & Pick<ToolContext, 'standing'>) => Decider)
  /**
   * Returns what the person who decides a call must know in addition to its input, such as that the tool has changed. Lines of plain text, which
   * the question shows below the input.
   */
  readonly notice?: () => string | undefined
  /**
   * For tools that must be stoppable at any time. Returns the input of a call that only stops something, made from the raw
   * input of the model and without its other members; undefined for every other call. A stopping call runs at every policy
   * level, without approval, and any number of times.
   */
  haltOf?(raw: unknown): v.InferInput<Schema> | undefined
  /**
   * Runs before a person is asked about a call. Throws the `AppError` that the call would fail with at this moment, such as
   * for a device that is not connected. Must have no effect; `run` checks again.
   */
  precheck?(input: v.InferOutput<Schema>, context: CallingAgent & Pick<ToolContext, 'signal' | 'standing' | 'caller'>): void | Promise<void>
  /** Tells whether the model is offered the tool, such as when its hardware is connected. Evaluated after `register` and at each `Host.refresh`. */
  available?(): boolean
  /**
   * Runs the call and returns its result as text for the model, which the executor cuts at a limit. Throw an `AppError` to
   * refuse: its message becomes an error result.
   */
  run(input: v.InferOutput<Schema>, context: ToolContext): Promise<string>
}

/** Returns its argument; types `run` from the schema `input`. */
export const defineTool = <const Schema extends v.GenericSchema>(tool: Tool<Schema>): Tool => tool as unknown as Tool
