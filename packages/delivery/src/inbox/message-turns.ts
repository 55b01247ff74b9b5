/** Runs the turn of a message: shows progress to its sender, puts the text for the model together, and commits the replies with the end. */
import { type FurtherWords, type LimitedClient, newTurnId, notConfigured } from '@sluice/agent'
import { type Attempt, type JobOutcome, signalScope } from '@sluice/kit'
import {
  AppError,
  agentOfSession,
  type Channel,
  channelOwner,
  fileOwner,
  formatTraceContext,
  type Inbound,
  isLeaseLost,
  type OwnedStore,
  replyLane,
  type StartedMessage,
  senderKey,
  shardOfConversation,
  type Trace,
} from '@sluice/sdk'
import type { OwnedRow, QueuedReply } from '../delivery-queue.ts'
import { watchAttempt } from '../observe.ts'
import { type Draft, openDraft } from '../outbox/draft.ts'
import { repliesOf } from '../outbox/replies-of.ts'
import { loadReplyParts, type ReplyParts } from '../outbox/reply-parts.ts'
import { startTyping } from '../outbox/typing.ts'
import { acknowledge } from './acknowledge.ts'
import type { ArrivedMessages } from './arrived-messages.ts'
import type { Attempts } from './attempts.ts'
import { type FilesRead, filesReadOf } from './files-read.ts'
import { lateChanges } from './late-changes.ts'
import { PIECES_MAX, type PiecesOptions, piecesSince, wholeAlbums } from './pieces.ts'
import { resetIfDue } from './reset.ts'
import { roomText } from './room-text.ts'
import { isReadByOthers, mayBeSilent, type Room, toolsOf } from './rooms.ts'
import type { RunningTurns } from './running-turns.ts'
import { chosenModel, isMuted } from './session-settings.ts'
import { hasWords, withStoredQuote } from './stored-quotes.ts'
import { textForModel } from './text-for-model.ts'
import type { InboxWorkerOptions } from './worker-options.ts'

/** A message whose turn begins. */
export interface Beginning {
  readonly channel: Channel
  readonly message: Inbound
  /** The messages that have joined it just now, without the first one. */
  readonly pieces: readonly Inbound[]
  /** The sender. */
  readonly client: LimitedClient
  readonly attempt: Attempt
  /** Undefined for a direct chat. */
  readonly room: Room | undefined
}

interface Turn extends Omit<Beginning, 'message' | 'pieces'> {
  /** Whether the turn may end without an answer. */
  readonly maySilent: boolean
  readonly owned: OwnedStore
  readonly started: StartedMessage
  readonly partsOf: ReplyParts
  readonly draft: Draft | undefined
  readonly trace: Trace
  readonly onWait: (isWaiting: boolean) => void
  /** Called when the agent has got the turn. */
  readonly onId: () => void
  readonly turnId: string
  /** Aborts when the sender begins a new conversation, interrupts the turn, or stops it before the agent has got it. */
  readonly signal: AbortSignal
}

interface Preparing extends Pick<Turn, 'owned' | 'started' | 'channel' | 'room' | 'turnId'>, Pick<Beginning, 'pieces'> {}

/** A running turn that reads what its person writes meanwhile. */
interface Steered extends Pick<Turn, 'owned' | 'channel' | 'client' | 'started' | 'attempt' | 'turnId' | 'room' | 'maySilent'> {
  /** The model that was chosen for the turn; undefined for the first configured one. */
  readonly model: string | undefined
  textOf(message: Inbound): Promise<string>
}

export interface MessageTurnParts {
  readonly attempts: Attempts
  readonly running: RunningTurns
  readonly arrived: ArrivedMessages
  /** How what a person writes meanwhile joins the turn. */
  readonly joining: PiecesOptions
}

export class MessageTurns {
  readonly #options: InboxWorkerOptions
  readonly #parts: MessageTurnParts

  constructor(options: InboxWorkerOptions, parts: MessageTurnParts) {
    this.#options = options
    this.#parts = parts
  }

  /** Runs the turn of a message. */
  async run({ owned, number, lane }: OwnedRow, { channel, message, pieces, client, attempt, room }: Beginning): Promise<JobOutcome> {
    const { clock, onReplies, stopping } = this.#options
    const { attempts, running: turns } = this.#parts
    await turns.open(lane)
    const turnId = newTurnId(clock.nowMs())
    const started = await attempts.start(owned, { number, message, lane }, turnId)
    if (!started) return 'done'
    const withdrawn = await attempts.endWithdrawn(owned, number)
    if (withdrawn) return withdrawn
    const running = turns.begin(lane, { turnId: started.turnId, number, sender: message.sender })
    const { signal } = running
    let isStopped = false
    const prepared = await this.#prepare({ owned, started, channel, pieces, room, turnId }).catch((error: unknown) => {
      running.ended(isStopped)
      throw error
    })
    const { trace, ended, maySilent, partsOf, draft, typing } = prepared
    try {
      const replies = await this.#answer({
        owned,
        channel,
        started,
        client,
        attempt,
        partsOf,
        draft,
        trace,
        turnId,
        onWait: typing.pause,
        onId: running.isWithAgent,
        signal,
        room,
        maySilent,
      })
      ended('ok')
      await draft?.stop()
      onReplies(replies)
      return 'done'
    } catch (error) {
      await draft?.stop()
      // A turn that was stopped ends, whatever its sender writes before or after that.
      if (running.isInterrupted() && !attempts.stopped.has(started.turnId) && !stopping.aborted && !isLeaseLost(error)) {
        ended('aborted')
        await owned.inbox.release(number)
        return { retryAtMs: clock.nowMs() }
      }
      if (!stopping.aborted) ended('error')
      isStopped = signal.aborted
      if (isStopped && !attempts.stopped.has(started.turnId)) attempts.stopped.set(started.turnId, undefined)
      return await attempts.failed(owned, started, error, draft?.id)
    } finally {
      running.ended(isStopped)
      typing.stop()
    }
  }

  /** Begins a new conversation where one is due, and shows the sender that the turn begins. */
  async #prepare({ owned, started, channel, pieces, room, turnId }: Preparing) {
    const { approvals, clock, features, log, stopping, telemetry } = this.#options
    const { message, number } = started
    // A turn that was begun before goes on with the conversation that it has read.
    if (started.checkpoint.length === 0) {
      const reset = features.reset(channel.name, agentOfSession(started.session))
      const isAsking = () => approvals.isAsking(channel, message)
      if (await resetIfDue({ clock, reset, isAsking }, owned, started)) await features.endCommands(started.session)
    }
    const { trace, ended } = watchAttempt(this.#options, { channel: channel.name, direction: 'inbound', number }, started.trace)
    const maySilent = mayBeSilent(channel, message, room)
    for (const said of maySilent ? [] : [message, ...pieces])
      void telemetry.within(trace, () =>
        acknowledge({ owned, channel, started: { ...started, message: said }, turnId, log, signal: stopping }),
      )
    const partsOf = await loadReplyParts(channel)
    const drafting = { ...this.#options, owned, channel, started, partsOf, signal: stopping }
    const draft = maySilent ? undefined : await telemetry.within(trace, () => openDraft(drafting))
    const shown = draft?.renew ? { typing: draft.renew } : channel
    const typing = maySilent ? NO_TYPING : startTyping({ channel: shown, to: message.to, clock, lease: owned.lease })
    return { trace, ended, maySilent, partsOf, draft, typing }
  }

  /** Runs the turn inside the permit of the job. Resolves to its replies, which are in the outbox by then. */
  async #answer({
    owned,
    channel,
    started,
    client,
    attempt,
    partsOf,
    draft,
    trace,
    turnId: newId,
    onWait,
    onId,
    signal,
    room,
    maySilent,
  }: Turn): Promise<readonly QueuedReply[]> {
    const { clock, features, limits, log, stopping, telemetry, turns } = this.#options
    const { number, account, message, turnId, attempts, receivedAtMs, checkpoint } = started
    const caller = senderKey(channel.name, message)
    const agent = agentOfSession(started.session)
    const workspace = features.workspace(agent)
    if (!workspace) throw new AppError('unavailable', notConfigured(agent))
    const owner = fileOwner(started.session, caller)
    const keep = { owner, ...limits.shares.ofFiles(client, owner) }
    using reading = signalScope([stopping, signal])
    const transcribe = features.transcribe()
    const media = { channel, standing: client.standing, workspace, keep, transcribe, log, clock, signal: reading.signal }
    const isInHistory = (words: string): Promise<boolean> => hasWords(owned, started.session, words)
    const isResumed = checkpoint.length > 0
    const reader = { channel: channel.name, sender: message.sender, standing: client.standing, turnId, isResumed }
    const late = await lateChanges(owned, started.session, reader)
    const textOf = async (said: Inbound, filesRead?: FilesRead): Promise<string> => {
      const asked = await withStoredQuote(features.channels(), owned, { ...started, message: said })
      return telemetry.within(trace, () => textForModel(asked, { ...media, isInHistory, ...(filesRead && { filesRead }) }))
    }
    const { overheard } = this.#options
    const about = { owned, overheard, channel, session: started.session, writer: client, language: room?.rule.language }
    const around = await roomText({ ...about, turn: { turnId, atMs: receivedAtMs, isResumed } })
    const text = `${late.text}${around}${await textOf(message, filesReadOf(owned, started, { clock, workspace }))}`
    const tools = room && toolsOf(room)
    const isSteered = features.pacing(channel.name).steering !== 'queue'
    const model = await this.#modelFor(owned, started.session)
    const { replies } = await turns.agent.run({
      source: channel.name,
      ...(model !== undefined && { model }),
      session: started.session,
      text,
      client: turns.clients.ofCaller(caller),
      owner: channelOwner(channel.name),
      caller,
      limited: client,
      ...(tools && { tools }),
      ...(maySilent && { maySilent }),
      trace,
      isInRoom: isReadByOthers(message),
      permit: attempt.permit,
      onId,
      signal,
      ...(attempt.superseded && { superseded: attempt.superseded }),
      onWait,
      ...(draft && { listen: draft.onPart }),
      delivery: {
        owned,
        turnId,
        inbox: number,
        attempts,
        receivedAtMs,
        checkpoint,
        ...(isSteered && {
          furtherWords: this.#furtherWords({ owned, channel, client, started, attempt, turnId: newId, room, maySilent, model, textOf }),
        }),
        reply: (said, files, span) =>
          repliesOf(said, files, {
            channel,
            started,
            nowMs: clock.nowMs(),
            partsOf,
            draft: draft?.id,
            trace: telemetry.traces() ? formatTraceContext(span) : undefined,
          }),
      },
    })
    // The turn has ended, and the next one drops what is left.
    await Promise.all([late.told(), overheard.drop(started.session, turnId)]).catch((error: unknown) =>
      log.warn('what the turn has read is left to the next one to drop', { channel: channel.name, inbox: number, error }),
    )
    const address = { channel: channel.name, account, to: message.to }
    const row = { channel: channel.name, account, lane: replyLane(address), shard: shardOfConversation(address), atMs: 0, interruptions: 0 }
    return replies.map((reply) => ({ ...row, number: reply }))
  }

  /** Resolves to the model that `/model` chose; undefined where none was chosen. */
  async #modelFor(owned: OwnedStore, session: string): Promise<string | undefined> {
    const models = this.#options.features.models(agentOfSession(session))
    return models.length > 1 ? chosenModel(owned, session, models) : undefined
  }

  /** Returns the function that finds what the person of a turn has written since it began; see `TurnDelivery.furtherWords`. */
  #furtherWords({
    owned,
    channel,
    client,
    started,
    attempt,
    turnId,
    room,
    maySilent,
    model,
    textOf,
  }: Steered): () => Promise<FurtherWords | undefined> {
    const { clock, log, stopping } = this.#options
    const { arrived, attempts, joining } = this.#parts
    const { number, session, message } = started
    let left = PIECES_MAX
    return async () => {
      // A turn that was stopped takes nothing that was written after the command.
      if (attempt.superseded?.aborted !== true || attempts.stopped.has(started.turnId)) return undefined
      try {
        // What was written after `/mute` is not answered, and after `/model` by the other model.
        if (await isMuted(owned, session, client.standing, clock.nowMs())) return undefined
        if ((await this.#modelFor(owned, session)) !== model) return undefined
        const since = await piecesSince(joining, { owned, channel, number, session, message, hasOthers: true })
        const answered = since.pieces.findIndex((piece) => !mayBeSilent(channel, piece.message, room))
        // What needs an answer does not join a turn that may end without one: it has a turn of its own, also after a crash.
        const pieces = wholeAlbums(since, maySilent && answered >= 0 ? Math.min(answered, left) : left)
        const [first] = pieces
        if (!first) return undefined
        const texts: string[] = []
        for (const piece of pieces) texts.push(await textOf(piece.message))
        return {
          text: texts.join('\n'),
          atMs: first.receivedAtMs,
          take: async (messages) => {
            if (attempts.stopped.has(started.turnId)) return false
            const into = { turnId: started.turnId, messages }
            const isTaken = await owned.inbox.join({ number, into, pieces, atMs: clock.nowMs() })
            for (const piece of pieces) {
              if (!isTaken) arrived.delete(piece.number)
              else {
                joining.onTaken(piece.number)
                void acknowledge({ owned, channel, started: { ...started, message: piece.message }, turnId, log, signal: stopping })
              }
            }
            if (isTaken) left -= pieces.length
            return isTaken
          },
          superseded: () => attempt.renew(),
        }
      } catch (error) {
        if (isLeaseLost(error)) throw error
        log.warn('a message that came while a turn runs waits for the next turn', { channel: channel.name, inbox: number, error })
        return undefined
      }
    }
  }
}

const NO_TYPING: ReturnType<typeof startTyping> = { pause() {}, stop() {} }
