/** One conversation over one connection: messages in, one turn at a time, its parts out. It knows no socket. */
import type { Agent, Held, LimitedClient, Shares, TurnPart, TurnResult } from '@sluice/agent'
import type { ApprovalRegistry } from '@sluice/approvals'
import type { People } from '@sluice/delivery'
import { AppError, type ClientId, ERRORS, type ErrorCode, type Logger, type Role } from '@sluice/sdk'
import { limitedClient, ownerOfSession } from '../auth/identity.ts'
import { ChatApprovals } from './chat-approvals.ts'
import { type ChatErrorCode, type ChatFrame, parseClientFrame } from './chat-frames.ts'

/** The number of messages that may wait while a turn runs. */
const QUEUED_MAX = 8

export interface ChatOptions {
  readonly agent: Pick<Agent, 'run'>
  readonly approvals: ApprovalRegistry
  readonly shares: Shares
  /** The people whose shares the waiting messages count for, as they are linked when a message arrives. */
  readonly people: Pick<People, 'principal'>
  readonly log: Logger
  readonly client: ClientId
  /** As in `ToolContext.caller`. */
  readonly caller: string
  readonly role: Role | null
  /** As in `Approval.by`. */
  readonly by: string
  /** The id of the stored session. */
  readonly session: string
  /** Must not throw, also if the client is gone. */
  readonly send: (frame: ChatFrame) => void
  /** Whether the client's token is still good. Called before each input takes effect and before each turn starts. */
  readonly mayAct: () => boolean | Promise<boolean>
}

interface RunningTurn {
  readonly aborted: AbortController
  /** Aborted once the next message waits. */
  readonly superseded: AbortController
}

export class Chat {
  readonly #options: ChatOptions
  readonly #approvals: ChatApprovals
  readonly #owner: string
  readonly #limited: LimitedClient
  /** Each counts for the waiting turns of the client. */
  readonly #queued: { readonly text: string; readonly held: Held }[] = []
  #running: RunningTurn | undefined
  #isClosed = false
  #isDetached = false
  /** The last input whose token is still being looked up; later input waits for it. */
  #pending: Promise<void> | undefined

  constructor(options: ChatOptions) {
    const { approvals, log, by, session } = options
    this.#options = options
    this.#owner = ownerOfSession(session)
    this.#limited = limitedClient(options.caller, options.role)
    this.#approvals = new ChatApprovals({ approvals, log, by, standing: this.#limited.standing, send: this.#send })
  }

  /** Takes one text message of the client. Never throws. */
  receive(text: string): void {
    if (this.#isClosed) return
    try {
      const allowed = this.#options.mayAct()
      if (typeof allowed !== 'boolean' || this.#pending) this.#actLater(text, allowed)
      else if (allowed) this.#act(text)
      else this.#shutOut()
    } catch (error) {
      this.#reportFailedLookup(error)
    }
  }

  /** The client is gone: aborts the running turn and drops the waiting messages. Idempotent. */
  close(): void {
    this.#isClosed = true
    for (const { held } of this.#queued.splice(0)) held.release()
    this.#running?.aborted.abort()
  }

  /**
   * The client is gone and may come back: the running turn and the waiting messages go on, and their frames are dropped. A question stays
   * open, and is decided over the API or on the dashboard. Idempotent.
   */
  detach(): void {
    this.#isDetached = true
  }

  /** Must be the only way to the client. */
  readonly #send = (frame: ChatFrame): void => {
    if (!this.#isDetached) this.#options.send(frame)
  }

  #actLater(text: string, allowed: boolean | Promise<boolean>): void {
    const own = Promise.all([allowed, this.#pending])
      .then(([isAllowed]) => (isAllowed ? this.#act(text) : this.#shutOut()))
      .catch((error: unknown) => this.#reportFailedLookup(error))
      .finally(() => {
        if (this.#pending === own) this.#pending = undefined
      })
    this.#pending = own
  }

  #act(text: string): void {
    if (this.#isClosed) return
    const frame = parseClientFrame(text)
    if (frame.type === 'invalid') this.#refuse(frame.code, frame.message)
    else if (frame.type === 'message') this.#enqueue(frame.content)
    else if (frame.type === 'abort') this.#running?.aborted.abort()
    else if (!this.#approvals.answer(frame.requestId, frame.approved)) {
      this.#refuse('INVALID_APPROVAL_RESPONSE', 'No such approval is waited for; it may have timed out')
    }
  }

  #enqueue(content: string): void {
    if (this.#running && this.#queued.length >= QUEUED_MAX) {
      this.#refuse('SESSION_QUEUE_FULL', `There are already ${QUEUED_MAX} messages waiting`)
      return
    }
    try {
      this.#queued.push({
        text: content,
        held: this.#options.shares.takeWaiting(this.#options.people.principal(this.#limited), Buffer.byteLength(content)),
      })
    } catch (error) {
      this.#send(frameOfFailure(error, this.#options.log))
      return
    }
    if (this.#running) this.#running.superseded.abort()
    else void this.#runQueued()
  }

  /** Runs one turn after the other until no message waits. */
  async #runQueued(): Promise<void> {
    for (let next = this.#queued.shift(); next; next = this.#queued.shift()) {
      next.held.release()
      const turn = { aborted: new AbortController(), superseded: new AbortController() }
      this.#running = turn
      if (this.#queued.length > 0) turn.superseded.abort()
      try {
        const allowed = this.#options.mayAct()
        if (allowed !== true && !(await allowed)) return this.#shutOut()
      } catch (error) {
        this.#reportFailedLookup(error)
        continue
      }
      await this.#runTurn(next.text, turn)
    }
    this.#running = undefined
  }

  async #runTurn(text: string, { aborted, superseded }: RunningTurn): Promise<void> {
    const { agent, log, session, caller, client } = this.#options
    try {
      const turn = await agent.run({
        source: 'ws',
        session,
        owner: this.#owner,
        caller,
        limited: this.#limited,
        text,
        client,
        signal: aborted.signal,
        superseded: superseded.signal,
        listen: (part) => this.#send(frameOf(part)),
        approve: this.#approvals.ask,
      })
      this.#send(frameOfEnd(turn))
    } catch (error) {
      this.#send(frameOfFailure(error, log))
    }
  }

  /** The token was revoked: the client's input has no effect any more, however long its connection stays open. */
  #shutOut(): void {
    if (!this.#isClosed) this.#refuse('AUTH_ERROR', 'The token was revoked')
    this.close()
  }

  #reportFailedLookup(error: unknown): void {
    this.#options.log.error('token of a chat not looked up', { error })
    this.#refuse('AGENT_ERROR', 'The token could not be looked up; try again')
  }

  #refuse(code: ChatErrorCode, message: string): void {
    this.#send({ type: 'error', message, code })
  }
}

export function frameOf(part: TurnPart): ChatFrame {
  switch (part.type) {
    case 'text':
      return { type: 'chunk', content: part.delta }
    case 'thinking':
      return { type: 'thinking', content: part.delta }
    case 'tool_call':
      return { type: 'tool_call', id: part.id, name: part.name, args: part.input }
    case 'tool_result':
      return { type: 'tool_result', id: part.id, name: part.name, output: part.output }
  }
}

export function frameOfEnd({ id, text, model, finishReason, usage: { inputTokens, outputTokens, costUsd } }: TurnResult): ChatFrame {
  const costs = { input_tokens: inputTokens, output_tokens: outputTokens, cost_usd: costUsd }
  return { type: 'done', full_response: text, turn_id: id, model, finish_reason: finishReason, ...costs }
}

/** Returns the frame for the error of a turn. Logs an error that is a bug, and says nothing of it to the client. */
export function frameOfFailure(error: unknown, log: Logger): ChatFrame {
  if (!(error instanceof AppError)) {
    log.error('turn failed', { error })
    return { type: 'error', message: ERRORS.internal.title, code: 'AGENT_ERROR', error_code: 'internal' }
  }
  const { code: error_code, message, fields } = error
  if (error_code === 'aborted') return { type: 'aborted', turn_id: typeof fields.turn_id === 'string' ? fields.turn_id : null }
  return { type: 'error', message, code: chatCodeOf(error_code), error_code }
}

function chatCodeOf(code: ErrorCode): ChatErrorCode {
  if (code === 'upstream' || code === 'upstream_timeout') return 'PROVIDER_ERROR'
  if (code === 'unauthorized' || code === 'forbidden') return 'AUTH_ERROR'
  return code === 'too_large' ? 'TOO_LARGE' : 'AGENT_ERROR'
}
