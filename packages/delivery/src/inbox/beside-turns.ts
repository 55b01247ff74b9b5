/** Processes the messages that begin no turn: replies to approvals, commands, and changes of earlier messages. */
import type { Attempt, JobOutcome } from '@sluice/kit'
import { type Channel, type Inbound, type OwnedStore, sessionOfLane } from '@sluice/sdk'
import { channelNamed } from '../delivery-options.ts'
import type { DeliveryQueue, OwnedRow } from '../delivery-queue.ts'
import { admitCommand, admitMessage, principalOf } from './admit-message.ts'
import type { ArrivedMessages } from './arrived-messages.ts'
import type { Attempts } from './attempts.ts'
import { EarlyChanges, runChange } from './changes.ts'
import { CommandLimit } from './command-limit.ts'
import { type CommandOptions, runCommand } from './commands.ts'
import { endLateChanges } from './late-changes.ts'
import { withMessage } from './read-message.ts'
import { isLeftOut, roomLimits } from './rooms.ts'
import { isInThreadOf, type RunningTurns } from './running-turns.ts'
import { STOPPED_BY } from './stop-command.ts'
import type { InboxWorkerOptions } from './worker-options.ts'

export interface BesideTurnsParts {
  readonly attempts: Attempts
  readonly running: RunningTurns
  readonly arrived: ArrivedMessages
  /** The messages that wait for their turns. */
  readonly messages: Pick<DeliveryQueue, 'size' | 'has' | 'end' | 'lanesOf'>
}

export class BesideTurns {
  readonly #options: InboxWorkerOptions
  readonly #parts: BesideTurnsParts
  readonly #early = new EarlyChanges()
  readonly #commands: CommandLimit
  readonly #edits: CommandLimit

  constructor(options: InboxWorkerOptions, parts: BesideTurnsParts) {
    this.#options = options
    this.#parts = parts
    this.#commands = new CommandLimit(options.clock)
    this.#edits = new CommandLimit(options.clock)
  }

  /** Whether a change may wait for its message, which has not arrived. */
  get takesEarlyChanges(): boolean {
    return !this.#early.isFull
  }

  /** Decides an approval by a reply. */
  async approvalReply(owned: OwnedStore, { number, lane }: OwnedRow, message: Inbound): Promise<JobOutcome> {
    const { approvals, log } = this.#options
    const { attempts } = this.#parts
    const started = await attempts.start(owned, { number, message, lane })
    if (!started) return 'done'
    try {
      await approvals.handleReply(started)
      return 'done'
    } catch (error) {
      log.error('reply to an approval failed', { inbox: number, error })
      return attempts.failed(owned, started, error, undefined)
    }
  }

  /** Carries out a command. */
  async command({ owned, number, lane }: OwnedRow, channel: Channel, message: Inbound, { permit }: Attempt): Promise<JobOutcome> {
    const { clock, features, limits, onDue, onReplies, overheard, people, rooms, store, turns } = this.#options
    const { attempts, messages, running } = this.#parts
    const entry = await owned.inbox.get(number)
    if (!entry || entry.endedAtMs !== null) return 'done'
    const client = await principalOf(this.#options, channel, message)
    const reasonFor = (sender: string): string =>
      `${STOPPED_BY} ${sender === message.sender ? 'its sender' : `${client.standing} ${channel.name}:${message.sender}`}`
    const stop = async (turnId: string): Promise<boolean> => {
      const early = running.stopEarly(turnId)
      // Set before the agent aborts the turn, because it may end at once. What has begun no turn of the agent has its reason in the inbox.
      attempts.stopped.set(turnId, early === undefined ? undefined : reasonFor(early))
      if (early !== undefined || (await turns.agent.requestAbort(turnId))) return true
      // A turn that failed meanwhile has ended as stopped.
      return !attempts.stopped.delete(turnId)
    }
    const withdraw: CommandOptions['withdraw'] = async (waiting, { sender, isRunning }) => {
      const reason = reasonFor(sender)
      if (await messages.end(waiting, () => attempts.endWaiting(owned, waiting, { reason, isStopped: true }))) return true
      // The store has a message that a crash interrupted as running, also while its next attempt has not begun its turn.
      if (isRunning && running.runs(waiting)) return false
      // The attempt under way ends the message before its turn begins.
      if (messages.has(waiting)) attempts.withdrawn.set(waiting, reason)
      return messages.has(waiting)
    }
    const whileWaiting = async <T>(wait: () => Promise<T>): Promise<T> => {
      permit.release()
      try {
        return await wait()
      } finally {
        await permit.reacquire()
      }
    }
    const { models, endCommands } = features
    const texts = features.texts()
    const room = await rooms.of(channel, message, lane)
    const limited = { ...client, ...(room && roomLimits(room)) }
    const asking = { owned, channel, number, message, client: limited, session: lane, waiting: messages.size }
    const admitting = { ...this.#options, ...limits, texts }
    const admit = async (): Promise<JobOutcome | undefined> => {
      const held = await admitMessage(admitting, asking)
      // The commands of all people of a room share a lane.
      return typeof held === 'object' ? { ...held, leavesLane: true } : held
    }
    const inSession = { ...asking, session: sessionOfLane(lane) }
    return runCommand(
      {
        clock,
        texts,
        store,
        people,
        channels: features.channels,
        models,
        endCommands,
        async endUnread(session, { number: before, receivedAtMs }) {
          await overheard.end(session, receivedAtMs)
          await endLateChanges(owned, session, before)
        },
        threadsOf(session, senders) {
          const lanes = senders.flatMap((sender) => messages.lanesOf(sender))
          return [...new Set(lanes)].filter((one) => isInThreadOf(one, session))
        },
        stop,
        allEnded: (turnIds) => whileWaiting(() => running.allEnded(turnIds)),
        withdraw,
        admit,
        admitCommand: () => admitCommand(admitting, inSession, this.#commands),
        turns: running,
        whileWaiting,
        onDue,
        onReplies,
      },
      { owned, channel, entry, message, client },
    )
  }

  /** Carries out a change of an earlier message. */
  change({ owned, number, channel: name }: Pick<OwnedRow, 'owned' | 'number' | 'channel'>, message: Inbound): Promise<JobOutcome> {
    const { clock, features } = this.#options
    const channel = channelNamed(features, name)
    return runChange(
      {
        owned,
        nowMs: clock.nowMs(),
        early: this.#early,
        changesOverheard: async (report, atMs) => channel !== undefined && this.#options.changesOverheard(channel, report, atMs),
        channels: features.channels(),
        onChanged: (changed) => void this.#parts.arrived.delete(changed),
        principalOf: async (changed) => channel && (await principalOf(this.#options, channel, changed)),
        isLeftOut: async (report, { session, before }) => {
          const room = channel && (await this.#options.rooms.of(channel, before, session))
          return channel !== undefined && room !== undefined && isLeftOut(channel, room, report.sender === '' ? before : report)
        },
        edits: this.#edits,
      },
      number,
      message,
    )
  }

  /** Forgets a message that has left the queue. */
  left(number: number): void {
    this.#early.delete(number)
  }

  /** Carries out the changes that arrived before the messages that the turn of a message reads. */
  async earlyChanges(owned: OwnedStore, { name: channel }: Channel, message: Inbound): Promise<void> {
    for (const number of this.#early.of(channel, message)) await this.#earlyChange(owned, number)
  }

  async #earlyChange(owned: OwnedStore, number: number): Promise<void> {
    const entry = await owned.inbox.get(number)
    const message = this.#parts.arrived.get(number) ?? (entry && (await withMessage(this.#options.features.channels(), entry)).message)
    if (entry && message) await this.change({ owned, number, channel: entry.channel }, message)
  }
}
