/** The loop of a turn: calls the model, runs the tools that it calls, and repeats with their results until the model answers with text. */
import { type Conversation, type FinishReason, type MarkedFile, type ModelMessage, sharedRoom, type TurnStore } from '@sluice/sdk'
import { makeRoom } from '../compaction/conversation.ts'
import { storedMessages } from '../compaction/stored-messages.ts'
import type { SummarizeDeps } from '../compaction/summarize.ts'
import { namesAttachment } from '../history/attached-files.ts'
import { fitConversation } from '../history/history.ts'
import { isOfLower, type Writer, withNote } from '../history/message-notes.ts'
import { isShown } from '../history/shown-addresses.ts'
import { sourcesIn } from '../history/untrusted-in.ts'
import { type CallModelDeps, fixedTokens, OFFLINE } from '../model/call-model.ts'
import { completeReply } from '../model/complete-reply.ts'
import { windowOf } from '../model/endpoint-limits.ts'
import type { ModelReply, ReplyEnd } from '../model/model-reply.ts'
import { judgeFiles } from '../tools/answer-files.ts'
import { Repeats } from '../tools/repeats.ts'
import type { ToolExecutor, ToolResultPart } from '../tools/tool-call.ts'
import { runRound, type ToolRound } from '../tools/tool-round.ts'
import { allowedTools, callScopeOf } from '../turn/call-scope.ts'
import { type RecallDeps, recalledNote } from '../turn/recalled.ts'
import { situationNote } from '../turn/situation.ts'
import type { LiveTurn, TurnScope } from '../turn/turn-scope.ts'
import { standingOfTurn } from '../turn/turn-standing.ts'
import { restoreTurn } from './restore-turn.ts'
import { systemPrompt } from './system-prompt.ts'

export interface LoopDeps extends SummarizeDeps, RecallDeps, Pick<CallModelDeps, 'toolSpecs' | 'tokenRatios' | 'refusedFiles'> {
  readonly tools: ToolExecutor
  /** Returns where and by whom the message of a turn was written, in a few words. Absent: the model gets no situation. */
  readonly placeOf?: ((turn: Pick<LiveTurn, 'source' | 'session' | 'owner' | 'limited'>) => string) | undefined
  /** Reads the identity files of an agent for its system prompt; empty for none. */
  readonly identityOf?: ((agent: string) => Promise<string>) | undefined
  readonly turns: Pick<TurnStore, 'checkpoint'>
}

export interface LoopResult {
  readonly text: string
  readonly finishReason: FinishReason
  /** The messages that the turn adds to its session: the message of the person, tool calls with results, the answer. */
  readonly messages: readonly ModelMessage[]
  /** The files that the text marks; absent for none. */
  readonly files?: readonly MarkedFile[]
}

/**
 * Runs the turn to its answer. A stored turn writes a checkpoint before each call with effects and after each round of results, and
 * resumes at its last checkpoint, also in the middle of a round.
 */
export async function runLoop(deps: LoopDeps, scope: TurnScope, begun: Conversation): Promise<LoopResult> {
  const { turn, agent, progress } = scope
  let conversation = begun
  const system: ModelMessage = {
    role: 'system',
    content: systemPrompt(scope.registry, agent, {
      identity: (await deps.identityOf?.(turn.agent)) ?? '',
      tools: allowedTools({ limits: scope.limits, tools: turn.tools }),
    }),
  }
  progress.fixedTokens = await fixedTokens(deps, scope, system.content)
  const { messages: before, open } = restoreTurn(turn.checkpoint)
  const produced: ModelMessage[] = before.length > 0 ? before : [await askedMessage(deps, scope, begun.messages)]
  const promptWith =
    (...last: ModelMessage[]) =>
    (tokensMax: number): ModelMessage[] => [
      system,
      ...fitConversation(conversation, [...produced, ...last], {
        messagesMax: windowOf(scope).messagesMax,
        tokensMax,
        mustFit: progress.shortened !== undefined,
      }),
    ]

  const reader = writerOfTurn(turn)
  const showsAddresses = (name: string) => scope.registry.tools.get(name)?.showsAddresses === true
  const callScope = callScopeOf(
    scope,
    () => sourcesIn(conversation, produced, reader),
    (address) =>
      isShown(address, { messages: conversation.messages.filter((message) => !isOfLower(message, reader)) }, produced, showsAddresses),
    (path) => [conversation.messages, produced].some((messages) => messages.some((message) => namesAttachment(message, path))),
  )
  const repeats = new Repeats()
  countCalls(open ? before.slice(0, -1) : before, repeats)
  progress.iterations += before.filter(({ role }) => role === 'assistant').length
  const runCalls = async (round: ToolRound) => {
    await turn.keep?.()
    const keep =
      turn.kept && ((results: readonly ToolResultPart[]) => deps.turns.checkpoint(turn.id, [...produced, ...toolMessage(results)]))
    const results = await runRound({ tools: deps.tools, scope: callScope, repeats, round: progress.iterations, keep }, round)
    produced.push(...toolMessage(results))
    if (turn.kept) await deps.turns.checkpoint(turn.id, produced)
  }

  /** The text of the replies that the provider has paused since the last tool call. */
  let paused = ''
  /** Whether there is work that a failure of the turn would lose to the conversation. */
  const hasWorked = () => paused !== '' || produced.some(({ role }) => role === 'tool')
  const ended = async (text: string, { finish }: ModelReply): Promise<LoopResult> => {
    const { finishReason, note: cut = '' } = FINISHES[finish] ?? { finishReason: 'stop' as const }
    const note = `${cut}${progress.shortened?.isCut ? SHORTENED : ''}`
    if (note) turn.tell?.({ type: 'text', delta: note })
    const answer = `${paused}${text}${note}`
    if (turn.maySilent && answer.trim().toLowerCase() === SILENCE)
      return { text: '', finishReason: 'silent', messages: storedMessages(produced, []) }
    const files = await judgeFiles(deps.tools, callScope, { text: answer, messages: conversation.messages, produced })
    return { text: answer, finishReason, messages: storedMessages(produced, files), files }
  }

  const compact = async (isRefused: boolean): Promise<boolean> => {
    const keep = async () => void (turn.kept && (await deps.turns.checkpoint(turn.id, produced)))
    const room = await makeRoom(deps, scope, { conversation, produced, isRefused, keep })
    conversation = room.conversation
    if (room.isShorter) repeats.reset()
    return room.isShorter
  }
  if (open) await runCalls(open)
  for (;;) {
    if (paused === '' && limitReached(scope) === undefined) await hear(deps, scope, begun.messages, produced)
    await compact(false)
    const limit = limitReached(scope)
    if (limit !== undefined) {
      const reply = await deps.askModel(scope, {
        prompt: promptWith(finalAnswerRequest(limit)),
        compact: () => compact(true),
        mayCallTools: false,
        mayBeEmpty: hasWorked(),
      })
      const isSilent = `${paused}${reply.text}`.trim() === ''
      const text = isSilent ? `The turn was stopped: ${limit}. ${GO_ON}` : reply.text
      if (isSilent) turn.tell?.({ type: 'text', delta: text })
      produced.push({ role: 'assistant', content: [{ type: 'text', text }] })
      return ended(text, reply)
    }
    const ask = (...last: ModelMessage[]) =>
      deps.askModel(scope, { prompt: promptWith(...last), compact: () => compact(true), mayCallTools: true, mayBeEmpty: hasWorked() })
    const reply = await completeReply(scope, await ask(), ask, () => limitReached(scope) === undefined)
    if (reply.finish !== 'paused' && reply.calls.length === 0 && `${paused}${reply.text}`.trim() === '') {
      if (turn.maySilent) return { text: '', finishReason: 'silent', messages: storedMessages(produced, []) }
      turn.tell?.({ type: 'text', delta: NO_ANSWER })
      produced.push({ role: 'assistant', content: [{ type: 'text', text: NO_ANSWER }] })
      return ended(NO_ANSWER, reply)
    }
    if (reply.content.length > 0) produced.push({ role: 'assistant', content: reply.content })
    if (reply.calls.length > 0) {
      paused = ''
      await runCalls({ calls: reply.calls, results: [] })
    } else if (reply.finish === 'paused') paused += reply.text
    else return ended(reply.text, reply)
  }
}

/** The message of the person, with its situation and the memories that fit it. The built-in model needs neither. */
async function askedMessage(deps: LoopDeps, scope: TurnScope, before: readonly ModelMessage[]): Promise<ModelMessage> {
  const { turn } = scope
  const message = personMessage(deps, scope, { text: turn.text, atMs: turn.createdAtMs, before })
  if (!hasSituation(deps, scope)) return message
  const recalled = await recalledNote(deps, scope, before)
  return recalled === undefined ? message : withNote(message, { recalled })
}

const hasSituation = ({ placeOf }: LoopDeps, { registry, progress }: TurnScope): boolean =>
  placeOf !== undefined && registry.models.labels[progress.entry]?.provider !== OFFLINE

interface Written {
  readonly text: string
  readonly atMs: number
  readonly before: readonly ModelMessage[]
}

/** Returns the message of the person, with its situation. */
function personMessage(deps: LoopDeps, scope: TurnScope, { text, atMs, before }: Written): ModelMessage {
  const { placeOf } = deps
  const { turn, agent } = scope
  const isInRoom = sharedRoom(turn.session) !== undefined
  const plain: ModelMessage = { role: 'user', content: [{ type: 'text', text }] }
  const message = isInRoom ? withNote(plain, { writer: writerOfTurn(turn) }) : plain
  if (!placeOf || !hasSituation(deps, scope)) return message
  // In a room each message names its writer.
  const place = `${placeOf(turn)}${turn.maySilent ? MAY_SILENT : ''}`
  return withNote(message, situationNote({ place, atMs, zone: agent.timezone, before: isInRoom ? [] : before }))
}

/** Adds what the person has written since to the messages of the turn, in the commit that ends the messages of the person. */
async function hear(deps: LoopDeps, scope: TurnScope, before: readonly ModelMessage[], produced: ModelMessage[]): Promise<void> {
  const { turn } = scope
  const words = await turn.delivery?.furtherWords?.()
  if (!words) return
  const { text, atMs } = words
  const last = produced.at(-1)
  // Some models refuse two messages of a person in a row.
  const next: ModelMessage[] =
    last?.role === 'user'
      ? [...produced.slice(0, -1), { ...last, content: [...last.content, { type: 'text', text: `\n${text}` }] }]
      : [...produced, personMessage(deps, scope, { text, atMs, before: [...before, ...produced] })]
  if (!(await words.take(next))) return
  produced.splice(0, produced.length, ...next)
  turn.text = `${turn.text}\n${text}`
  turn.superseded = words.superseded()
}

const writerOfTurn = (turn: LiveTurn): Writer => ({
  client: turn.limited?.client ?? turn.caller ?? turn.owner ?? '',
  standing: standingOfTurn(turn),
})

/** The ends of a reply that its reader must know of. A reply of any other end is complete. */
const FINISHES: Partial<Record<ReplyEnd, { readonly finishReason: FinishReason; readonly note: string }>> = {
  length: { finishReason: 'length', note: '\n\n[The answer is cut off: the model has used up its output tokens.]' },
  'content-filter': { finishReason: 'content_filter', note: '\n\n[The answer is cut off by the content filter of the provider.]' },
  refused: { finishReason: 'refusal', note: '\n\n[The model declined to answer further.]' },
}

/** The answer of a model that sends nothing. */
const SILENCE = '(silent)'
const MAY_SILENT = `; if nothing needs to be said, answer only ${SILENCE}`

const SHORTENED = '\n\n[A part of this conversation did not fit into the window of the model and was left out.]'

/** Counts the calls of rounds before an interruption, so that the limits apply to the whole turn. */
function countCalls(messages: readonly ModelMessage[], repeats: Repeats): void {
  for (const message of messages) {
    if (message.role !== 'assistant') continue
    for (const part of message.content) {
      if (part.type === 'tool-call' && !part.providerExecuted) repeats.count(part.toolName, part.input ?? null)
    }
  }
}

const toolMessage = (results: readonly ToolResultPart[]): ModelMessage[] =>
  results.length > 0 ? [{ role: 'tool', content: [...results] }] : []

/** The part of the time of a turn that is left for its last answer: a tenth, and at most a minute. */
const LAST_ANSWER_SHARE_MS = 100
const LAST_ANSWER_MS = 60_000

/** Returns why the turn may not continue, as the end of a sentence. */
function limitReached({ turnLimits: { steps, tokens, turnSecs }, progress, leftMs }: TurnScope): string | undefined {
  if (progress.iterations >= steps) return `all ${steps} steps of this turn are used up`
  if (progress.turnTokens >= tokens) return `all ${tokens} tokens of this turn are used up`
  if (leftMs() <= Math.min(LAST_ANSWER_MS, turnSecs * LAST_ANSWER_SHARE_MS)) return `the ${turnSecs} s of this turn are used up`
  return undefined
}

/** A person who continues begins a turn with limits of its own. */
const GO_ON = 'A message such as "continue" goes on from here.'

const NO_ANSWER = `The model ended its work without an answer, also when it was asked again. ${GO_ON}`

const finalAnswerRequest = (limit: string): ModelMessage => ({
  role: 'user',
  content: [
    {
      type: 'text',
      text: `(No more tools can be called: ${limit}. Answer now with what you have found and done, and say what is left to do. ${GO_ON})`,
    },
  ],
})
