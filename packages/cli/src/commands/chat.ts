/** `sluice chat`: a conversation with the running daemon at a terminal. */
import { randomBytes } from 'node:crypto'
import type { ChatFrame, SessionLine } from '@sluice/http/answers'
import { AppError, agentKey, errorText, MAIN_AGENT } from '@sluice/sdk'
import { type Api, apiPath } from '../api/api.ts'
import { ChatLines, costOf } from '../chat-lines.ts'
import { Screen } from '../chat-screen.ts'
import type { CliContext } from '../context.ts'
import { sessionOption, textOption } from '../option-values.ts'
import { askRunning } from '../probe-daemon.ts'
import { terminalText } from '../terminal-markdown.ts'

/** The messages that are shown of a conversation that goes on. */
const SHOWN_MAX = 20
const YES = /^\s*y(?:es)?\s*$/i

interface Conversation {
  readonly api: Api
  readonly context: CliContext
  readonly screen: Screen
  readonly session: string
  readonly agent: string | undefined
}

export async function run(context: CliContext): Promise<number> {
  const { json, stdin, out } = context
  if (json || stdin.isTTY !== true)
    throw new AppError('invalid_request', "a chat needs a terminal; 'sluice agent --session <name>' sends one message from a script")
  const session = sessionOption(context) ?? `chat-${randomBytes(4).toString('hex')}`
  const agent = textOption(context, 'agent')
  const done = await askRunning(context, async (api) => {
    const earlier = await readHistory(api, agentKey(agent ?? MAIN_AGENT, `local/${session}`))
    showHistory(context, earlier)
    const history = earlier.filter(({ role }) => role === 'user').map(({ content }) => content)
    const screen = new Screen({ stdin, history: history.toReversed(), prompt: '> ' })
    try {
      await converse({ api, context, screen, session, agent })
    } finally {
      screen.close()
    }
    return true
  })
  if (!done) throw new AppError('unavailable', `no daemon runs on ${context.dataDir}: start one with 'sluice daemon' in another terminal`)
  out.hint(`\nto go on: 'sluice chat --session ${session}${agent === undefined ? '' : ` --agent ${agent}`}'`)
  return 0
}

/** Returns the newest messages of the session; none for a new one. */
async function readHistory(api: Api, id: string): Promise<readonly Pick<SessionLine, 'role' | 'content'>[]> {
  try {
    const page = await api.get<{ readonly messages: readonly Pick<SessionLine, 'role' | 'content'>[] }>(
      `${apiPath('/api/sessions', id)}/messages`,
      { limit: SHOWN_MAX },
    )
    return page.messages.filter(({ content }) => content !== '')
  } catch (error) {
    if (error instanceof AppError && error.code === 'not_found') return []
    throw error
  }
}

function showHistory({ out }: CliContext, messages: readonly Pick<SessionLine, 'role' | 'content'>[]): void {
  if (messages.length === 0) out.print(out.style('dim', 'a new conversation: Enter sends, Ctrl-C stops the answer, Ctrl-D leaves'))
  const answerText = (content: string) => (isTerminal() ? terminalText(content, out.style) : content)
  for (const { role, content } of messages) out.print(role === 'user' ? `${out.style('bold', '>')} ${content}` : answerText(content))
}

const isTerminal = (): boolean => process.stdout.isTTY === true

async function converse(conversation: Conversation): Promise<void> {
  for (;;) {
    const input = await conversation.screen.next()
    if (input.type === 'leave') return
    if (input.type === 'line' && input.text.trim() !== '' && (await answer(conversation, input.text)) === 'left') return
  }
}

/** Runs one turn. Resolves to `left` if the person leaves while it runs; the turn then goes on. */
async function answer({ api, context, screen, session, agent }: Conversation, message: string): Promise<'answered' | 'left'> {
  const { out } = context
  const left = new AbortController()
  const lines = new ChatLines(out, isTerminal())
  let turnId: string | undefined
  let isStopped = false
  const stop = (): void => {
    isStopped = true
    if (turnId !== undefined) void api.post(`${apiPath('/api/turns', turnId)}/abort`).catch(() => undefined)
  }
  // Calls of one step may ask at the same time; their questions are shown one after the other.
  const open = new Map<string, AbortController>()
  let asking = Promise.resolve()
  const ask = async (frame: Extract<ChatFrame, { type: 'approval_request' }>, signal: AbortSignal): Promise<void> => {
    lines.print(`${out.style('yellow', 'The agent wants to run')} ${frame.tool}:\n${frame.arguments_summary}`)
    const input = await screen.ask('Allow it once? [y/N] ', signal)
    if (input === undefined) return out.print(out.style('dim', '\ndecided elsewhere'))
    // A person who leaves has decided nothing: the question stays open for the dashboard and other commands.
    if (input.type === 'leave') return left.abort()
    if (input.type === 'stop') return stop()
    const approved = YES.test(input.text)
    await api.post(apiPath('/api/approvals', frame.run_id, frame.step_id), { approved }).catch((error: unknown) => {
      out.warn(`not decided: ${errorText(error)}`)
    })
  }
  const close = (step: string): void => {
    open.get(step)?.abort()
    open.delete(step)
  }
  const show = (frame: ChatFrame): void => {
    if (frame.type === 'turn_start') {
      turnId = frame.turn_id
      if (isStopped) stop()
    } else if (frame.type === 'chunk') lines.write(frame.content)
    else if (frame.type === 'tool_call') lines.print(out.style('dim', `[${frame.name}]`))
    else if (frame.type === 'approval_request') {
      const closed = new AbortController()
      open.set(frame.step_id, closed)
      asking = asking.then(() => ask(frame, closed.signal))
    } else if (frame.type === 'tool_result') close(frame.id)
    else if (frame.type === 'aborted') lines.print(out.style('dim', 'stopped'))
    else if (frame.type === 'error') lines.print(out.style('red', frame.message))
    else if (frame.type === 'done') lines.print(out.style('dim', costOf(frame)))
  }
  const body = { message, session_id: session, agent, ask: true, stays: true }
  const follow = async (): Promise<'answered'> => {
    try {
      for await (const frame of api.lines<ChatFrame>('/api/turns', { method: 'POST', body, signal: left.signal })) show(frame)
    } finally {
      lines.end()
      for (const step of [...open.keys()]) close(step)
      await asking
    }
    return 'answered'
  }
  try {
    const ended = await screen.during(follow(), stop)
    if (ended === 'left') left.abort()
    return left.signal.aborted ? 'left' : ended
  } catch (error) {
    if (left.signal.aborted) return 'left'
    if (!(error instanceof AppError)) throw error
    lines.print(out.style('red', error.message))
    return 'answered'
  }
}
