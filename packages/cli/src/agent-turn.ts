/** Runs one turn of the agent for the command line: in the daemon, or in this process if no daemon runs. */
import { createInterface } from 'node:readline/promises'
import { agentNames, unknownAgent } from '@sluice/config'
import type { OpenRuntime } from '@sluice/daemon/open-runtime'
import type { ChatFrame } from '@sluice/http/answers'
import { operator } from '@sluice/http/operator'
import { AppError, agentKey, ERRORS, type ErrorCode, type FinishReason, MAIN_AGENT } from '@sluice/sdk'
import { apiPath } from './api/api.ts'
import { type OpenedApi, openRunning } from './api/open-api.ts'
import type { CliContext, Output } from './context.ts'

/** The client whose memories and quotas a turn of the command line uses. */
const CALLER = 'cli'

export interface AgentTurn {
  readonly message: string
  /** The name of the session; undefined for a turn without history. */
  readonly session: string | undefined
  /** The name of the agent; undefined for the main agent. */
  readonly agent: string | undefined
  /** True: a person at the terminal decides about tool calls. */
  readonly canAsk: boolean
  readonly signal: AbortSignal
  onText(text: string): void
}

export interface AgentReply {
  readonly response: string
  readonly model: string
  readonly turn_id: string
  readonly finish_reason: FinishReason
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number; readonly cost_usd: number }
}

/** Runs the turn in the daemon; undefined if no daemon runs. Throws the error of a failed turn. */
export async function runInDaemon(context: CliContext, turn: AgentTurn): Promise<AgentReply | undefined> {
  const running = await openRunning(context)
  if (!running) return undefined
  try {
    return await follow(context, running, turn)
  } finally {
    await running.close()
  }
}

async function follow({ out }: CliContext, { api }: OpenedApi, turn: AgentTurn): Promise<AgentReply> {
  const { message, session, agent, canAsk, signal } = turn
  const body = { message, agent, ask: canAsk, session_id: session }
  try {
    for await (const frame of api.lines<ChatFrame>('/api/turns', { method: 'POST', body, signal })) {
      if (frame.type === 'chunk') turn.onText(frame.content)
      else if (frame.type === 'approval_request') {
        const approved = await confirm(out, { tool: frame.tool, summary: frame.arguments_summary }, signal)
        await api.post(apiPath('/api/approvals', frame.run_id, frame.step_id), { approved })
      } else if (frame.type === 'done') return replyOf(frame)
      else if (frame.type === 'aborted') throw aborted()
      else if (frame.type === 'error') throw new AppError(codeOf(frame.error_code), frame.message)
    }
  } catch (error) {
    throw signal.aborted ? aborted() : error
  }
  throw new AppError('unavailable', 'The daemon ended the connection before the turn')
}

const aborted = (): AppError => new AppError('aborted', 'The turn was aborted')

const codeOf = (code: string | undefined): ErrorCode =>
  code !== undefined && Object.hasOwn(ERRORS, code) ? (code as ErrorCode) : 'internal'

const replyOf = (frame: Extract<ChatFrame, { type: 'done' }>): AgentReply => ({
  response: frame.full_response,
  model: frame.model,
  turn_id: frame.turn_id,
  finish_reason: frame.finish_reason,
  usage: { input_tokens: frame.input_tokens, output_tokens: frame.output_tokens, cost_usd: frame.cost_usd },
})

/** Runs the turn in this process; undefined while a daemon holds the data directory. Throws the error of a failed turn. */
export async function runHere(context: CliContext, turn: AgentTurn): Promise<AgentReply | undefined> {
  const [{ shareDataDir }, { openRuntime }] = await Promise.all([import('@sluice/store'), import('@sluice/daemon/open-runtime')])
  const lock = shareDataDir(context.dataDir)
  if (!lock) return undefined
  try {
    const approve = async ({ tool, summary }: Asked, signal: AbortSignal) =>
      (await confirm(context.out, { tool, summary }, signal)) && { by: operator(), standing: 'operator' as const }
    const runtime = await openRuntime({ ...context, quiet: true, lock, ...(turn.canAsk && { approve }) })
    try {
      const agent = agentNamed(runtime, turn.agent)
      const { id, text, model, finishReason, usage } = await runtime.agent.run({
        source: 'cli',
        agent,
        session: turn.session === undefined ? null : agentKey(agent, `local/${turn.session}`),
        text: turn.message,
        client: runtime.clients.ofCaller(CALLER),
        owner: 'local',
        caller: CALLER,
        signal: turn.signal,
        listen: (part) => part.type === 'text' && turn.onText(part.delta),
      })
      const { inputTokens: input_tokens, outputTokens: output_tokens, costUsd: cost_usd } = usage
      return { response: text, model, turn_id: id, finish_reason: finishReason, usage: { input_tokens, output_tokens, cost_usd } }
    } finally {
      await runtime.close()
    }
  } finally {
    lock.release()
  }
}

function agentNamed(runtime: OpenRuntime, name: string | undefined): string {
  if (name === undefined) return MAIN_AGENT
  const names = agentNames(runtime.config())
  if (!names.includes(name)) throw new AppError('invalid_request', `--agent: ${unknownAgent(name, names)}`)
  return name
}

interface Asked {
  readonly tool: string
  readonly summary: string
}

/** Asks on standard error, so that standard output holds the reply alone. Any answer but `y` or `yes` is false. */
async function confirm(out: Output, { tool, summary }: Asked, signal: AbortSignal): Promise<boolean> {
  out.warn(`\n${out.style('yellow', 'The agent wants to run')} ${tool}:\n${summary}`)
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^\s*y(es)?\s*$/i.test(await terminal.question('Allow it once? [y/N] ', { signal }))
  } catch {
    return false // The signal aborted before an answer.
  } finally {
    terminal.close()
  }
}
