/** Texts that a person has written and the gateway has not stored, kept in the browser: drafts, and messages whose turn has not ended. */

/** A message on its way. */
export interface Sent {
  /** The idempotency key, by which the gateway takes the message once. */
  readonly id: string
  readonly content: string
  readonly atMs: number
  /** When it was posted first, by the clock of the gateway; absent for a message that the gateway cannot have. */
  readonly postedAtMs?: number
  /** The turn; absent until the gateway has stored it. */
  readonly turn?: string
  /** Why no answer came. A person sends it again or discards it. */
  readonly failure?: string
}

interface Kept {
  readonly atMs: number
  readonly draft?: string
  readonly sent?: readonly Sent[]
}

const PREFIX = 'sluice-chat-'
/** The conversations of which something is kept; the oldest are dropped first. */
const CONVERSATIONS_MAX = 20
const SENT_MAX = 20
/** The name of the draft of a conversation that has no message yet. */
const NEW = 'new'

const keyOf = (session: string | undefined): string => PREFIX + (session ?? NEW)
const keys = (): string[] => Object.keys(localStorage).filter((key) => key.startsWith(PREFIX))

function read(key: string): Kept {
  try {
    return { atMs: 0, ...(JSON.parse(localStorage.getItem(key) ?? '{}') as Partial<Kept>) }
  } catch {
    return { atMs: 0 }
  }
}

/** A browser that keeps nothing, such as in a private window that forbids it, only loses what was not sent. */
function write(key: string, change: Omit<Kept, 'atMs'>): void {
  try {
    const { draft = '', sent = [] } = { ...read(key), ...change }
    if (draft === '' && sent.length === 0) localStorage.removeItem(key)
    else localStorage.setItem(key, JSON.stringify({ atMs: Date.now(), draft, sent: sent.slice(-SENT_MAX) }))
    const all = keys()
    if (all.length <= CONVERSATIONS_MAX) return
    const oldest = all.toSorted((a, b) => read(a).atMs - read(b).atMs)[0]
    if (oldest !== undefined) localStorage.removeItem(oldest)
  } catch {}
}

export const draftOf = (session: string | undefined): string => read(keyOf(session)).draft ?? ''
export const keepDraft = (session: string | undefined, draft: string): void => write(keyOf(session), { draft })
export const sentOf = (session: string): readonly Sent[] => read(keyOf(session)).sent ?? []
/** Replaces the messages with the ids `own` by `sent`. The browser goes on keeping the messages of other pages. */
export const keepSent = (session: string, own: ReadonlySet<string>, sent: readonly Sent[]): void =>
  write(keyOf(session), { sent: [...sentOf(session).filter(({ id }) => !own.has(id)), ...sent] })

/** Forgets everything, when a person signs out or erases a conversation. */
export function forget(session?: string): void {
  try {
    for (const key of session === undefined ? keys() : [keyOf(session)]) localStorage.removeItem(key)
  } catch {}
}
