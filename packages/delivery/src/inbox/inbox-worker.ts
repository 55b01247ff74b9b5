/**
 * Processes the messages of the inbox by their kind: a reply to an approval decides it, a command or a change of an earlier message is
 * carried out, a procedure event starts procedures, and any other message is a turn whose reply is queued in the commit that ends the turn.
 */
import { type ExceededShare, type FurtherWords, type Held, type LimitedClient, newTurnId, notConfigured } from '@sluice/agent'
import { type Attempt, BoundedMap, type JobOutcome, LaneQueue } from '@sluice/kit'
import {
  AppError,
  agentOfSession,
  type Channel,
  channelOwner,
  errorText,
  fileOwner,
  formatTraceContext,
  gatewayText,
  hasWordsOfOthers,
  type Inbound,
  isLeaseLost,
  type KeptBytes,
  type MessageNews,
  type OwnedStore,
  quotedPart,
  replyLane,
  type SpentMessage,
  type StartedMessage,
  senderKey,
  shardOfConversation,
  sharedRoom,
  type Trace,
  type Waiting,
  type WaitingMessage,
  type Webhook,
  wordsOf,
} from '@sluice/sdk'
import { channelNamed, type DeliveryOptions } from '../delivery-options.ts'
import { DeliveryQueue, type OwnedRow, type QueuedReply, waitingReplies } from '../delivery-queue.ts'
import { watchAttempt } from '../observe.ts'
import { type Draft, openDraft } from '../outbox/draft.ts'
import { repliesOf } from '../outbox/replies-of.ts'
import { loadReplyParts, type ReplyParts } from '../outbox/reply-parts.ts'
import { awayDelayMs, retryDelayMs } from '../outbox/retry-delay.ts'
import { startTyping } from '../outbox/typing.ts'
import { acknowledge } from './acknowledge.ts'
import { admitMessage, clientOf, endBeyondShare } from './admit-message.ts'
import { ArrivedMessages } from './arrived-messages.ts'
import { holdBackOld } from './before-restore.ts'
import { EarlyChanges, lateChanges, runChange } from './changes.ts'
import { overtakes, runCommand } from './commands.ts'
import { noticeTo } from './notice.ts'
import type { Overheard } from './overheard.ts'
import { gatherPieces, isOwnMessage, PIECES_MAX, type PiecesOptions, piecesSince } from './pieces.ts'
import { fireProcedures } from './procedures.ts'
import { noSuchMessage, readMessage, withMessage } from './read-message.ts'
import { resetIfDue } from './reset.ts'
import { roomText } from './room-text.ts'
import { isInRoom, judgeInRoom, type Room, type Rooms, roomLimits } from './rooms.ts'
import { RunningTurns } from './running-turns.ts'
import { chosenModel, isMuted } from './session-settings.ts'
import { textForModel } from './text-for-model.ts'

export interface InboxWorkerOptions extends DeliveryOptions {
  readonly rooms: Pick<Rooms, 'at'>
  readonly overheard: Pick<Overheard, 'before' | 'drop'>
  /** Called for each message that needs no more work. */
  onDone(row: Waiting): void
  /** Called when a message that had ended waits again in the store. */
  onDue(): void
  /** Called with replies to send, once they are durable. */
  onReplies(replies: readonly QueuedReply[]): void
  /** Aborts when the daemon stops. */
  readonly stopping: AbortSignal
}

/** The number of replies to approvals, commands and changes that are processed at the same time. */
const BESIDE_TURNS_MAX = 4
const STOPPED_MAX = 1000
/** A message whose channel is absent, or that a stop interrupts, is checked again after this time. */
const ABSENT_DELAY_MS = 5000
const HOUR_MS = 3_600_000
/** The messages of a conversation in which the words of a quote are looked for. */
const HISTORY_MAX = 50

/** A message that its channel did not find in its request. The reason is null if it has been reported. */
interface Unreadable {
  readonly unreadable: string | null
  readonly receivedAtMs: number
}

/** A message that begins an attempt. */
interface Starting {
  readonly number: number
  readonly message: Inbound
  /** Its session, or what stands in its place. */
  readonly lane: string
}

/** A message whose sender is told something. */
interface Told extends Omit<Starting, 'number'> {
  readonly channel: string
}

/** A message whose reply was shown while it was written. */
type Drafted = Pick<StartedMessage, 'channel' | 'account' | 'message' | 'turnId' | 'trace'>

/** A message whose turn begins. */
interface Beginning {
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
  readonly turnId: string
  /** Aborts when the sender begins a new conversation, or interrupts the turn. */
  readonly signal: AbortSignal
}

/** A running turn that reads what its person writes meanwhile. */
interface Steered extends Pick<Turn, 'owned' | 'channel' | 'started' | 'attempt' | 'turnId'> {
  textOf(message: Inbound): Promise<string>
}

export class InboxWorker {
  readonly #options: InboxWorkerOptions
  /** Turns and procedure events, in the lanes that all turns share. */
  readonly #messages: DeliveryQueue
  /** Replies to approvals, changes and most commands have permits of their own, because the turns that hold the others may wait for them. */
  readonly #besideTurns: DeliveryQueue
  /** The turns that their senders stopped and that have not ended. One that ends in another process is dropped at last. */
  readonly #stopped = new BoundedMap<string, true>(STOPPED_MAX)

  readonly #running: RunningTurns
  /** The messages that count for the waiting turns of their senders, until their turns begin. */
  readonly #waiting = new Map<number, Held>()
  /** The messages that their senders' shares have no room for, which end as `limited`. */
  readonly #beyond = new Map<number, ExceededShare>()
  readonly #earlyChanges = new EarlyChanges()
  readonly #arrived = new ArrivedMessages()
  /** The webhook that found no message in the request of a row. Another one, such as after a reload, is tried again. */
  readonly #unreadable = new WeakMap<OwnedRow, { readonly webhook: Webhook | undefined; readonly receivedAtMs: number }>()

  readonly #pieces: PiecesOptions

  constructor(options: InboxWorkerOptions) {
    const { clock, features, log, turns } = options
    const onDone = (row: Waiting): void => {
      this.#arrived.delete(row.number)
      this.#beyond.delete(row.number)
      this.#endWait(row.number)
      options.onDone(row)
    }
    const work = (row: OwnedRow, attempt: Attempt): Promise<JobOutcome> => this.#work(row, attempt)
    const lanes = new LaneQueue({ clock, permits: () => BESIDE_TURNS_MAX })
    this.#options = options
    this.#running = new RunningTurns({ clock, stopping: options.stopping })
    this.#pieces = {
      clock,
      channels: features.channels,
      batchMs: (channel) => features.pacing(channel).batchMs,
      known: (number) => this.#arrived.get(number),
      onRead: (number, message) => this.#arrived.add(number, message),
      onTaken: (number) => void this.#messages.end(number, async () => {}),
      onChanged: (number, message) => {
        this.#arrived.delete(number)
        this.#arrived.add(number, message)
      },
      onStale: (number) => this.#arrived.delete(number),
    }
    this.#messages = new DeliveryQueue({ lanes: turns.lanes, clock, log, onDone, work })
    this.#besideTurns = new DeliveryQueue({ lanes, clock, log, onDone, work })
  }

  /** The number of messages that run or wait. */
  get size(): number {
    return this.#messages.size + this.#besideTurns.size
  }

  /** How long the oldest message has been in the queue. */
  get oldestMs(): number {
    return Math.max(this.#messages.oldestMs, this.#besideTurns.oldestMs)
  }

  /** Whether a change may wait for its message, which has not arrived. */
  get takesEarlyChanges(): boolean {
    return !this.#earlyChanges.isFull
  }

  /** How long a turn of the account with this key has been ready to start. */
  readyMs(account: string): number {
    return this.#messages.readyMs(account)
  }

  /**
   * Returns false for a message that is already in the queue, and once the worker is stopped. `message` is given when it has just been
   * parsed. A message that `isNew` ends as `limited` when too many messages of its sender wait.
   */
  enter(row: WaitingMessage, owned: OwnedStore, message?: Inbound, isNew = message !== undefined): boolean {
    if (this.has(row.number)) return false
    const isBesideTurns = row.kind === 'approval_reply' || row.kind === 'change' || (row.kind === 'command' && overtakes(row.lane))
    // The attempt may begin before `enter` returns.
    if (message) this.#arrived.add(row.number, message)
    const hasEntered = isBesideTurns ? this.#besideTurns.enter(row, owned) : this.#enterTurn(row, owned, { message, isNew })
    if (!hasEntered) this.#arrived.delete(row.number)
    else if (message && isNew && row.kind === 'turn') {
      this.#remind(row, owned, message)
      if (this.#options.features.pacing(row.channel).steering === 'interrupt' && this.#messages.has(row.number))
        void this.#interrupt(row, owned, message)
    }
    return hasEntered
  }

  /** Tells the sender of a message about the question that waits in the conversation, because the message waits behind it. */
  #remind(row: WaitingMessage, owned: OwnedStore, message: Inbound): void {
    const { approvals, clock, features, log, onReplies } = this.#options
    const channel = channelNamed(features, row.channel)
    const hint = channel && !message.unverified ? approvals.hint(channel, message) : undefined
    if (!channel || !hint) return
    const tell = async (): Promise<void> => {
      const text = await hint
      if (text === undefined || text.trim() === '') return
      const notice = [noticeTo(channel, message, text, clock.nowMs())]
      onReplies(waitingReplies(notice, await owned.outbox.add(notice)))
    }
    tell().catch((error: unknown) => log.warn('reminder of an open question not sent', { channel: row.channel, error }))
  }

  /** Interrupts the turn of the sender. What would not be answered does not, nor what Sluice itself sends in the name of a person. */
  async #interrupt({ channel, lane, number, sender }: WaitingMessage, owned: OwnedStore, message: Inbound): Promise<void> {
    const { clock, features, log } = this.#options
    const from = channelNamed(features, channel)
    if (!from || !this.#running.mayInterrupt(lane, sender)) return
    try {
      const { standing } = await this.#principalOf(from, message)
      const own = (await owned.inbox.ofSession(lane)).find((one) => one.number === number)
      if (!own || isOwnMessage(own) || (await isMuted(owned, lane, standing, clock.nowMs()))) return
      this.#running.interrupt(lane, sender)
    } catch (error) {
      if (!isLeaseLost(error)) log.warn('a message waits for the next step of the turn', { channel, inbox: number, error })
    }
  }

  has(number: number): boolean {
    return this.#messages.has(number) || this.#besideTurns.has(number)
  }

  #enterTurn(row: WaitingMessage, owned: OwnedStore, { message, isNew }: { message: Inbound | undefined; isNew: boolean }): boolean {
    const { shares } = this.#options.limits
    const client = this.#clientOf(row, message)
    const { sender: writer } = row
    if (!client) return this.#messages.enter(row, owned, { writer })
    const bytes = message?.text.length ?? 0
    const mayEnd = isNew && (row.kind === 'turn' || row.kind === 'procedure_event')
    const exceeded = mayEnd ? shares.exceededBy(client, bytes) : undefined
    if (exceeded) {
      this.#beyond.set(row.number, exceeded)
      const hasEntered = this.#besideTurns.enter(row, owned)
      if (!hasEntered) this.#beyond.delete(row.number)
      return hasEntered
    }
    this.#waiting.set(row.number, shares.countWaiting(client, bytes))
    const hasEntered = this.#messages.enter(row, owned, {
      isPrior: client.standing === 'operator',
      sharing: shares.runningOf(client),
      writer,
    })
    if (!hasEntered) this.#endWait(row.number)
    return hasEntered
  }

  #clientOf(row: WaitingMessage, message: Inbound | undefined): LimitedClient | undefined {
    const { features, limits, people } = this.#options
    const channel = channelNamed(features, row.channel)
    // Only the message says whether it proves its sender. Until it is read, nobody goes first as an operator.
    const client = channel && (message ? clientOf(channel, message, limits.operators(channel.name)) : clientOf(channel, row, []))
    return client && people.principal(client)
  }

  /** Resolves to the sender of a message, with the person of linked accounts. */
  async #principalOf(channel: Channel, message: Inbound): Promise<LimitedClient> {
    const { limits, people } = this.#options
    await people.refresh()
    return people.principal(clientOf(channel, message, limits.operators(channel.name)))
  }

  #endWait(number: number): void {
    this.#waiting.get(number)?.release()
    this.#waiting.delete(number)
  }

  /** Removes the messages under a lost lease. Attempts under way end without effect. */
  drop(owned: OwnedStore): void {
    for (const queue of [this.#messages, this.#besideTurns]) queue.drop(owned)
  }

  /** Resolves once no attempt under this lease is under way. */
  async idle(owned: OwnedStore): Promise<void> {
    await Promise.all([this.#messages.idle(owned), this.#besideTurns.idle(owned)])
  }

  /** Starts no more messages. Resolves once the attempts under way have ended. */
  async stop(): Promise<void> {
    await Promise.all([this.#messages.stop(), this.#besideTurns.stop()])
  }

  async #work(row: OwnedRow, attempt: Attempt): Promise<JobOutcome> {
    const { number, channel: name, kind, lane, owned } = row
    const { clock, features, stopping, restoredAtMs } = this.#options
    const nowMs = clock.nowMs()
    const later = { retryAtMs: nowMs + ABSENT_DELAY_MS }
    if (stopping.aborted) return later
    const channel = channelNamed(features, name)
    const found = this.#arrived.get(number) ?? (await this.#read(row, channel))
    if (!found) return 'done'
    if ('unreadable' in found) return channel ? this.#unreadableOutcome(row, found) : later
    if (kind === 'change') return this.#change(owned, number, found)
    if (restoredAtMs !== undefined && (await holdBackOld(owned, number, found, { restoredAtMs, nowMs }))) return 'done'
    if (kind === 'approval_reply') return this.#approvalReply(owned, row, found)
    if (!channel) return later
    if (kind === 'command') return this.#command(row, channel, found, attempt)
    const hasOthers = attempt.superseded?.aborted === true
    const gathered = this.#beyond.has(number)
      ? { message: found, pieces: [] }
      : await gatherPieces(this.#pieces, { owned, channel, number, session: lane, kind, message: found, hasOthers })
    if ('retryAtMs' in gathered) return gathered
    const { message, pieces } = gathered
    const admitting = { ...this.#options, ...this.#options.limits, texts: features.texts() }
    // Each attempt judges the sender once, by the allowlists of now.
    const room = await this.#roomOf(channel, message, lane)
    const client = { ...(await this.#principalOf(channel, message)), ...(room && roomLimits(room)) }
    const asking = { owned, channel, number, message, client, session: lane, waiting: this.#messages.size }
    const beyond = this.#beyond.get(number)
    if (beyond) return endBeyondShare(admitting, asking, beyond)
    if (kind !== 'procedure_event' && (await isMuted(owned, lane, client.standing, nowMs))) {
      await owned.inbox.done(number, nowMs)
      return 'done'
    }
    for (const early of this.#earlyChanges.of(lane)) await this.#earlyChange(owned, early)
    const held = await admitMessage(admitting, asking)
    if (held) return held
    this.#endWait(number)
    // A message without a kind is classified now.
    const procedures = kind === 'turn' ? undefined : features.procedures()
    const ageMsMax = features.config().max_age_hours * HOUR_MS
    const taken = await fireProcedures({ ...this.#options, store: owned, procedures, nowMs, ageMsMax }, channel, number, message, client)
    if (taken) return taken === true ? 'done' : taken
    return this.#turn(row, { channel, message, pieces, client, attempt, room })
  }

  /** Resolves to undefined for a direct chat. A reminder in a room says nothing about how it is addressed. */
  async #roomOf({ name }: Channel, message: Inbound, session: string): Promise<Room | undefined> {
    if (!isInRoom(message) && !isReminder(message) && !sharedRoom(session)) return undefined
    return this.#options.rooms.at({ channel: name, account: message.account, conversation: message.to.to })
  }

  /** Reads a message that is not in memory. Resolves to undefined if it has ended. */
  async #read(row: OwnedRow, channel: Channel | undefined): Promise<Inbound | Unreadable | undefined> {
    const known = this.#unreadable.get(row)
    if (known && known.webhook === channel?.webhook) return { unreadable: null, receivedAtMs: known.receivedAtMs }
    const entry = await row.owned.inbox.get(row.number)
    if (!entry || entry.endedAtMs !== null) return undefined
    const read = await readMessage(channel, entry)
    if ('message' in read) {
      // Kept at once, so that a change of the message that comes later removes it again.
      this.#arrived.add(row.number, read.message)
      return read.message
    }
    if (channel) this.#unreadable.set(row, { webhook: channel.webhook, receivedAtMs: entry.receivedAtMs })
    return { ...read, receivedAtMs: entry.receivedAtMs }
  }

  /** A message that its channel does not find in its request any more waits for another configuration, and is given up at last. */
  async #unreadableOutcome({ number, channel, owned, interruptions }: OwnedRow, found: Unreadable): Promise<JobOutcome> {
    const { clock, features, log } = this.#options
    const { unreadable, receivedAtMs } = found
    const nowMs = clock.nowMs()
    if (nowMs - receivedAtMs >= features.config().max_age_hours * HOUR_MS) {
      const error = unreadable ?? noSuchMessage(channel)
      return this.#giveUp(owned, { number, channel, attempts: interruptions }, { error })
    }
    if (unreadable !== null) log.error('stored message cannot be read', { channel, inbox: number, reason: unreadable })
    return { retryAtMs: nowMs + ABSENT_DELAY_MS }
  }

  #change(owned: OwnedStore, number: number, message: Inbound): Promise<JobOutcome> {
    const { clock, features } = this.#options
    const onChanged = (changed: number): void => this.#arrived.delete(changed)
    return runChange({ owned, nowMs: clock.nowMs(), early: this.#earlyChanges, channels: features.channels(), onChanged }, number, message)
  }

  async #earlyChange(owned: OwnedStore, number: number): Promise<void> {
    const entry = await owned.inbox.get(number)
    const message = this.#arrived.get(number) ?? (entry && (await withMessage(this.#options.features.channels(), entry)).message)
    if (message) await this.#change(owned, number, message)
  }

  /** Begins an attempt durably; `turnId` names the turn of a first attempt. Resolves to undefined if the message has ended, or crashes have interrupted all its attempts. */
  async #start(owned: OwnedStore, { number, message, lane }: Starting, turnId?: string): Promise<StartedMessage | undefined> {
    const { clock, features } = this.#options
    const started = await owned.inbox.start(number, turnId ?? newTurnId(clock.nowMs()), features.config().max_attempts, message)
    if (!started || !('spent' in started)) return started
    const { draft, turnId: ofTurn, attempts } = started
    // The edit of a draft tells the sender.
    const isTold = draft !== null && ofTurn !== null
    if (isTold) await this.#endDraft(owned, { ...started, message, turnId: ofTurn }, { draft, isStopped: false })
    const news = isTold ? undefined : this.#newsFor({ ...started, lane, message }, 'unanswered')
    await this.#giveUp(owned, started, { error: `it was started ${attempts} times and never reached its end`, news })
    return undefined
  }

  async #approvalReply(owned: OwnedStore, { number, lane }: OwnedRow, message: Inbound): Promise<JobOutcome> {
    const { approvals, clock, features, log, scrub } = this.#options
    const started = await this.#start(owned, { number, message, lane })
    if (!started) return 'done'
    try {
      await approvals.handleReply(started)
      return 'done'
    } catch (error) {
      log.error('reply to an approval failed', { inbox: number, error })
      const reason = scrub(errorText(error))
      if (started.attempts >= features.config().max_attempts)
        return this.#giveUp(owned, started, { error: reason, news: this.#newsFor({ ...started, lane }, 'unanswered') })
      const retryAtMs = clock.nowMs() + retryDelayMs(started.attempts)
      await owned.inbox.retry(number, { error: reason, atMs: retryAtMs })
      return { retryAtMs }
    }
  }

  async #command({ owned, number, lane }: OwnedRow, channel: Channel, message: Inbound, { permit }: Attempt): Promise<JobOutcome> {
    const { clock, features, limits, onDue, onReplies, people, store, turns } = this.#options
    const entry = await owned.inbox.get(number)
    if (!entry || entry.endedAtMs !== null) return 'done'
    const stop = async (turnId: string): Promise<boolean> => {
      // Set before the abort, because the turn may end at once.
      this.#stopped.set(turnId, true)
      const isAborted = await turns.agent.requestAbort(turnId)
      if (!isAborted) this.#stopped.delete(turnId)
      return isAborted
    }
    const giveUpWaiting = (waiting: number): Promise<boolean> =>
      this.#messages.end(waiting, async () => void (await owned.inbox.done(waiting, clock.nowMs())))
    const whileWaiting = async <T>(wait: () => Promise<T>): Promise<T> => {
      permit.release()
      try {
        return await wait()
      } finally {
        await permit.reacquire()
      }
    }
    const { models, endCommands } = features
    const client = await this.#principalOf(channel, message)
    const texts = features.texts()
    const room = await this.#roomOf(channel, message, lane)
    const limited = { ...client, ...(room && roomLimits(room)) }
    const asking = { owned, channel, number, message, client: limited, session: lane, waiting: this.#messages.size }
    const admit = (): Promise<JobOutcome | undefined> => admitMessage({ ...this.#options, ...limits, texts }, asking)
    return runCommand(
      {
        clock,
        texts,
        store,
        people,
        channels: features.channels,
        models,
        endCommands,
        stop,
        giveUpWaiting,
        admit,
        turns: this.#running,
        whileWaiting,
        onDue,
        onReplies,
      },
      { owned, channel, entry, message, client },
    )
  }

  async #turn({ owned, number, lane }: OwnedRow, { channel, message, pieces, client, attempt, room }: Beginning): Promise<JobOutcome> {
    const { clock, log, onReplies, stopping, telemetry } = this.#options
    await this.#running.open(lane)
    const turnId = newTurnId(clock.nowMs())
    const started = await this.#start(owned, { number, message, lane }, turnId)
    if (!started) return 'done'
    // A turn that was begun before goes on with the conversation that it has read.
    if (started.checkpoint.length === 0) {
      const { approvals, features } = this.#options
      const reset = features.reset(channel.name, agentOfSession(started.session))
      const isAsking = () => approvals.isAsking(channel, message)
      if (await resetIfDue({ clock, reset, isAsking }, owned, started.session)) await features.endCommands(started.session)
    }
    const { trace, ended } = watchAttempt(this.#options, { channel: channel.name, direction: 'inbound', number }, started.trace)
    const maySilent = mayBeSilent(channel, message, room)
    for (const said of maySilent ? [] : [started.message, ...pieces])
      void telemetry.within(trace, () =>
        acknowledge({ owned, channel, started: { ...started, message: said }, turnId, log, signal: stopping }),
      )
    const partsOf = await loadReplyParts(channel)
    const drafting = { ...this.#options, owned, channel, started, partsOf, signal: stopping }
    const draft = maySilent ? undefined : await telemetry.within(trace, () => openDraft(drafting))
    const typing = maySilent ? NO_TYPING : startTyping({ channel, to: started.message.to, clock, lease: owned.lease })
    const running = this.#running.begin(lane, message.sender, started.turnId)
    const { signal } = running
    let isStopped = false
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
      if (running.isInterrupted() && !this.#stopped.has(started.turnId) && !stopping.aborted && !isLeaseLost(error)) {
        ended('aborted')
        await owned.inbox.release(number)
        return { retryAtMs: clock.nowMs() }
      }
      if (!stopping.aborted) ended('error')
      isStopped = signal.aborted
      if (isStopped) this.#stopped.set(started.turnId, true)
      return await this.#failed(owned, started, error, draft?.id)
    } finally {
      running.ended(isStopped)
      typing.stop()
    }
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
    const keep = {
      owner: fileOwner(started.session, caller),
      pool: limits.shares.of(client).pool?.key,
      check: (kept: KeptBytes) => limits.shares.checkAttachments(client, kept),
    }
    const media = { channel, standing: client.standing, workspace, keep, transcribe: features.transcribe(), log, clock, signal: stopping }
    const isInHistory = (words: string): Promise<boolean> => hasWords(owned, started.session, words)
    const late = await lateChanges(owned, started.session)
    const textOf = async (said: Inbound, preface = ''): Promise<string> => {
      const asked = withPreface(await this.#withStoredQuote(owned, { ...started, message: said }), preface)
      return telemetry.within(trace, () => textForModel(asked, { ...media, isInHistory }))
    }
    const about = { overheard: this.#options.overheard, channel, session: started.session, writer: client, atMs: receivedAtMs }
    const around = await roomText({ owned, ...about, language: room?.rule.language })
    const text = `${around.text}${await textOf(message, late.text)}`
    const isSteered = features.pacing(channel.name).steering !== 'queue'
    const models = features.models(agent)
    const model = models.length > 1 ? await chosenModel(owned, started.session, models) : undefined
    const { replies } = await turns.agent.run({
      source: channel.name,
      ...(model !== undefined && { model }),
      session: started.session,
      text,
      client: turns.clients.ofCaller(caller),
      owner: channelOwner(channel.name),
      caller,
      limited: client,
      ...(room?.rule.tools && { tools: room.rule.tools }),
      ...(maySilent && { maySilent }),
      trace,
      isInRoom: isInRoom(message),
      permit: attempt.permit,
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
        ...(isSteered && { furtherWords: this.#furtherWords({ owned, channel, started, attempt, turnId: newId, textOf }) }),
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
    await late.told()
    await this.#options.overheard.drop(started.session, around.lines)
    const address = { channel: channel.name, account, to: message.to }
    const row = { channel: channel.name, account, lane: replyLane(address), shard: shardOfConversation(address), atMs: 0, interruptions: 0 }
    return replies.map((reply) => ({ ...row, number: reply }))
  }

  /** Returns the function that finds what the person of a turn has written since it began; see `TurnDelivery.furtherWords`. */
  #furtherWords({ owned, channel, started, attempt, turnId, textOf }: Steered): () => Promise<FurtherWords | undefined> {
    const { clock, log, stopping } = this.#options
    const { number, session, message } = started
    let left = PIECES_MAX
    return async () => {
      if (attempt.superseded?.aborted !== true) return undefined
      try {
        const since = await piecesSince(this.#pieces, { owned, channel, number, session, message, hasOthers: true })
        const pieces = since.slice(0, left)
        const [first] = pieces
        if (!first) return undefined
        const texts: string[] = []
        for (const piece of pieces) texts.push(await textOf(piece.message))
        return {
          text: texts.join('\n'),
          atMs: first.receivedAtMs,
          take: async (messages) => {
            const into = { turnId: started.turnId, messages }
            const isTaken = await owned.inbox.join({ number, into, pieces, atMs: clock.nowMs() })
            for (const piece of pieces) {
              if (!isTaken) this.#arrived.delete(piece.number)
              else {
                this.#pieces.onTaken(piece.number)
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

  /** Returns the message with the words of the one that it quotes, where the platform sends only the id of a message that arrived here. */
  async #withStoredQuote(owned: OwnedStore, { channel, message }: StartedMessage): Promise<Inbound> {
    const { account, sender, to, inReplyTo: id } = message
    if (id === undefined || message.quoted || message.quotedFrom !== undefined) return message
    const found = await owned.inbox.find(channel, { account, id })
    const quoted = found && (await withMessage(this.#options.features.channels(), found)).message
    // An id from another conversation would show its words here.
    if (!quoted || quoted.to.to !== to.to) return message
    const by = quoted.sender === sender && !hasWordsOfOthers(quoted) ? 'sender' : undefined
    return { ...message, ...quotedPart({ id, by, author: { id: quoted.sender }, text: wordsOf(quoted), attachments: quoted.attachments }) }
  }

  async #failed(owned: OwnedStore, started: StartedMessage, error: unknown, draft: string | undefined): Promise<JobOutcome> {
    const { clock, features, onReplies, scrub, stopping } = this.#options
    const { number, attempts } = started
    const failure = error instanceof AppError ? error : undefined
    if (isLeaseLost(error)) throw error
    if (stopping.aborted) {
      await owned.inbox.release(number)
      return { retryAtMs: clock.nowMs() + ABSENT_DELAY_MS }
    }
    if (failure?.code === 'rate_limited') {
      // The operator's budget is spent, so the attempt does not count.
      await owned.inbox.release(number)
      return { retryAtMs: clock.nowMs() + retryDelayMs(1, failure.retryAfterSecs) }
    }
    const { max_attempts, max_age_hours, notice_after_secs } = features.config()
    const nowMs = clock.nowMs()
    const ageMs = nowMs - started.sinceMs
    // The model was away or the turn was refused, so the attempt does not count either.
    const isAway = failure !== undefined && (failure.isPassing || failure.code === 'unavailable')
    const isSpent = isAway ? ageMs >= max_age_hours * HOUR_MS : attempts >= max_attempts
    const refusal = failure?.refusedFor
    const reason = scrub(errorText(error))
    const lane = started.session
    if (isSpent || refusal !== undefined || failure?.code === 'aborted') {
      const isStopped = this.#stopped.delete(started.turnId)
      if (draft !== undefined) await this.#endDraft(owned, started, { draft, isStopped })
      if (refusal !== undefined) this.#tellOperators(started, refusal, reason)
      // The edit of a draft tells the sender.
      const news = draft === undefined ? this.#newsFor({ ...started, lane }, 'unanswered', refusal) : undefined
      if (!isStopped) return this.#giveUp(owned, started, { error: refusal === undefined ? reason : `refused: ${reason}`, news })
      await owned.inbox.done(number, nowMs)
      return 'done'
    }
    const asked = failure?.retryAfterSecs
    const retryAtMs = nowMs + (isAway ? awayDelayMs(ageMs, asked) : retryDelayMs(attempts, asked))
    const isLong = notice_after_secs > 0 && ageMs >= notice_after_secs * 1000
    const news = isLong ? this.#newsFor({ ...started, lane }, 'waiting') : undefined
    const replies = await owned.inbox.retry(number, { error: reason, atMs: retryAtMs, uncounted: isAway, ...(news && { news }) })
    onReplies(waitingReplies(news?.notice ?? [], replies))
    return { retryAtMs }
  }

  /** Returns the notice for the sender of a message; undefined where nothing may be written. A conversation gets each notice once an hour and reason. */
  #newsFor({ channel: name, lane, message }: Told, key: 'unanswered' | 'waiting', reason?: string): MessageNews | undefined {
    const { clock, features } = this.#options
    const channel = channelNamed(features, name)
    const text = gatewayText(key, features.texts())
    // A program may have written what nobody vouches for, and would answer the notice.
    if (!channel || text.trim() === '' || message.unverified === true) return undefined
    const nowMs = clock.nowMs()
    const cause = key === 'unanswered' && reason !== undefined ? (`unanswered:${reason}` as const) : key
    const held = { client: lane, cause, sinceMs: nowMs, untilMs: nowMs }
    return { held, quietMs: HOUR_MS, notice: [noticeTo(channel, message, text, nowMs)] }
  }

  /** Tells the operators that a model refuses. */
  #tellOperators({ channel, number, session }: StartedMessage, refusal: string, reason: string): void {
    this.#options.limits.notify({
      kind: 'refused',
      about: `${agentOfSession(session)} ${refusal}`,
      text: `Sluice could not answer a message on ${channel}, and repeating it would fail too: ${reason}. \`sluice inbox replay ${number}\` runs it again.`,
    })
  }

  /** Replaces the draft of a reply that will never be sent. */
  async #endDraft(
    owned: OwnedStore,
    { channel, account, message, turnId, trace }: Drafted,
    { draft, isStopped }: { readonly draft: string; readonly isStopped: boolean },
  ): Promise<void> {
    const { clock, features, onReplies } = this.#options
    const edit = {
      channel,
      account,
      to: message.to,
      text: gatewayText(isStopped ? 'stopped' : 'unanswered', features.texts()),
      part: 1,
      parts: 1,
      clientId: `draft-${turnId}`,
      turnId,
      createdAtMs: clock.nowMs(),
      extras: { edits: draft, styles: [] },
      ...(trace !== undefined && { trace }),
    }
    onReplies(waitingReplies([edit], await owned.outbox.add([edit])))
  }

  /** Makes the message a dead letter, and tells its sender. */
  async #giveUp(
    owned: OwnedStore,
    { number, channel, attempts }: Pick<SpentMessage, 'number' | 'channel' | 'attempts'>,
    { error, news }: { readonly error: string; readonly news?: MessageNews | undefined },
  ): Promise<JobOutcome> {
    const { clock, events, log, onReplies } = this.#options
    const replies = await owned.inbox.markDead(number, { error, atMs: clock.nowMs(), ...(news && { news }) })
    onReplies(waitingReplies(news?.notice ?? [], replies))
    log.error('message given up', { channel, inbox: number, attempts, error, see: `sluice inbox show ${number}` })
    events.emit({ type: 'delivery', direction: 'inbound', channel, number, state: 'dead', error })
    return 'done'
  }
}

const COMPARED_CHARS = 80

/** The ids of messages that the daemon sends itself in the name of a sender. */
const REMINDERS = 'schedule:'

const isReminder = ({ id }: Inbound): boolean => id.startsWith(REMINDERS)

/** Whether the turn of a message may end without an answer: that of a reminder, or of a message whose every piece the agent judges. */
const mayBeSilent = (channel: Channel, message: Inbound, room: Room | undefined): boolean =>
  isReminder(message) ||
  (room !== undefined && (message.pieces ?? [message]).every((piece) => judgeInRoom(channel, room, piece) === 'judge'))

const NO_TYPING: ReturnType<typeof startTyping> = { pause() {}, stop() {} }

/** Whether one of the newest messages of a conversation contains the words. */
async function hasWords(owned: OwnedStore, session: string, words: string): Promise<boolean> {
  const history = await owned.sessions.history(session, HISTORY_MAX)
  // The beginning is enough, and long texts are searched for a long one slowly.
  const beginning = words.trim().slice(0, COMPARED_CHARS)
  return history.some(
    ({ role, content }) => role !== 'system' && content.some((part) => part.type === 'text' && part.text.includes(beginning)),
  )
}

/** Returns the message with a text before its own words. */
const withPreface = (message: Inbound, preface: string): Inbound =>
  preface === ''
    ? message
    : {
        ...message,
        text: `${preface}${message.text}`,
        ...(message.quotedFrom !== undefined && { quotedFrom: message.quotedFrom + preface.length }),
      }
