/**
 * Carries out `/stop`: ends the turn of its sender and what the sender wrote before it. When it is carried out again after a crash, it tells
 * what it has ended the first time too.
 */
import { type InboxEntry, type OwnedStore, type SessionMessage, type Store, sessionKeys } from '@sluice/sdk'
import { isOwnMessage } from './pieces.ts'

/** What `/stop` has ended. */
interface Stopped {
  /** The number of messages that ended before they had begun a turn. */
  readonly waiting: number
  /** Whether a turn was ended that ran, or that waited to be tried again. */
  readonly hasTurn: boolean
  /** Whether turns of other people run there, which the sender may not stop. */
  readonly hasOthers: boolean
}

export interface StopOptions {
  readonly owned: OwnedStore
  readonly entry: Pick<InboxEntry, 'number'>
  readonly session: string
  /** The sender of the command, and linked accounts of the sender. */
  readonly senders: readonly string[]
  readonly isOperator: boolean
  readonly store: Pick<Store, 'turns'>
  /** Returns the sessions of threads in the conversation of a session outside of threads, in which one of these senders has messages. */
  threadsOf(session: string, senders: readonly string[]): readonly string[]
  /** Aborts a turn. Resolves to false when it has ended. */
  stop(turnId: string): Promise<boolean>
  /** Resolves once the store has the ends of turns that were aborted, or when that takes too long. */
  allEnded(turnIds: readonly string[]): Promise<void>
  /** Ends a message whose turn does not run. Resolves to false when it has ended, or runs. */
  withdraw(number: number, message: { readonly sender: string; readonly isRunning: boolean }): Promise<boolean>
}

const OWNER = 'delivery'
/** What begins the error of a message that a command has ended. */
export const STOPPED_BY = 'stopped by'

/** What a command is about to end. It is kept, because messages that have ended are not listed when the command is carried out again. */
interface Plan {
  readonly command: number
  readonly sessions: readonly string[]
  readonly messages: readonly number[]
}

/** Ends what came before the command. Outside of threads, that is also what the sender wrote in threads, unless something is outside of them. */
export async function runStop(options: StopOptions): Promise<Stopped> {
  const { owned, entry, session, senders, threadsOf } = options
  const keys = owned.keyValue(OWNER)
  const kept = (await keys.get(planKey(session))) as Plan | undefined
  const earlier = kept?.command === entry.number ? kept : undefined
  const here = await messagesBefore(options, [session])
  const sessions = earlier?.sessions ?? (here.mine.length > 0 ? [session] : [session, ...threadsOf(session, senders)])
  const { mine } = sessions.length > 1 ? await messagesBefore(options, sessions) : here
  const plan: Plan = {
    command: entry.number,
    sessions,
    messages: [...new Set([...(earlier?.messages ?? []), ...mine.map(({ number }) => number)])],
  }
  if (plan.messages.length > (earlier?.messages.length ?? 0)) await keys.set(planKey(session), plan)
  return endMessages(options, {
    sessions,
    mine,
    earlier: (earlier?.messages ?? []).filter((one) => !mine.some(({ number }) => number === one)),
  })
}

async function endMessages(
  options: StopOptions,
  {
    sessions,
    mine,
    earlier,
  }: { readonly sessions: readonly string[]; readonly mine: readonly SessionMessage[]; readonly earlier: readonly number[] },
): Promise<Stopped> {
  const { owned, stop, allEnded, withdraw } = options
  const ended: Pick<SessionMessage, 'turnId'>[] = []
  for (const number of earlier) {
    const entry = await owned.inbox.get(number)
    if (entry && (await isStopped(options, entry))) ended.push(entry)
  }
  // The newest one first, so that none begins because an earlier one has left.
  for (const one of mine.toReversed()) if (!isOwnMessage(one) && (await withdraw(one.number, one))) ended.push(one)
  // A message that did not run before may have begun meanwhile.
  const now = await messagesBefore(options, sessions)
  for (const one of now.mine) if (one.turnId !== null && one.isRunning && (await stop(one.turnId))) ended.push(one)
  // A turn whose end is only in memory would go on after a crash, although its sender was told that it was stopped.
  await allEnded(ended.flatMap(({ turnId }) => turnId ?? []))
  return {
    waiting: ended.filter(({ turnId }) => turnId === null).length,
    hasTurn: ended.some(({ turnId }) => turnId !== null),
    hasOthers: now.others.some(({ turnId }) => turnId !== null),
  }
}

/** Lists what came before the command, as far as its sender may end it, and the messages of others. What came after it is not touched. */
async function messagesBefore({ owned, entry, session, senders, isOperator }: StopOptions, sessions: readonly string[]) {
  const mine: SessionMessage[] = []
  const others: SessionMessage[] = []
  for (const one of sessions) {
    for (const message of await owned.inbox.ofSession(one)) {
      if (message.number >= entry.number || (message.kind !== undefined && message.kind !== 'turn')) continue
      if (senders.includes(message.sender) || (isOperator && one === session)) mine.push(message)
      else if (one === session) others.push(message)
    }
  }
  return { mine, others }
}

async function isStopped({ store }: StopOptions, { turnId, error, endedAtMs }: InboxEntry): Promise<boolean> {
  if (endedAtMs === null) return false
  return turnId === null ? error?.startsWith(STOPPED_BY) === true : (await store.turns.get(turnId))?.status === 'aborted'
}

const planKey = (session: string): string => `${sessionKeys(session)}stop`
