/** The commands that a sender writes as a message of one word. They need no model, and are answered in the commit that ends the message. */
import {
  agentOfSession,
  type Channel,
  type Clock,
  type GatewayText,
  type GatewayTexts,
  gatewayText,
  type Inbound,
  type InboxEntry,
  type OwnedStore,
  typedText,
} from '@sluice/sdk'
import { type QueuedReply, waitingReplies } from '../delivery-queue.ts'
import { noticeTo } from './notice.ts'
import type { RunningTurns } from './running-turns.ts'

export type ChatCommand = 'stop' | 'new' | 'status' | 'help'

/** Some platforms append the name of the bot: `/stop@mybot`. */
const COMMAND = /^\/(stop|new|status|help)(?:@\S{1,100})?$/i
/** Beyond this length, white space included, a text is no command. */
const COMMAND_CHARS_MAX = 120
const LANE = 'command:'

/** Returns the command that a text is; undefined for any other text. */
export function commandIn(text: string): ChatCommand | undefined {
  if (text.length > COMMAND_CHARS_MAX) return undefined
  return COMMAND.exec(text.trim())?.[1]?.toLowerCase() as ChatCommand | undefined
}

/** The lane of the commands of a session, which overtake its messages. */
export const commandLane = (session: string): string => `${LANE}${session}`

/** True if the command in this lane runs beside the turn of its session. A release before this one stored `/new` in the lane of its session. */
export const overtakes = (lane: string): boolean => lane.startsWith(LANE)

export interface CommandOptions {
  readonly clock: Clock
  readonly texts: GatewayTexts
  /** Aborts a turn at the request of its sender. Resolves to false when it has ended. */
  stop(turnId: string): Promise<boolean>
  /** Ends a message that waits to be tried again, at the request of its sender. Resolves to false when it does not wait. */
  giveUpWaiting(number: number): Promise<boolean>
  readonly turns: Pick<RunningTurns, 'between'>
  onReplies(replies: readonly QueuedReply[]): void
}

export interface GivenCommand {
  readonly owned: OwnedStore
  readonly channel: Channel
  readonly entry: InboxEntry
  readonly message: Inbound
}

/** Carries out the command. After a crash it is carried out again; its answer is queued once. */
export async function runCommand(options: CommandOptions, { owned, channel, entry, message }: GivenCommand): Promise<void> {
  const { clock, onReplies, texts } = options
  const { number } = entry
  const command = commandIn(typedText(message))
  const session = overtakes(entry.session) ? entry.session.slice(LANE.length) : entry.session
  const answers = command ? await RUN[command](options, owned, session) : []
  const nowMs = clock.nowMs()
  const text = answers.map(({ key, values }) => gatewayText(key, texts, values)).join(' ')
  const replies = text === '' ? [] : [noticeTo(channel, message, text, nowMs)]
  onReplies(waitingReplies(replies, await owned.inbox.done(number, nowMs, replies)))
}

interface Answer {
  readonly key: GatewayText
  readonly values?: Readonly<Record<string, string | number>>
}

const RUN: Readonly<Record<ChatCommand, (options: CommandOptions, owned: OwnedStore, session: string) => Promise<Answer[]>>> = {
  async stop({ giveUpWaiting, stop }, { inbox }, session) {
    const { running, retrying } = await inbox.ofSession(session)
    const hasStopped = running ? await stop(running.turnId) : retrying !== undefined && (await giveUpWaiting(retrying))
    return [{ key: hasStopped ? 'stopped' : 'nothing_to_stop' }]
  },

  async new({ clock, turns }, { sessions }, session) {
    const hasStopped = await turns.between(session, async () => {
      const conversation = await sessions.conversation(session, 1)
      const { upTo } = conversation
      const nowMs = clock.nowMs()
      // An empty summary of everything: the messages stay stored, and no later turn reads them.
      if (upTo > 0)
        await sessions.summarize(session, conversation, { text: '', upTo, upToMs: nowMs, model: '', atMs: nowMs, untrusted: false })
    })
    return [...(hasStopped ? [{ key: 'stopped' } as const] : []), { key: 'new_conversation' }]
  },

  async status({ clock }, { inbox }, session) {
    const { running, waiting: numbers } = await inbox.ofSession(session)
    const waiting = numbers.length
    const agent = agentOfSession(session)
    if (!running) return [{ key: 'status_idle', values: { agent, waiting } }]
    const seconds = Math.max(0, Math.round((clock.nowMs() - running.receivedAtMs) / 1000))
    return [{ key: 'status_running', values: { agent, waiting, seconds } }]
  },

  help: async () => [{ key: 'help' }],
}
