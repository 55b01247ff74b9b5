/** The commands that a sender writes as a whole message. They need no model, and are answered in the commit that ends the message. */
import type { LimitedClient } from '@sluice/agent'
import type { JobOutcome } from '@sluice/kit'
import {
  AppError,
  agentOfSession,
  CHAT_COMMANDS,
  type Channel,
  type ChatCommandName,
  type ChatCommandRow,
  type Clock,
  chatCommandIn,
  type GatewayText,
  type GatewayTexts,
  gatewayText,
  type Inbound,
  type InboxEntry,
  isAtLeast,
  type ListedTurn,
  type NewReply,
  type OwnedStore,
  parseSenderKey,
  type Standing,
  type Store,
  sessionOfLane,
  sharedRoom,
  typedText,
  type WrittenCommand,
} from '@sluice/sdk'
import { type QueuedReply, waitingReplies } from '../delivery-queue.ts'
import { CODE_MINUTES, codeIn } from '../people/codes.ts'
import { commandId } from '../people/link-changes.ts'
import { type LinkedAccount, type LinkingAccount, linkNotices, type People, shownAccount, toldOfLink } from '../people/people.ts'
import { hasChanged } from './changed-words.ts'
import { hiddenBy, hide, keepHidden } from './new-conversation.ts'
import { noticesTo } from './notice.ts'
import { keepApart } from './pieces.ts'
import { isInRoom } from './rooms.ts'
import type { RunningTurns } from './running-turns.ts'
import { chooseModel, chosenModel, muteUntil, setMute } from './session-settings.ts'
import { runStop, type StopOptions } from './stop-command.ts'

/** `/compact` is left to the agent, because it needs a model. */
type OwnCommand = WrittenCommand & { readonly name: Exclude<ChatCommandName, 'compact'> }

/** The words of `/link confirm`, with the account that they name. */
const CONFIRM = /^confirm(?:$|\s)(.*)$/is
/** The words of a command have no second line. */
const LINE = /^.*$/
/** Beyond this length, white space included, a text is no command. */
const COMMAND_CHARS_MAX = 120
const DAY_MS = 24 * 3_600_000
/** The most turns that `/usage` adds up. */
const TURNS_MAX = 1000
/** The newest turns in which `/retry` looks for one of the sender. */
const RETRIED_TURNS_MAX = 100

/** Returns the command that a text is and that needs no model; undefined for any other text. */
export function commandIn(text: string): OwnCommand | undefined {
  const command = text.length > COMMAND_CHARS_MAX ? undefined : chatCommandIn(text)
  return command && isOwnCommand(command) && LINE.test(command.words) ? command : undefined
}

const isOwnCommand = (command: WrittenCommand): command is OwnCommand => command.name !== 'compact'

/** Returns the commands that a principal may use, as menus show them. `isShared`: in a conversation that all people of a room share. */
export const commandsFor = (standing: Standing, texts: GatewayTexts, isShared = false) =>
  Object.entries(CHAT_COMMANDS).flatMap(([name, row]: [string, ChatCommandRow]) =>
    mayUse(standing, row, isShared)
      ? [{ name, description: gatewayText(row.says, texts), ...(row.takesWords && { takesWords: true as const }) }]
      : [],
  )

function mayUse(standing: Standing, { least, leastInRoom = least }: ChatCommandRow, isShared: boolean): boolean {
  const lowest = isShared ? leastInRoom : least
  return lowest === undefined || isAtLeast(standing, lowest)
}

export interface CommandOptions extends Pick<StopOptions, 'threadsOf' | 'allEnded'> {
  readonly clock: Clock
  readonly texts: GatewayTexts
  readonly store: Pick<Store, 'inbox' | 'outbox' | 'sessions' | 'turns'>
  readonly people: People
  /** The channels that are ready. */
  channels(): readonly Channel[]
  /** Returns the configured models of an agent, such as `openai:gpt-5`, the first one first. */
  models(agent: string): readonly string[]
  /** Ends the commands of a conversation that run in the background. */
  endCommands(session: string): Promise<void>
  /** Forgets what was overheard in a conversation, and changed there, before a command. */
  endUnread(session: string, command: Pick<InboxEntry, 'number' | 'receivedAtMs'>): Promise<void>
  /** Aborts a turn at the request of its sender. Resolves to false when it has ended. */
  stop(turnId: string): Promise<boolean>
  /**
   * Ends a message of this sender whose turn does not run, and records by whom. Resolves to false when the message has ended, or runs. One
   * that a crash interrupted waits, although the store has it as running.
   */
  withdraw(number: number, message: { readonly sender: string; readonly isRunning: boolean }): Promise<boolean>
  readonly turns: Pick<RunningTurns, 'between' | 'inThread'>
  /** Counts the command for the limit of commands. Resolves to undefined when it may be answered; otherwise the command has ended as `limited`. */
  admitCommand(): Promise<JobOutcome | undefined>
  /** Counts the command as a turn of its sender. Resolves to undefined when the turn may run; otherwise the command has ended as `limited`, or asks again later. */
  admit(): Promise<JobOutcome | undefined>
  /** Releases what the command holds while `wait` runs. */
  whileWaiting<T>(wait: () => Promise<T>): Promise<T>
  /** Called when a message of the store became due. */
  onDue(): void
  onReplies(replies: readonly QueuedReply[]): void
}

export interface GivenCommand {
  readonly owned: OwnedStore
  readonly channel: Channel
  readonly entry: InboxEntry
  readonly message: Inbound
  /** The principal of the message. */
  readonly client: LimitedClient
}

interface RunningCommand extends GivenCommand {
  readonly session: string
  readonly words: string
  /** The messages to other conversations that are stored with the answer. */
  readonly notices: NewReply[]
}

/** Carries out the command. After a crash it is carried out again; its answer is queued once. */
export async function runCommand(options: CommandOptions, given: GivenCommand): Promise<JobOutcome> {
  const { clock, onReplies, texts } = options
  const { owned, channel, entry, message, client } = given
  const { number } = entry
  const command = commandIn(typedText(message))
  const session = sessionOfLane(entry.session)
  const notices: NewReply[] = []
  await keepApart(owned, session, entry)
  const answers = command ? await answersTo(command, options, { ...given, session, words: command.words, notices }) : []
  if ('held' in answers) return answers.held
  const nowMs = clock.nowMs()
  const lines = () =>
    commandsFor(client.standing, texts, sharedRoom(session) !== undefined).map(({ name, description }) => `/${name} ${description}`)
  const text = answers.map(({ key, values }) => gatewayText(key, texts, values ?? (key === 'help' ? { commands: lines().join('\n') } : {})))
  const replies = [...notices, ...(text.length === 0 ? [] : noticesTo(channel, message, text.join(' '), nowMs))]
  onReplies(waitingReplies(replies, await owned.inbox.done(number, nowMs, replies)))
  return 'done'
}

interface Answer {
  readonly key: GatewayText
  readonly values?: Readonly<Record<string, string | number>>
}

/** The answers to a command, or what becomes of one that a limit refuses. */
type Answers = Answer[] | { readonly held: JobOutcome }

async function answersTo({ name }: OwnCommand, options: CommandOptions, running: RunningCommand): Promise<Answers> {
  // A sender can always stop a turn. Only the answer may be too many.
  const stopped = name === 'stop' ? await RUN.stop(options, running) : undefined
  // A refusal counts too, because it is an answer that is stored and sent.
  const held = await options.admitCommand()
  if (held) return { held }
  if (stopped) return stopped
  if (mayUse(running.client.standing, CHAT_COMMANDS[name], sharedRoom(running.session) !== undefined)) return RUN[name](options, running)
  return [{ key: 'command_refused', values: { command: name } }]
}

/** Returns the sender of a command, and the linked accounts of the sender on the channel: they are one person. */
function sendersOf({ people }: Pick<CommandOptions, 'people'>, { channel, message: { account, sender }, client }: GivenCommand): string[] {
  const others = people.besides(client).flatMap((key) => parseSenderKey(key) ?? [])
  return [sender, ...others.flatMap((one) => (one.channel === channel.name && one.account === account ? [one.sender] : []))]
}

const RUN: Readonly<Record<OwnCommand['name'], (options: CommandOptions, running: RunningCommand) => Promise<Answers>>> = {
  async stop(options, running) {
    const { owned, entry, session, client } = running
    const { waiting, hasTurn, hasOthers } = await runStop({
      ...options,
      owned,
      entry,
      session,
      senders: sendersOf(options, running),
      isOperator: client.standing === 'operator',
    })
    const answers: Answer[] = [
      ...(hasTurn ? [{ key: 'stopped' } as const] : []),
      ...(waiting > 0 ? [{ key: 'stopped_waiting', values: { messages: waiting } } as const] : []),
    ]
    return answers.length > 0 ? answers : [{ key: hasOthers ? 'not_your_turn' : 'nothing_to_stop' }]
  },

  async new(options, running) {
    const { clock, turns, whileWaiting, endCommands, endUnread } = options
    const { owned, entry } = running
    const senders = sendersOf(options, running)
    const before = await hiddenBy(owned, running.session, entry.number)
    if (before) {
      await endUnread(before.session, entry)
      await hide(owned.sessions, before)
      return [{ key: 'new_conversation' }]
    }
    const isEmpty = async (): Promise<boolean> => (await owned.sessions.conversation(running.session, 1)).upTo === 0
    const inThread = turns.inThread(running.session, senders, entry.number)
    const session = inThread && (await isEmpty()) ? inThread.session : running.session
    const hasStopped = await turns.between(session, {
      mayStop: (sender) => running.client.standing === 'operator' || senders.includes(sender),
      before: entry.number,
      whileWaiting,
      async work() {
        const { upTo } = await owned.sessions.conversation(session, 1)
        const hidden = { command: entry.number, session, upTo, atMs: clock.nowMs() }
        await keepHidden(owned, running.session, hidden)
        await endCommands(session)
        await endUnread(session, entry)
        await hide(owned.sessions, hidden)
      },
    })
    if (hasStopped === undefined) return [{ key: 'not_your_turn' }]
    return [...(hasStopped ? [{ key: 'stopped' } as const] : []), { key: 'new_conversation' }]
  },

  async retry({ admit, onDue, store }, { owned, session, entry, message }) {
    const nothing: Answer[] = [{ key: 'nothing_to_retry' }]
    const retried: Answer[] = [{ key: 'retried' }]
    if ((await owned.inbox.ofSession(session)).some(({ kind }) => kind === 'turn')) return nothing
    const { summary } = await owned.sessions.conversation(session, 1)
    // An empty summary ends what was before a new conversation.
    const sinceMs = summary?.text === '' ? summary.upToMs + 1 : 0
    const turns = await store.turns.list({ sessionId: session, sinceMs, limit: RETRIED_TURNS_MAX })
    const last = await newestOf(store, turns, message.sender)
    if (!last || (await hasChanged(owned, session, last.answered.number))) return nothing
    // The turn of a retry that a crash cut off has ended meanwhile.
    if (last.turn.endedAtMs >= entry.receivedAtMs) return retried
    const held = await admit()
    if (held) return { held }
    // False: the replay before a crash has made it wait.
    if (!(await store.inbox.replay(last.answered.number)) && last.answered.endedAtMs !== null) return nothing
    onDue()
    return retried
  },

  async status(options, given) {
    const { session } = given
    const { inbox } = given.owned
    const own = await inbox.ofSession(session)
    const inThread = own.length === 0 ? options.turns.inThread(session, sendersOf(options, given)) : undefined
    const messages = inThread ? await inbox.ofSession(inThread.session) : own
    const running = messages.find(({ isRunning }) => isRunning)
    const waiting = messages.filter((message) => message !== running).length
    const agent = agentOfSession(session)
    if (!running) return [{ key: 'status_idle', values: { agent, waiting } }]
    const seconds = Math.max(0, Math.round((options.clock.nowMs() - running.receivedAtMs) / 1000))
    return [{ key: 'status_running', values: { agent, waiting, seconds } }]
  },

  async usage(options, running) {
    const { clock, store } = options
    const { session, client } = running
    const sinceMs = clock.nowMs() - DAY_MS
    const isOfAll = sharedRoom(session) === undefined || client.standing === 'operator'
    const parts = isOfAll ? [{}] : sendersOf(options, running).map((sender) => ({ sender }))
    const turns: ListedTurn[] = []
    for (const part of parts) turns.push(...(await store.turns.list({ sessionId: session, sinceMs, limit: TURNS_MAX, ...part })))
    const sum = (of: (turn: (typeof turns)[number]) => number) => turns.reduce((total, turn) => total + of(turn), 0)
    const input = sum(({ inputTokens }) => inputTokens)
    const output = sum(({ outputTokens }) => outputTokens)
    const cost = sum(({ costUsd }) => costUsd).toFixed(2)
    return [{ key: 'usage', values: { turns: turns.length, input, output, cost } }]
  },

  async model({ models }, { owned, session, words, client }) {
    const agent = agentOfSession(session)
    const configured = models(agent)
    const all = configured.join(', ')
    if (words === '') {
      const model = (await chosenModel(owned, session, configured)) ?? configured[0] ?? ''
      return [{ key: 'model', values: { agent, model, models: all } }]
    }
    // Another model may cost more, which is for operators to decide.
    if (client.standing !== 'operator') return [{ key: 'command_refused', values: { command: `model ${words}` } }]
    const model = configured.find((label) => label === words || label.slice(label.indexOf(':') + 1) === words)
    if (model === undefined) return [{ key: 'model_unknown', values: { model: words, models: all } }]
    await chooseModel(owned, session, model)
    return [{ key: 'model_set', values: { model } }]
  },

  async who({ people, texts }, { session, channel, message, client }) {
    const { standing } = client
    const others = people.personOf(client.client)?.filter(({ account }) => account !== client.client) ?? []
    // Other people in a room need not know which accounts belong to one person.
    const isShown = others.length > 0 && !isInRoom(message)
    return [
      { key: 'who', values: { sender: message.sender, channel: channel.name, standing, agent: agentOfSession(session) } },
      ...(isShown ? [{ key: 'who_linked', values: named(others, texts) } as const] : []),
    ]
  },

  async link(options, running) {
    const { people, texts } = options
    const { words, message, channel, client, entry } = running
    if (isInRoom(message)) {
      await people.revoke(words)
      return [{ key: 'link_in_room' }]
    }
    const { to, thread } = message.to
    const account = {
      account: client.client,
      name: message.name,
      to: { to, ...(thread !== undefined && { thread }) },
      by: `${channel.name}:${message.sender}`,
      command: commandId(entry.number),
    }
    if (words === '') return codeFor(people, account)
    const [, chosen] = CONFIRM.exec(words) ?? []
    if (chosen !== undefined) return confirm(options, running, { account, words: chosen.trim() })
    if (codeIn(words) === undefined) return [{ key: 'link_unclear' }]
    const redeemed = await people.redeem(account, words)
    if (redeemed.outcome !== 'linked') return [{ key: `link_${redeemed.outcome}` }]
    for (const { to: other, accounts } of toldOfLink(redeemed.person, account.account))
      tell(options, running, [other], { key: 'linked', values: named(accounts, texts) })
    return [
      {
        key: 'linked',
        values: named(
          redeemed.person.filter((one) => one.account !== account.account),
          texts,
        ),
      },
    ]
  },

  async unlink(options, running) {
    const { message, channel, client, entry } = running
    if (isInRoom(message)) return [{ key: 'link_in_room' }]
    const account = { account: client.client, name: message.name }
    const by = `${channel.name}:${message.sender}`
    const change = await options.people.unlink({ account: account.account, by, command: commandId(entry.number) })
    if (!change) return [{ key: 'not_linked' }]
    tell(options, running, change.others, { key: 'unlinked', values: named([account], options.texts) })
    return [{ key: 'unlinked', values: named(change.others, options.texts) }]
  },

  async mute({ clock }, { owned, session, words, entry, client: { standing } }) {
    const untilMs = words === '' ? null : muteUntil(words, entry.receivedAtMs)
    if (untilMs === undefined) return [{ key: 'mute_unclear' }]
    if (!(await setMute(owned, session, { untilMs, standing, nowMs: clock.nowMs() }))) return [{ key: 'muted_by_operator' }]
    if (untilMs === null) return [{ key: 'muted' }]
    return [{ key: 'muted_until', values: { time: new Date(untilMs).toISOString().slice(0, 16).replace('T', ' ') } }]
  },

  async unmute({ clock }, { owned, session, client: { standing } }) {
    const isEnded = await setMute(owned, session, { untilMs: undefined, standing, nowMs: clock.nowMs() })
    return [{ key: isEnded ? 'unmuted' : 'muted_by_operator' }]
  },

  help: async () => [{ key: 'help' }],
}

const named = (accounts: readonly Parameters<typeof shownAccount>[0][], texts: GatewayTexts) => ({
  accounts: accounts.map((one) => shownAccount(one, texts)).join(', '),
})

async function codeFor(people: People, account: LinkingAccount): Promise<Answer[]> {
  try {
    const { code } = await people.newCode(account)
    return [{ key: 'link_code', values: { code, minutes: CODE_MINUTES } }]
  } catch (error) {
    if (error instanceof AppError && error.code === 'rate_limited')
      return [{ key: 'link_busy', values: { minutes: Math.ceil((error.retryAfterSecs ?? 0) / 60) } }]
    throw error
  }
}

/** Confirms one account, and tells the others of it. Asks which one is meant when several wait. */
async function confirm(
  options: CommandOptions,
  running: RunningCommand,
  { account, words }: { readonly account: LinkingAccount; readonly words: string },
): Promise<Answer[]> {
  const { people, texts } = options
  const confirmed = await people.confirm(account, words)
  if (!confirmed) return [{ key: 'not_linked' }]
  if (confirmed.waiting) {
    const accounts = confirmed.waiting.map((one) => `${one.number}: ${shownAccount(one.account, texts)}`).join(', ')
    return [{ key: accounts === '' ? 'link_unclear' : 'link_confirm_which', values: { accounts } }]
  }
  const values = named(confirmed.accounts, texts)
  const others = confirmed.isNew ? confirmed.person.filter((one) => one.account !== account.account) : []
  tell(options, running, others, { key: 'link_confirmed_by', values: { account: shownAccount(account, texts), ...values } })
  const isMutual = confirmed.accounts.every((other) => other.confirms.includes(account.account))
  return [{ key: isMutual ? 'link_confirmed_both' : 'link_confirmed', values }]
}

/** Tells other accounts of a change of their link, in the commit that ends the command. */
function tell(
  { channels, clock, texts }: CommandOptions,
  { notices }: RunningCommand,
  others: readonly Pick<LinkedAccount, 'account' | 'to'>[],
  { key, values }: Answer,
): void {
  notices.push(...others.flatMap((one) => linkNotices(channels(), one, gatewayText(key, texts, values), clock.nowMs())))
}

async function answeredBy({ inbox, turns }: CommandOptions['store'], { id }: ListedTurn): Promise<InboxEntry | undefined> {
  const number = (await turns.get(id))?.inbox
  return number === null || number === undefined ? undefined : inbox.get(number)
}

/** Resolves to the first of these turns that answers the sender. */
async function newestOf(store: CommandOptions['store'], turns: readonly ListedTurn[], sender: string) {
  for (const turn of turns) {
    const answered = await answeredBy(store, turn)
    if (answered?.sender === sender) return { turn, answered }
  }
  return undefined
}
