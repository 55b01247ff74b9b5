/** One conversation over one connection: messages in, one turn at a time, its parts out. Knows no socket. */
import type { Agent, TurnPart } from '@sluice/agent'
import type { ApprovalRegistry } from '@sluice/approvals'
import { AppError, type ClientId, ERRORS, type Logger } from '@sluice/sdk'
import { ownerOfSession } from '../session-name.ts'
import { createChatApprovals } from './chat-approvals.ts'
import { type ChatErrorCode, type ChatFrame, parseClientFrame } from './chat-frames.ts'

/** Messages that wait while a turn runs. */
const QUEUED_MAX = 8

export interface Chat {
  /** One text message of the client. Never throws. */
  receive(text: string): void
  /** The client is gone: aborts the turn that runs and forgets those that wait. Idempotent. */
  close(): void
}

export interface ChatOptions {
  readonly agent: Pick<Agent, 'run'>
  readonly approvals: ApprovalRegistry
  readonly log: Logger
  readonly client: ClientId
  /** As in `ToolContext.caller`. */
  readonly caller: string
  /** As stored. */
  readonly session: string
  /** Must not throw, whether or not the client is still there. */
  readonly send: (frame: ChatFrame) => void
  /** Whether the client's token is still good: asked before each input is acted on and before each turn starts. */
  readonly mayAct: () => boolean | Promise<boolean>
}

export function createChat({ agent, approvals: registry, log, client, caller, session, send, mayAct }: ChatOptions): Chat {
  const owner = ownerOfSession(session)
  const approvals = createChatApprovals({ approvals: registry, log, by: `device:${owner}`, send })
  const queued: string[] = []
  let running: { readonly aborted: AbortController; readonly followed: AbortController } | undefined
  let isClosed = false
  /** The last input whose sender is still being looked up; later ones wait for it. */
  let pending: Promise<void> | undefined

  const refuse = (code: ChatErrorCode, message: string) => send({ type: 'error', message, code })

  const notLookedUp = (error: unknown) => {
    log.error('The token of a chat could not be looked up', { error })
    refuse('AGENT_ERROR', 'The token could not be looked up; try again')
  }

  const runTurn = async (text: string, signal: AbortSignal, followed: AbortSignal) => {
    const listen = (part: TurnPart) => send(frameOf(part))
    try {
      const { ask: approve } = approvals
      const turn = await agent.run({
        source: 'ws',
        session,
        owner,
        caller,
        text,
        client,
        signal,
        followed,
        listen,
        approve,
      })
      const { inputTokens, outputTokens, costUsd } = turn.usage
      const costs = { input_tokens: inputTokens, output_tokens: outputTokens, cost_usd: costUsd }
      send({ type: 'done', full_response: turn.text, turn_id: turn.id, model: turn.model, ...costs })
    } catch (error) {
      if (!(error instanceof AppError)) log.error('a chat turn failed', { error })
      send(failureOf(error))
    }
  }

  /** Takes up what is queued until nothing is left. */
  const work = async () => {
    for (let text = queued.shift(); text !== undefined; text = queued.shift()) {
      running = { aborted: new AbortController(), followed: new AbortController() }
      if (queued.length > 0) running.followed.abort()
      try {
        const allowed = mayAct()
        if (allowed !== true && !(await allowed)) return shutOut()
      } catch (error) {
        notLookedUp(error)
        continue
      }
      await runTurn(text, running.aborted.signal, running.followed.signal)
    }
    running = undefined
  }

  const take = (content: string) => {
    if (running && queued.length >= QUEUED_MAX) return refuse('SESSION_QUEUE_FULL', `There are already ${QUEUED_MAX} messages waiting`)
    queued.push(content)
    if (running) running.followed.abort()
    else void work()
  }

  const close = () => {
    isClosed = true
    queued.length = 0
    running?.aborted.abort()
  }

  /** The token was revoked: nothing is done for the client any more, however long its connection stays. */
  const shutOut = () => {
    if (!isClosed) refuse('AUTH_ERROR', 'The token was revoked')
    close()
  }

  const act = (text: string) => {
    if (isClosed) return
    const frame = parseClientFrame(text)
    if (frame.type === 'invalid') refuse(frame.code, frame.message)
    else if (frame.type === 'message') take(frame.content)
    else if (frame.type === 'abort') running?.aborted.abort()
    else if (!approvals.answer(frame.requestId, frame.approved)) {
      refuse('INVALID_APPROVAL_RESPONSE', 'No such approval is waited for; it may have timed out')
    }
  }

  const actLater = (text: string, allowed: boolean | Promise<boolean>) => {
    const own = Promise.all([allowed, pending])
      .then(([isAllowed]) => (isAllowed ? act(text) : shutOut()))
      .catch(notLookedUp)
      .finally(() => {
        if (pending === own) pending = undefined
      })
    pending = own
  }

  return {
    receive(text) {
      if (isClosed) return
      try {
        const allowed = mayAct()
        if (typeof allowed !== 'boolean' || pending) return actLater(text, allowed)
        if (allowed) act(text)
        else shutOut()
      } catch (error) {
        notLookedUp(error)
      }
    },
    close,
  }
}

function frameOf(part: TurnPart): ChatFrame {
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

function failureOf(error: unknown): ChatFrame {
  if (!(error instanceof AppError)) return { type: 'error', message: ERRORS.internal.title, code: 'AGENT_ERROR' }
  const { code, message, fields } = error
  if (code === 'aborted') return { type: 'aborted', turn_id: typeof fields.turn_id === 'string' ? fields.turn_id : null }
  if (code === 'upstream' || code === 'upstream_timeout') return { type: 'error', message, code: 'PROVIDER_ERROR' }
  if (code === 'unauthorized' || code === 'forbidden') return { type: 'error', message, code: 'AUTH_ERROR' }
  return { type: 'error', message, code: code === 'too_large' ? 'TOO_LARGE' : 'AGENT_ERROR' }
}
