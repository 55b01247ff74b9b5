/** Finds the turn that a command outside of threads is about, also where another node of a cluster runs it, and waits for its end. */
import type { Clock, Inbound, InboxEntry, Store } from '@sluice/sdk'
import { isInThreadOf, type RunningTurns, STOPPING_MS_MAX } from './running-turns.ts'

/** The most running messages of a channel, on all nodes, among which the turn of a thread is looked for. */
const RUNNING_MAX = 500
const POLL_MS = 100

export interface TurnInThread {
  readonly session: string
  readonly turnId: string
}

/** A command outside of threads. */
interface OutsideCommand {
  readonly session: string
  readonly channel: { readonly name: string }
  readonly message: Pick<Inbound, 'account' | 'sender'>
}

/**
 * Resolves to the newest turn that answers the sender in a thread of the conversation, on this node or on another one of a cluster; only to
 * that of a message with a number below `before`.
 */
export const turnInThread = async (
  options: { readonly store: Pick<Store, 'inbox'>; readonly turns: Pick<RunningTurns, 'inThread'> },
  command: OutsideCommand,
  before = Number.POSITIVE_INFINITY,
): Promise<TurnInThread | undefined> =>
  options.turns.inThread(command.session, command.message.sender, before) ?? turnElsewhere(options, command, before)

async function turnElsewhere(
  { store }: { readonly store: Pick<Store, 'inbox'> },
  { session, channel, message: { account, sender } }: OutsideCommand,
  before: number,
): Promise<TurnInThread | undefined> {
  const rows = await store.inbox.list({ channel: channel.name, state: 'running', limit: RUNNING_MAX })
  const row = rows.find(
    (one) => one.number < before && one.account === account && one.sender === sender && isInThreadOf(one.session, session),
  )
  return row && row.turnId !== null ? { session: row.session, turnId: row.turnId } : undefined
}

interface StoppingOptions {
  readonly clock: Clock
  readonly store: Pick<Store, 'inbox' | 'turns'>
  /** Aborts when the daemon stops. */
  readonly stopping: AbortSignal
  stop(turnId: string): Promise<boolean>
  whileWaiting<T>(wait: () => Promise<T>): Promise<T>
}

export interface StoppedElsewhere {
  readonly session: string
  readonly hasStopped: boolean
}

/** Stops the turn that another node runs for the sender, and waits for its end as for a turn of this node. Resolves to undefined without one. */
export async function stopElsewhere(
  options: StoppingOptions,
  command: OutsideCommand & { readonly entry: Pick<InboxEntry, 'number'> },
): Promise<StoppedElsewhere | undefined> {
  const { clock, store, stopping, stop, whileWaiting } = options
  const turn = await turnElsewhere(options, command, command.entry.number)
  if (!turn) return undefined
  const { session, turnId } = turn
  const hasStopped = await stop(turnId)
  await whileWaiting(async () => {
    for (let left = STOPPING_MS_MAX; left > 0 && !stopping.aborted; left -= POLL_MS) {
      if ((await store.turns.get(turnId))?.status !== 'running') return
      await clock.sleep(POLL_MS, stopping)
    }
  })
  return { session, hasStopped }
}
