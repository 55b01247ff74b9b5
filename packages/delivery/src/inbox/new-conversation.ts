/** Hides the messages of a session from later turns. They stay stored and are listed as before. */
import { type OwnedStore, type Store, sessionKeys } from '@sluice/sdk'

type Sessions = Pick<Store['sessions'], 'conversation' | 'summarize'>

/** The messages that a command has hidden. It is carried out again after a crash, and must not hide later messages. */
export interface Hidden {
  /** The number of the command. */
  readonly command: number
  readonly session: string
  /** The last hidden message. */
  readonly upTo: number
  /** Milliseconds since 1970. */
  readonly atMs: number
}

const OWNER = 'delivery'
/** How often it is tried again because a turn has added messages meanwhile. */
const TRIES_MAX = 5
const hiddenKey = (session: string): string => `${sessionKeys(session)}new`

/** Begins a new conversation between two turns. */
export async function beginConversation(sessions: Sessions, session: string, nowMs: number): Promise<void> {
  const { upTo } = await sessions.conversation(session, 1)
  await hide(sessions, { session, upTo, atMs: nowMs })
}

/** Hides the messages of a session up to one of them, unless a summary covers more by now. */
export async function hide(sessions: Sessions, { session, upTo, atMs }: Omit<Hidden, 'command'>): Promise<void> {
  for (let left = TRIES_MAX; left > 0 && upTo > 0; left--) {
    const seen = await sessions.conversation(session, 1)
    if (seen.summary && seen.summary.upTo > upTo) return
    // An empty summary covers the messages.
    if (await sessions.summarize(session, seen, { text: '', upTo, upToMs: atMs, model: '', atMs, untrusted: false })) return
  }
}

/** Stores what a command that was written in a session is about to hide. */
export const keepHidden = (owned: OwnedStore, session: string, hidden: Hidden): Promise<void> =>
  owned.keyValue(OWNER).set(hiddenKey(session), hidden)

/** Resolves to the messages that a command has hidden, or was about to hide at a crash; undefined when it had not come so far. */
export async function hiddenBy(owned: OwnedStore, session: string, command: number): Promise<Hidden | undefined> {
  const hidden = (await owned.keyValue(OWNER).get(hiddenKey(session))) as Hidden | undefined
  return hidden?.command === command ? hidden : undefined
}
